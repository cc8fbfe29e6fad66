"""A page shown to people without a login: by a link, and as a file that needs no network."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from backend.analysis.shares.page import plotly_script
from backend.specs.states import RunState
from tests.backend.analysis.shares.test_endpoints import add_points
from tests.browser.axe import violations
from tests.support.rows import make_run
from tests.support.service import RunningService

pytestmark = [pytest.mark.browser, pytest.mark.long]

GROUNDS = {"light": "rgb(255, 255, 255)", "dark": "rgb(21, 24, 30)"}


def _check(browser: Browser, address: str, path: Path, *, offline: bool) -> None:
    """Opens a page without a login, in both themes, at the width of a desk and of a phone."""
    faults: list[str] = []
    for theme, width in (("light", 1280), ("dark", 390)):
        context = browser.new_context(
            color_scheme=theme,  # type: ignore[arg-type]
            viewport={"width": width, "height": 800},
            offline=offline,
        )
        page = context.new_page()
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(address)
        expect(page.locator(".scatterlayer .js-line")).not_to_have_count(0)
        expect(page.locator(".main-svg .bg").first).to_have_css("fill", GROUNDS[theme])
        expect(page.get_by_role("table").first).to_contain_text("★ lr 0.001")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert violations(page) == []
        page.screenshot(path=path / f"{theme}.png", full_page=True)
        context.close()
        assert faults == []


def test_page_is_shared_in_three_clicks_and_frozen_in_two(
    service_page: Page, sqlite_service: RunningService, browser: Browser, tmp_path: Path
) -> None:
    page, engine = service_page, sqlite_service.engine
    for rate in (0.001, 0.01):
        for seed in range(4):
            run = make_run(engine, RunState.FINISHED, seed=seed, config={"learning_rate": rate})
            add_points(engine, run.id, 1000 * rate + seed)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/?q=archived%3Afalse&group=seed&list=beside")
    expect(page.get_by_role("region", name="Verdict")).to_contain_text("lr 0.01")

    page.get_by_role("button", name="Share", exact=True).click()
    dialog = page.get_by_role("dialog", name="Share")
    expect(dialog.get_by_role("note")).to_contain_text("nobody on another machine can open a link")
    title = dialog.get_by_role("textbox", name="Title")
    title.fill(" ")
    expect(dialog.get_by_text("A page needs a title.")).to_be_visible()
    title.fill("For the group meeting")
    dialog.get_by_role("button", name="Create link").click()
    dialog.get_by_role("button", name="Copy", exact=True).click()
    expect(dialog.get_by_role("button", name="Copied")).to_be_visible()
    link = str(page.evaluate("navigator.clipboard.readText()"))
    assert link.startswith(f"{sqlite_service.url}/s/")
    _check(browser, link, tmp_path, offline=False)

    with page.expect_download() as download:
        dialog.get_by_role("button", name="Freeze as a file").click()
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    assert file.name == "For the group meeting.html"
    assert plotly_script() in file.read_text("utf-8")
    _check(browser, file.as_uri(), tmp_path, offline=True)

    # The name of a file without names has none either.
    dialog.get_by_role("checkbox", name="Without names").check()
    with page.expect_download() as download:
        dialog.get_by_role("button", name="Freeze as a file").click()
    assert download.value.suggested_filename == "callboard.html"
    page.screenshot(path=tmp_path / "dialog.png")

    dialog.get_by_role("button", name="Revoke the link to").click()
    expect(dialog.get_by_role("button", name="Revoke the link to")).to_have_count(0)
    gone = browser.new_context().new_page()
    gone.goto(link)
    expect(gone.get_by_role("heading", level=1)).to_have_text("This link does not work")
