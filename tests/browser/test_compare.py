"""Which of two learning rates is better, and how sure is it? From the list of runs to the answer."""

import re

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import Engine

from backend.db import Run
from backend.db.engine import writing
from backend.metrics import repository as series
from backend.specs.events import Points
from backend.specs.states import RunState
from tests.support.runs import make_run
from tests.support.service import RunningService

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

EPISODES = 250


def _train(engine: Engine, rate: float, seed: int, score: float) -> None:
    """A run that plays 100 episodes for nothing and 150 at `score`."""
    run = make_run(
        engine, RunState.FINISHED, seed=seed, config={"learning_rate": rate}, name=f"rate {rate} seed {seed}"
    )
    steps = [100 * (at + 1) for at in range(EPISODES)]
    returns = [0.0] * 100 + [score] * 150
    points = Points(
        metric="rollout/episode_return",
        agent_steps=steps,
        frames=steps,
        wall_time_s=[step / 1000 for step in steps],
        episodes=list(range(EPISODES)),
        value=returns,
    )
    with writing(engine) as session:
        series.append(session, run.id, 1, 2, [points])
        row = session.get_one(Run, run.id)
        row.score, row.best_return = score, score


def test_runs_are_dragged_in_and_out(service_page: Page, sqlite_service: RunningService) -> None:
    engine, page = sqlite_service.engine, service_page
    first, second, third = (
        make_run(engine, RunState.FINISHED, seed=at, name=f"seed {at}") for at in range(3)
    )
    page.goto(f"/compare?runs={first.id}")
    compared = page.get_by_role("list", name="Compared runs")
    others = page.get_by_role("list", name="Runs that are not compared")
    expect(others.get_by_role("listitem")).to_have_count(2)

    others.get_by_text("seed 1").drag_to(compared)
    expect(compared.get_by_role("link")).to_have_text(["seed 0", "seed 1"])
    expect(others.get_by_role("listitem")).to_have_count(1)
    compared.get_by_text("seed 0").drag_to(others)
    expect(compared.get_by_role("link")).to_have_text(["seed 1"])
    assert page.url.endswith(f"runs={second.id}")

    # A link from elsewhere carries its run too; any other is left alone.
    for link in (f"{sqlite_service.url}/runs/{first.id}?tab=log", sqlite_service.url):
        dragged = page.evaluate_handle(
            "link => { const data = new DataTransfer(); data.setData('text/uri-list', link); return data; }",
            link,
        )
        compared.dispatch_event("drop", {"dataTransfer": dragged})
    expect(compared.get_by_role("link")).to_have_text(["seed 1", "seed 0"])

    page.get_by_role("searchbox", name="Find runs to compare").fill("seed 2")
    others.get_by_role("button", name="Compare seed 2").press("Enter")
    compared.get_by_role("button", name="Take seed 1 out").press("Enter")
    expect(compared.get_by_role("link")).to_have_text(["seed 0", "seed 2"])
    expect(compared.get_by_role("button", name="Take seed 0 out")).to_be_focused()
    page.go_back()
    expect(compared.get_by_role("link")).to_have_text(["seed 1", "seed 0", "seed 2"])
    assert third.id in page.url


@pytest.mark.long
def test_a_deleted_run_can_be_taken_out(service_page: Page, sqlite_service: RunningService) -> None:
    page, engine = service_page, sqlite_service.engine
    there = make_run(engine, RunState.FINISHED, name="still there")
    gone = make_run(engine, RunState.FINISHED, name="deleted since")
    assert sqlite_service.client.delete(f"/api/v1/runs/{gone.id}").status_code < 300
    page.goto(f"/compare?runs={gone.id},{there.id}")
    expect(page.get_by_text("None of these runs has finished an episode yet.")).to_be_visible()
    page.get_by_role("button", name=f"Take the deleted run {gone.id} out").click()
    page.wait_for_url(f"**/compare?runs={there.id}")
    expect(page.get_by_role("list", name="Compared runs").get_by_role("listitem")).to_have_count(1)
    page.get_by_role("button", name="Take still there out").press("Enter")
    expect(page.get_by_role("searchbox", name="Find runs to compare")).to_be_focused()


@pytest.mark.long
def test_others_are_offered_though_all_the_newest_are_compared(
    service_page: Page, sqlite_service: RunningService
) -> None:
    page, engine = service_page, sqlite_service.engine
    make_run(engine, RunState.FINISHED, name="the oldest")
    newest = [make_run(engine, RunState.FINISHED, name=f"run {at}").id for at in range(25)]
    page.goto(f"/compare?runs={','.join(newest)}")
    page.get_by_role("button", name="Compare the oldest", exact=True).click()
    expect(page.get_by_role("list", name="Compared runs").get_by_role("listitem")).to_have_count(26)


def test_two_learning_rates(service_page: Page, sqlite_service: RunningService) -> None:
    for seed in range(3):
        _train(sqlite_service.engine, 0.01, seed, 300.0 + seed)
        _train(sqlite_service.engine, 0.1, seed, 100.0 + seed)
    page = service_page
    page.goto("/")
    page.get_by_role("combobox", name="Group the runs").select_option("seed")
    page.wait_for_url(re.compile("group=seed"))
    table = page.get_by_role("table", name="Runs by seed")
    row = table.get_by_role("row").filter(has_text="learning_rate = 0.01")
    # 301 ± t(0.975, 2) * 1 / sqrt(3).
    expect(row).to_contain_text("301.0 ± 2.5")
    row.get_by_role("button", name=re.compile("Runs of")).click()
    expect(table.get_by_role("link", name="rate 0.01 seed 2")).to_be_visible()

    for rate in (0.01, 0.1):
        table.get_by_role("checkbox", name=re.compile(rf"learning_rate = {rate}\)")).check()
    selected = page.get_by_role("toolbar", name="Selected runs")
    expect(selected).to_contain_text("6 runs selected")
    selected.get_by_role("link", name="Compare").click()
    page.wait_for_function(
        """() => document.querySelector('[role=img][aria-label^="Learning curves"]')?.data
          ?.filter(trace => trace.meta?.group && trace.meta.y === 'mean' && trace.x.length).length === 2"""
    )
    expect(page.get_by_role("status", name="Points drawn")).to_contain_text("95 % CI")

    statistics = page.get_by_role("region", name="Statistics")
    better = statistics.get_by_role("row").filter(has_text="learning_rate = 0.01").first
    expect(better).to_contain_text("301.0 [300.0, 302.0]")
    expect(statistics.get_by_role("row").last).to_contain_text("100 % [100 %, 100 %]")
    expect(statistics.get_by_role("row").last).to_contain_text("better, 95 % sure")

    statistics.get_by_role("textbox", name="Time to a score of").fill("250")
    page.wait_for_url(re.compile("threshold=250"))
    expect(better).to_contain_text("3 of 3")
    # 84 of the last hundred at 300 are 252; so far 184 episodes of 100 agent steps.
    expect(better).to_contain_text("18.4")
    worse = statistics.get_by_role("row").filter(has_text="learning_rate = 0.1").first
    expect(worse).to_contain_text("0 of 3")

    copy = page.context.new_page()
    copy.goto(page.url)
    again = copy.get_by_role("region", name="Statistics")
    expect(again.get_by_role("textbox", name="Time to a score of")).to_have_value("250")
    expect(again.get_by_role("row").filter(has_text="learning_rate = 0.01").first).to_contain_text("3 of 3")
