"""Actions on runs and hosts from the pages, each confirmed in a dialog."""

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.boxes import tick
from tests.browser.curves import await_state
from tests.browser.stage import end, read, start, until_state

pytestmark = pytest.mark.browser


@pytest.mark.long
def test_row_menu_kills_archives_and_deletes_a_run(page: Page, script: httpx.Client) -> None:
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
    expect(page.get_by_role("dialog")).to_contain_text("without a final checkpoint")
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
    tick(page.get_by_role("switch", name="Archived"), hidden=True)
    expect(row).to_be_visible()
    choose("Delete", "Delete")
    expect(row).to_have_count(0)
    assert script.get(f"/api/v1/runs/{run['id']}").status_code == 404


def test_bulk_actions_tag_and_stop_the_selected_runs(page: Page, script: httpx.Client) -> None:
    runs = [start(script, name=f"one of many {seed}", seed=seed, host="nowhere") for seed in (1, 2)]
    page.goto("/?q=name%3Amany")
    for seed in (1, 2):
        tick(page.get_by_role("checkbox", name=f"Select one of many {seed}"))
    page.get_by_role("toolbar", name="Selected runs").get_by_role("button", name="Tag").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Tag 2 runs")).to_be_visible()
    dialog.get_by_role("textbox", name="Tags").fill("marked")
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("toolbar", name="Selected runs")).to_contain_text("2 runs selected")
    assert all(read(script, run["id"])["tags"] == ["marked"] for run in runs)

    script.post(f"/api/v1/runs/{runs[0]['id']}/stop")
    page.get_by_role("toolbar", name="Selected runs").get_by_role("button", name="Stop").click()
    expect(dialog).to_contain_text("1 run is left unchanged")
    dialog.get_by_role("button", name="Stop 1 run").click()
    expect(dialog).to_have_count(0)
    assert read(script, runs[1]["id"])["state"] == "stopped"


@pytest.mark.long
def test_resume_of_a_finished_run_requires_a_larger_bound(page: Page, script: httpx.Client) -> None:
    config = {"n_e": 8, "n_w": 1, "evaluation_episodes": 0, "learning_rate_schedule": "linear"}
    run = start(script, name="short", stop={"agent_steps": 2_000}, config=config)
    until_state(script, run["id"], "finished")
    page.goto(f"/runs/{run['id']}")
    page.get_by_role("button", name="Resume").click()
    dialog = page.get_by_role("dialog")
    bound = dialog.get_by_label("Train until")
    assert int(bound.input_value().replace(",", "")) > 2_000
    bound.fill("abc")
    expect(dialog.get_by_text("Enter a whole number of agent steps.")).to_be_visible()
    expect(dialog.get_by_role("button", name="Resume")).to_have_attribute("aria-disabled", "true")
    dialog.get_by_role("button", name="Resume").click(force=True)
    assert read(script, run["id"])["spec"]["stop"]["agent_steps"] == 2_000
    bound.fill("1,000")
    dialog.get_by_role("button", name="Resume").click()
    expect(dialog.get_by_role("alert")).to_contain_text("higher limit")
    expect(dialog.get_by_text("higher limit")).to_have_count(1)
    bound.fill("4,000")
    rates = dialog.get_by_role("radiogroup", name="Learning rate")
    expect(rates).to_contain_text("It changes immediately from 0 % to 50 % of its initial value.")
    rates.get_by_role("radio", name="Keep its schedule").check()
    dialog.get_by_role("button", name="Resume").click()
    expect(dialog).to_have_count(0)
    await_state(page, "finished")
    until_state(script, run["id"], "finished")
    spec = read(script, run["id"])["spec"]
    assert (spec["stop"]["agent_steps"], spec["annealing_agent_steps"]) == (4_000, 2_000)


@pytest.mark.long
def test_fork_starts_from_a_checkpoint_with_changed_config(page: Page, script: httpx.Client) -> None:
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
    tick(page.get_by_role("checkbox", name="Select parent", exact=True))
    page.get_by_role("toolbar", name="Selected runs").get_by_role("link", name="Fork").click()
    expect(page.get_by_role("heading", name="Fork of parent")).to_be_visible()


@pytest.mark.long
def test_drained_host_starts_no_run_until_undrained(page: Page, script: httpx.Client) -> None:
    page.goto("/machines")
    page.get_by_role("button", name="Drain").click()
    expect(page.get_by_role("dialog")).to_contain_text("No runs are stopped")
    page.get_by_role("dialog").get_by_role("button", name="Drain").click()
    expect(page.get_by_text("draining", exact=True)).to_be_visible()
    run = start(script, name="waits for a host")
    page.goto(f"/runs/{run['id']}")
    expect(page.get_by_text("every host that can run it is draining")).to_be_visible()
    page.goto("/machines")
    page.get_by_role("button", name="Accept runs again").click()
    expect(page.get_by_text("accepting runs")).to_be_visible()
    expect(page.get_by_role("button", name="Drain")).to_be_focused()
    until_state(script, run["id"], "running")
    end(script, run["id"])
