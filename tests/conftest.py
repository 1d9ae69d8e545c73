"""What every test shares; its environment is in ``tests/settings.py``."""
