"""A real browser against a whole real installation: `callboard up`, its worker, its engine.

- `installed`: the installation, one for all browser tests.
- `script`: an HTTP client logged in to it, to set the stage.
- `context`: a browser context that has used the login link; pages that log errors fail their test.
- `page`: a page in it.
- `service_page`: a page of `sqlite_service`, where a test writes to the database itself.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Error, Page, expect, sync_playwright

from tests.support.databases import short_folder
from tests.support.installation import Installation, installation
from tests.support.service import RunningService

expect.set_options(timeout=30_000)  # milliseconds; the context's default timeout does not govern assertions

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# A network error is what some tests ask for; the page has to live with it.
EXPECTED = re.compile("Failed to load resource|net::ERR_|status of 4")


def _executable() -> str:
    import shutil

    found = next(filter(None, map(shutil.which, CHROMIUM)), None)
    assert found, "the browser tests need Chromium: install the package 'chromium'"
    return found


@pytest.fixture(scope="session")
def installed() -> Iterator[Installation]:
    with short_folder() as folder, installation(folder / "home") as running:
        running.log_in()
        yield running


@pytest.fixture
def script(installed: Installation) -> Iterator[httpx.Client]:
    """A logged-in client; runs that a test leaves behind are ended after it."""
    client = installed.client
    yield client
    active = {"state": ["queued", "starting", "running"], "archived": "all"}
    for run in client.get("/api/v1/runs", params=active).json()["items"]:
        client.post(f"/api/v1/runs/{run['id']}/kill")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=_executable(), args=FLAGS)
        yield running
        with suppress(Error):
            running.close()


@contextmanager
def opened(browser: Browser, client: httpx.Client, pictures: Path) -> Iterator[BrowserContext]:
    """A browser context that shares the session of `client`: a login link works only once."""
    url = str(client.base_url).rstrip("/")
    context = browser.new_context(base_url=url, viewport={"width": 1280, "height": 800})
    context.set_default_timeout(30_000)
    context.add_cookies(
        [{"name": one.name, "value": one.value or "", "url": url} for one in client.cookies.jar]
    )
    faults: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type == "error" and not EXPECTED.search(message.text):
            faults.append(message.text)

    context.on("console", note)
    context.on("weberror", lambda error: faults.append(str(error.error)))
    try:
        yield context
    finally:
        for number, page in enumerate(context.pages):
            with suppress(Error):
                page.screenshot(path=pictures / f"page-{number}.png")
        context.close()
    assert not faults


@pytest.fixture
def context(browser: Browser, installed: Installation, tmp_path: Path) -> Iterator[BrowserContext]:
    with opened(browser, installed.client, tmp_path) as context:
        yield context


@pytest.fixture
def page(context: BrowserContext) -> Page:
    return context.new_page()


@pytest.fixture
def service_page(browser: Browser, sqlite_service: RunningService, tmp_path: Path) -> Iterator[Page]:
    """A page of `sqlite_service`: real service and database, but no worker that would change them."""
    with opened(browser, sqlite_service.client, tmp_path) as context:
        yield context.new_page()
