# Everything a person types. `make help` lists it.

VENV ?= .venv
PYTEST ?= $(VENV)/bin/python -m pytest
IN_RANGE := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
PYTHON ?= $(shell for candidate in python3.11 python3.12 python3.13 python3; do \
	$$candidate -c '$(IN_RANGE)' 2>/dev/null && command -v $$candidate && break; done)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo demo-all up test test-rest test-all check clean

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.installed .env ## Install, start everything, train the demo's two jobs, show what they learned, stop
	@$(VENV)/bin/python manage.py demo

demo-all: $(VENV)/.installed .env ## The larger demo: SPO, a reward model and PPO, DPO, and distillation as well
	@$(VENV)/bin/python manage.py demo --all

up: $(VENV)/.installed .env ## Start the admin and the workers; Ctrl-C stops them and puts running jobs back in the queue
	@$(VENV)/bin/python manage.py up

test: check ## Check and test all that pip alone can install: unit tests, and a real broker and worker
	$(PYTEST) -m "not browser and not postgres and not slow"

test-rest: $(VENV)/.installed-dev ## The tests that need Chromium and PostgreSQL, and the slow ones
	$(PYTEST) -m browser
	$(PYTEST) -m "postgres and not browser"
	$(PYTEST) -m "slow and not postgres and not browser"

test-all: test test-rest ## Every test

check: $(VENV)/.installed-dev ## Lint, types, import directions, migrations, deployment settings
	PATH="$(abspath $(VENV))/bin:$$PATH" bash .ci/check

clean: ## Remove what the tools cached; the environment and the queue's state stay
	rm -rf .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	find webadmin jobs trainers dataset tests -name __pycache__ -type d -prune -exec rm -rf {} +

# Installs only when the requirements changed.
$(VENV)/.installed: requirements.txt | $(VENV)/bin/python
	@echo "Installing requirements.txt into $(VENV); torch is large, so the first time takes minutes."
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

$(VENV)/.installed-dev: requirements-dev.txt $(VENV)/.installed
	@echo "Installing requirements-dev.txt into $(VENV)."
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11, 3.12 or 3.13 is needed and none was found; name one: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	@$(PYTHON) -c '$(IN_RANGE)' || { echo "$(PYTHON) is not Python 3.11, 3.12 or 3.13" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "no virtual environment could be made; on Debian: apt-get install python3-venv" >&2; rm -rf $(VENV); exit 1; }

.env: | $(VENV)/.installed
	@$(VENV)/bin/python -m webadmin.env_file
