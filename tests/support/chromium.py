"""A headless Chromium, as installed on the machine."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from playwright.sync_api import Browser, Error, sync_playwright

from tests.support.waiting import PATIENCE_S

NAMES = ("chromium", "chromium-browser", "google-chrome")
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


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run a browser. No other may be started from the same thread meanwhile."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    assert path, "the browser tests need Chromium: install the package 'chromium'"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS, timeout=1000 * PATIENCE_S)
        yield browser
        with suppress(Error):
            browser.close()
