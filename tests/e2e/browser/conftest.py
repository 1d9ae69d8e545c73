"""A real stack and a real browser: Debian's Chromium, logged in as the first admin."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.e2e.running_stack import RunningStack

INSTALL = "Chromium is missing; on Debian: apt-get install chromium"
FLAGS = ["--no-sandbox", "--disable-background-networking"]
expect.set_options(timeout=15_000)


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    running = RunningStack(tmp_path_factory.mktemp("browser") / "home")
    try:
        yield running.until_served()
    finally:
        assert running.stop() == 0


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = shutil.which("chromium")
    if program is None:
        pytest.fail(INSTALL)
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield running
        running.close()


@pytest.fixture(scope="session")
def cookies(stack: RunningStack, browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Log in once, through the form, with the password that was printed."""
    path = tmp_path_factory.mktemp("cookies") / "state.json"
    page = browser.new_page()
    page.goto(stack.address)
    page.fill("[name=username]", "admin")
    page.fill("[name=password]", stack.password)
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Add job").first).to_be_visible()
    page.context.storage_state(path=path)
    page.close()
    return path


@pytest.fixture
def page(stack: RunningStack, browser: Browser, cookies: Path, colours: str) -> Iterator[Page]:
    """Return a page of somebody who is logged in; anything that the console calls an error fails the test."""
    context: BrowserContext = browser.new_context(
        base_url=stack.address,
        storage_state=cookies,
        color_scheme=colours,
        viewport={"width": 1400, "height": 1000},
    )
    context.set_default_timeout(15_000)
    page = context.new_page()
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("response", lambda answer: errors.append(f"{answer.status} {answer.url}") if answer.status >= 500 else None)
    yield page
    context.close()
    assert errors == []


@pytest.fixture
def colours() -> str:
    return "light"
