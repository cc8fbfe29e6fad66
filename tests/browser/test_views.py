"""A page's state saved as a view, opened, changed, and saved again."""

import re

import pytest
from playwright.sync_api import Page, expect

from backend.specs.states import RunState
from tests.support.rows import make_run
from tests.support.service import RunningService

pytestmark = [pytest.mark.browser, pytest.mark.long]


def test_view_is_saved_in_two_clicks_opened_changed_and_saved_again(
    service_page: Page, sqlite_service: RunningService
) -> None:
    page, client = service_page, sqlite_service.client
    for name, tags in (("first", ["baseline"]), ("second", ["baseline"]), ("third", [])):
        make_run(sqlite_service.engine, RunState.FINISHED, name=name, tags=tags)
    make_run(sqlite_service.engine, RunState.FAILED, name="fourth", tags=["baseline"])
    rows = page.get_by_role("grid", name="Runs").locator("[data-index]")
    changed = page.get_by_text("Changed", exact=True)
    page.goto("/?q=tag%3Abaseline")
    expect(rows).to_have_count(3)

    page.get_by_role("button", name="Save view").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("textbox", name="Name")).to_have_value("tag:baseline")
    dialog.get_by_role("button", name="Save").click()
    expect(page).to_have_url(re.compile(r"/w/tag(:|%3A)baseline$"))
    expect(page.get_by_role("heading", level=1)).to_have_text("tag:baseline")
    expect(rows).to_have_count(3)
    expect(page.get_by_role("searchbox", name="Search runs")).to_have_value("tag:baseline")
    expect(changed).to_have_count(0)

    page.get_by_role("radiogroup", name="Filter by state").get_by_text("Finished").click()
    expect(rows).to_have_count(2)
    expect(changed).to_be_visible()
    page.reload()
    expect(rows).to_have_count(2)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(changed).to_have_count(0)
    expect(page).to_have_url(re.compile(r"/w/tag(:|%3A)baseline$"))
    expect(rows).to_have_count(2)

    # Another save meanwhile is not overwritten.
    page.get_by_role("searchbox", name="Search runs").fill("tag:baseline name:first")
    expect(rows).to_have_count(1)
    [view] = client.get("/api/v1/views").json()["items"]
    path = f"/api/v1/views/{view['id']}"
    client.patch(path, json={"document": {"filter": "seed=7"}}).raise_for_status()
    expect(changed).to_be_visible()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("saved meanwhile")
    assert client.get(path).json()["document"]["filter"] == "seed=7"

    page.get_by_role("button", name="Back to saved").click()
    expect(page.get_by_text("No matching runs.")).to_be_visible()
    page.get_by_role("button", name="Views").click()
    page.get_by_role("menuitem", name="Earlier states…").click()
    page.get_by_role("dialog").get_by_role("button", name="Show").last.click()
    expect(rows).to_have_count(3)
    expect(changed).to_be_visible()


def test_changes_survive_a_new_name_and_are_not_saved_over_another_save_after_a_reload(
    service_page: Page, sqlite_service: RunningService
) -> None:
    page, client = service_page, sqlite_service.client
    for name in ("first", "second"):
        make_run(sqlite_service.engine, RunState.FINISHED, name=name)
    saved = {"name": "mine", "shared": False, "project": None, "document": {"filter": "name:first"}}
    view = client.post("/api/v1/views", json=saved).raise_for_status().json()
    rows = page.get_by_role("grid", name="Runs").locator("[data-index]")
    changed = page.get_by_text("Changed", exact=True)
    page.goto("/w/mine")
    expect(rows).to_contain_text("first")
    page.get_by_role("searchbox", name="Search runs").fill("name:second")
    expect(changed).to_be_visible()

    page.get_by_role("button", name="Views").click()
    page.get_by_role("menuitem", name="Name and sharing…").click()
    page.get_by_role("dialog").get_by_role("textbox", name="Name").fill("renamed")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("renamed")
    expect(changed).to_be_visible()
    expect(rows).to_contain_text("second")

    path = f"/api/v1/views/{view['id']}"
    client.patch(path, json={"document": {"filter": "seed=7"}}).raise_for_status()
    page.reload()
    expect(rows).to_contain_text("second")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("Not saved")
    assert client.get(path).json()["document"]["filter"] == "seed=7"


def test_address_that_would_be_too_long_is_a_view_without_a_name(
    service_page: Page, sqlite_service: RunningService
) -> None:
    page = service_page
    ids = [make_run(sqlite_service.engine, RunState.FINISHED, seed=seed).id for seed in range(80)]
    page.goto(f"/compare?runs={','.join(ids)}")
    expect(page).to_have_url(re.compile("/w/[0-9A-Z]{26}$"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Compare")
    address = page.url
    rows = page.get_by_role("grid", name="Compared runs").locator("[data-row]")
    expect(rows).to_have_count(80)

    def remove() -> None:
        rows.last.get_by_role("button", name=re.compile("^Actions for")).click()
        page.get_by_role("menuitem", name="Remove").click()

    with page.expect_response(lambda answer: answer.request.method == "PATCH"):
        remove()
    expect(rows).to_have_count(79)
    page.reload()
    expect(rows).to_have_count(79)
    assert page.url == address
    assert sqlite_service.client.get("/api/v1/views").json()["items"] == []
    # What fits stands in the address again.
    for left in range(78, 66, -1):
        remove()
        expect(rows).to_have_count(left)
    expect(page).to_have_url(re.compile(r"/\?runs="))
