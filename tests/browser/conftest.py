"""A real browser against a whole real installation: `callboard up`, its worker, its engine.

- `installed`: the installation, one for all browser tests.
- `examples`: ids of rows that every page can show.
- `script`: an HTTP client logged in to it, to set the stage.
- `context`: a browser context that has used the login link; pages that log errors fail their test.
- `page`: a page in it.
- `service_page`: a page of `sqlite_service`, where a test writes to the database itself.
"""

import json
import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Error, Page, expect

from backend.http.dependencies import PAGE_SECRET_HEADER
from backend.http.docs import STORED_PAGE_SECRET
from tests.browser.examples import make
from tests.support import custom_environment
from tests.support.databases import short_folder
from tests.support.installation import Installation, installation
from tests.support.service import RunningService
from tests.support.waiting import EXPECT_S, PATIENCE_S, until

# A network error is what some tests ask for; the page has to live with it.
EXPECTED = re.compile("Failed to load resource|net::ERR_|status of 4")

expect.set_options(timeout=1000 * EXPECT_S)  # the context's default timeout does not govern assertions

PAGE_SECRET_GIVEN = "pageSecretGiven"

FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed
    return report


@pytest.fixture(scope="session")
def installed() -> Iterator[Installation]:
    with short_folder() as folder:
        environments = custom_environment.write(folder, custom_environment.PACED)
        with installation(folder / "home", environments_file=environments) as running:
            client = running.log_in()
            # The worker, which starts after the web process, reports it with its host.
            until(lambda: client.get("/api/v1/environments/Custom/Paced-v0").is_success)
            yield running


@pytest.fixture(scope="session")
def examples(installed: Installation) -> dict[str, str]:
    return make(installed.client)


@pytest.fixture
def script(installed: Installation) -> Iterator[httpx.Client]:
    """A logged-in client; runs that a test leaves behind are ended after it."""
    client = installed.client
    yield client
    active = {"state": ["queued", "starting", "running"], "archived": "all"}
    for run in client.get("/api/v1/runs", params=active).json()["items"]:
        client.post(f"/api/v1/runs/{run['id']}/kill")


@contextmanager
def opened(browser: Browser, client: httpx.Client, test: pytest.FixtureRequest) -> Iterator[BrowserContext]:
    """A browser context that shares the session of `client`: a login link works only once.

    A failed test leaves images of its pages in its `tmp_path`.
    """
    url = str(client.base_url).rstrip("/")
    context = browser.new_context(base_url=url, viewport={"width": 1280, "height": 800})
    context.set_default_timeout(1000 * PATIENCE_S)
    context.add_cookies(
        [{"name": cookie.name, "value": cookie.value or "", "url": url} for cookie in client.cookies.jar]
    )
    # As a page keeps it: for each origin, which includes the port.
    kept = json.dumps([STORED_PAGE_SECRET, client.headers[PAGE_SECRET_HEADER]])
    context.add_init_script(
        f"if (location.origin === {json.dumps(url)} && !localStorage.{PAGE_SECRET_GIVEN}) {{"
        f"localStorage.setItem(...{kept}); localStorage.{PAGE_SECRET_GIVEN} = 'yes'; }}"
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
        for number, page in enumerate(context.pages if test.node.stash.get(FAILED, False) else []):
            with suppress(Error):
                page.screenshot(path=test.getfixturevalue("tmp_path") / f"page-{number}.png")
        context.close()
    assert not faults


@pytest.fixture
def context(
    browser: Browser, installed: Installation, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[BrowserContext]:
    with opened(browser, installed.client, request) as context:
        yield context


@pytest.fixture
def page(context: BrowserContext) -> Page:
    return context.new_page()


@pytest.fixture
def service_page(
    browser: Browser, sqlite_service: RunningService, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Page]:
    """A page of `sqlite_service`: real service and database, but no worker that would change them."""
    assert sqlite_service.url  # starts its server
    with opened(browser, sqlite_service.client, request) as context:
        yield context.new_page()
