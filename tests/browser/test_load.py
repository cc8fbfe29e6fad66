"""Many runs, points and events: pages render only what is in view and keep up with changes."""

import pytest
from playwright.sync_api import Page, Response, expect

from backend.db import Run
from backend.db.engine import writing
from backend.runs.runs import service as run_service
from backend.specs.states import RunState
from tests.browser.load import ACTIVE_RUNS, await_score, compare, fill, under_load
from tests.support.rows import make_run
from tests.support.service import RunningService
from tests.support.waiting import rounds

pytestmark = pytest.mark.browser


@pytest.mark.long
@pytest.mark.parametrize("n_runs", [2_000, pytest.param(10_000, marks=pytest.mark.benchmark)])
def test_list_of_many_runs_renders_only_rows_in_view(
    service_page: Page, sqlite_service: RunningService, n_runs: int
) -> None:
    fill(sqlite_service.engine, n_runs)
    page = service_page
    fetched: list[int] = []

    def note(response: Response) -> None:
        if "/api/v1/runs?" in response.url and response.ok:
            fetched.append(len(response.json()["items"]))

    page.on("response", note)
    page.goto("/?sort=-score")
    rows = page.locator("[role=row][data-index]")
    expect(rows.first).to_contain_text("run 00000")
    expect(page.get_by_text(f"{n_runs:,} runs")).to_be_visible()
    assert rows.count() < 80, "only rows in view are in the page"
    assert sum(fetched) <= 200, "only the first rows are fetched"
    page.remove_listener("response", note)  # a request that a later one replaces has no body

    # Scrolling loads further pages.
    scroller = page.get_by_role("grid", name="Runs").locator("..")
    for _ in rounds():
        if int(rows.last.get_attribute("data-index") or 0) >= 250:
            break
        scroller.evaluate("element => element.scrollTo(0, element.scrollHeight)")
        page.wait_for_timeout(100)
    assert rows.count() < 80

    page.get_by_role("searchbox", name="Search runs").fill("name:00042")
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("run 00042")


def test_change_of_a_run_appears_without_reload(service_page: Page, sqlite_service: RunningService) -> None:
    engine, bus = sqlite_service.engine, sqlite_service.app_state.bus
    run = make_run(engine, RunState.RUNNING, name="watched")
    page = service_page
    page.goto(f"/runs/{run.id}")
    expect(page.locator("main header").first).to_contain_text("running")
    expect(page.get_by_role("banner").get_by_role("status").last).to_contain_text("live")
    for score in range(100, 105):
        with writing(engine) as session:
            row = session.get_one(Run, run.id)
            row.score = float(score)
            run_service.touch(session, row)
        bus.publish_changes(session)
        await_score(page, float(score))


@pytest.mark.long
def test_page_keeps_up_with_sixteen_runs_and_twenty_listeners(
    service_page: Page, sqlite_service: RunningService
) -> None:
    """16 runs of 50 points per second, this page, and 19 other listeners."""
    service, page = sqlite_service, service_page
    runs = [make_run(service.engine, RunState.RUNNING, name=f"run {k}").id for k in range(ACTIVE_RUNS)]
    page.goto(f"/runs/{runs[0]}")
    expect(page.get_by_role("banner").get_by_role("status").last).to_contain_text("live")
    with under_load(service, runs) as announced:
        for _ in rounds(300):
            if len(announced) >= 40:
                break
            page.wait_for_timeout(10)
        await_score(page, announced[-1][0])


@pytest.mark.long
def test_comparison_of_ten_runs_hides_a_run_and_groups_seeds(
    service_page: Page, sqlite_service: RunningService
) -> None:
    compare(service_page, sqlite_service.engine, 10, 5_000)
    page = service_page
    page.get_by_role("button", name="Hide seed 3").click()
    page.wait_for_url("**hidden=**")
    page.wait_for_function(
        """() => {
          const chart = document.querySelector('[role=img][aria-label^="Learning curves"]');
          return new Set(chart.data.map(trace => trace.meta?.run).filter(Boolean)).size === 9;
        }"""
    )
    page.get_by_role("radiogroup", name="Group curves").get_by_text("Configs").click()
    page.wait_for_function(
        """() => document.querySelector('[role=img][aria-label^="Learning curves"]')?.data
          ?.some(trace => /, 10 seeds$/.test(trace.name ?? ''))"""
    )
    expect(page.get_by_role("heading", name="Config diff")).to_be_visible()
    expect(page.get_by_text("The configs are identical but for the seed.")).to_be_visible()


@pytest.mark.long
def test_comparison_of_fifty_long_runs_draws_all_curves(
    service_page: Page, sqlite_service: RunningService
) -> None:
    compare(service_page, sqlite_service.engine, 50, 100_000)
