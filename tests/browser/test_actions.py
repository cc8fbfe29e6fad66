"""What one can do to runs from the pages, told beforehand in exact words."""

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.curves import await_state
from tests.browser.stage import end, read, start, until_state

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]


def test_from_the_row_menu(page: Page, script: httpx.Client) -> None:
    run = start(script, name="row actions")
    until_state(script, run["id"], "running")
    page.goto("/")
    row = page.get_by_role("row").filter(has_text="row actions")

    def choose(item: str, button: str) -> None:
        row.get_by_role("button", name="Actions for row actions").click()
        page.get_by_role("menuitem", name=item).click()
        page.get_by_role("dialog").get_by_role("button", name=button).click()
        expect(page.get_by_role("dialog")).to_have_count(0)

    row.get_by_role("button", name="Actions for row actions").click()
    page.get_by_role("menuitem", name="Kill now (loses up to 40 s)").click()
    expect(page.get_by_role("dialog")).to_contain_text("without a last checkpoint")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(row.get_by_role("button", name="Actions for row actions")).to_be_focused()
    assert read(script, run["id"])["state"] == "running"
    row.get_by_role("link", name="row actions").click()
    stop = page.get_by_role("button", name="Stop and keep a checkpoint")
    stop.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(stop).to_be_focused()
    page.goto("/")

    choose("Kill now", "Kill now")
    expect(row).to_contain_text("stopped")
    choose("Archive", "Archive")
    expect(row).to_have_count(0)
    page.get_by_role("switch", name="Archived").check(force=True)
    expect(row).to_be_visible()
    choose("Delete", "Delete")
    expect(row).to_have_count(0)
    assert script.get(f"/api/v1/runs/{run['id']}").status_code == 404


def test_to_many_at_once(page: Page, script: httpx.Client) -> None:
    runs = [start(script, name=f"one of many {seed}", seed=seed, host="nowhere") for seed in (1, 2)]
    page.goto("/?q=name%3Amany")
    for seed in (1, 2):
        page.get_by_role("checkbox", name=f"Select one of many {seed}").check()
    page.get_by_role("toolbar", name="Selected runs").get_by_role("button", name="Tag").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Tags").fill("marked")
    dialog.get_by_role("button", name="Tag 2 runs").click()
    expect(dialog).to_have_count(0)
    assert all(read(script, run["id"])["tags"] == ["marked"] for run in runs)

    script.post(f"/api/v1/runs/{runs[0]['id']}/stop")
    for seed in (1, 2):
        page.get_by_role("checkbox", name=f"Select one of many {seed}").check()
    page.get_by_role("toolbar", name="Selected runs").get_by_role("button", name="Stop").click()
    expect(dialog).to_contain_text("1 run is left as it is")
    dialog.get_by_role("button", name="Stop 1 run").click()
    expect(dialog).to_have_count(0)
    assert read(script, runs[1]["id"])["state"] == "stopped"


def test_resume_past_the_bound(page: Page, script: httpx.Client) -> None:
    run = start(script, name="short", stop={"agent_steps": 2_000})
    until_state(script, run["id"], "finished")
    page.goto(f"/runs/{run['id']}")
    page.get_by_role("button", name="Resume").click()
    dialog = page.get_by_role("dialog")
    bound = dialog.get_by_label("Train until")
    assert int(bound.input_value().replace(",", "")) > 2_000
    bound.fill("abc")
    expect(dialog.get_by_text("Give a whole number of agent steps.")).to_be_visible()
    expect(dialog.get_by_role("button", name="Resume")).to_have_attribute("aria-disabled", "true")
    dialog.get_by_role("button", name="Resume").click(force=True)
    assert read(script, run["id"])["spec"]["stop"]["agent_steps"] == 2_000
    bound.fill("1,000")
    dialog.get_by_role("button", name="Resume").click()
    expect(dialog.get_by_role("alert")).to_contain_text("larger bound")
    expect(dialog.get_by_text("larger bound")).to_have_count(1)
    bound.fill("4,000")
    dialog.get_by_role("button", name="Resume").click()
    expect(dialog).to_have_count(0)
    await_state(page, "finished")
    until_state(script, run["id"], "finished")
    assert read(script, run["id"])["spec"]["stop"]["agent_steps"] == 4_000


def test_fork_from_a_checkpoint(page: Page, script: httpx.Client) -> None:
    run = start(script, name="parent", stop={"agent_steps": 2_000})
    run = until_state(script, run["id"], "finished")
    page.goto(f"/runs/{run['id']}?tab=checkpoints")
    page.get_by_role("link", name="Fork from here").first.click()
    page.locator("[name='config.beta']").fill("0.05")
    done = run["agent_steps"]
    expect(page.locator("[name='stop.agent_steps']")).to_have_value(str(done + 2_000))
    page.locator("[name='stop.agent_steps']").fill(f"{done + 1_500:,}")
    expect(page.get_by_role("status", name="Cost")).to_contain_text("1,500 more agent steps")
    page.get_by_role("button", name="Start fork").click()
    expect(page.get_by_text("forked from")).to_be_visible()
    expect(page.get_by_role("link", name="parent", exact=True)).to_be_visible()
    fork = read(script, page.url.rsplit("/", 1)[1])
    assert fork["parent_id"] == run["id"]
    assert fork["spec"]["config"]["beta"] == 0.05
    end(script, fork["id"])

    page.goto("/?q=name%3Aparent")
    page.get_by_role("checkbox", name="Select parent", exact=True).check()
    page.get_by_role("toolbar", name="Selected runs").get_by_role("link", name="Fork").click()
    expect(page.get_by_role("heading", name="Fork of parent")).to_be_visible()


def test_drain_a_host(page: Page, script: httpx.Client) -> None:
    page.goto("/hosts")
    page.get_by_role("button", name="Drain").click()
    expect(page.get_by_role("dialog")).to_contain_text("Nothing is stopped")
    page.get_by_role("dialog").get_by_role("button", name="Drain").click()
    expect(page.get_by_text("draining", exact=True)).to_be_visible()
    run = start(script, name="waits for a host")
    page.goto(f"/runs/{run['id']}")
    expect(page.get_by_text("every host that serves it is draining")).to_be_visible()
    page.goto("/hosts")
    page.get_by_role("button", name="Take runs again").click()
    expect(page.get_by_text("taking runs")).to_be_visible()
    expect(page.get_by_role("button", name="Drain")).to_be_focused()
    until_state(script, run["id"], "running")
    end(script, run["id"])
