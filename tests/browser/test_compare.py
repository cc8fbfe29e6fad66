"""The compare page: adding and removing runs, and the statistical comparison of two configs."""

import re

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import Engine, select

from backend.analysis.metrics import repository as series
from backend.db import Run
from backend.db.engine import reading, writing
from backend.specs.events import PointsEvent
from backend.specs.states import RunState
from tests.browser.boxes import tick
from tests.support.rows import make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.browser

EPISODES = 250


def _train(engine: Engine, rate: float, seed: int, score: float) -> None:
    """A run with 100 episodes of return 0 and 150 of return `score`, and the learning rate of each update."""
    run = make_run(
        engine, RunState.FINISHED, seed=seed, config={"learning_rate": rate}, name=f"rate {rate} seed {seed}"
    )
    steps = [100 * (at + 1) for at in range(EPISODES)]
    returns = [0.0] * 100 + [score] * 150
    points = [
        PointsEvent(
            metric=metric,
            agent_steps=steps,
            frames=steps,
            wall_time_s=[step / 1000 for step in steps],
            episodes=list(range(EPISODES)),
            value=values,
        )
        for metric, values in (
            ("rollout/episode_return", returns),
            ("optim/learning_rate", [rate] * EPISODES),
        )
    ]
    with writing(engine) as session:
        series.append(session, run.id, 1, 2, points)
        row = session.get_one(Run, run.id)
        row.score, row.best_return = score, score


def _await_group_traces(page: Page, what: str, count: int, chart: str = "Learning curves") -> None:
    """Wait until a chart of groups has that many lines with data, of medians or of seeds."""
    page.wait_for_function(
        """([what, count, chart]) => document.querySelector(`[role=img][aria-label^="${chart}"]`)?.data
          ?.filter(trace => trace.meta?.group && trace.meta.kind === 'line' && trace.x.length)
          .filter(trace => ('n' in trace.meta) === (what === 'medians')).length === count""",
        arg=[what, count, chart],
    )


def _await_symbols(page: Page, symbols: dict[str, str | None]) -> None:
    """Wait until the lines of runs have these symbols, and colours that differ."""
    page.wait_for_function(
        """symbols => {
          const lines = document.querySelector('[role=img][aria-label^="Learning curves"]')
            ?.data?.filter(trace => trace.meta?.kind === 'line') ?? [];
          return new Set(lines.map(line => line.line.color)).size === Object.keys(symbols).length &&
            lines.every(line => (line.marker?.symbol ?? null) === symbols[line.meta.run]);
        }""",
        arg=symbols,
    )


@pytest.mark.long
def test_runs_are_added_by_dropped_links_and_by_buttons_and_removed(
    service_page: Page, sqlite_service: RunningService
) -> None:
    engine, page = sqlite_service.engine, service_page
    first, second, third = (
        make_run(engine, RunState.FINISHED, seed=at, name=f"seed {at}") for at in range(3)
    )
    page.goto(f"/compare?runs={first.id}")
    compared = page.get_by_role("grid", name="Compared runs")
    others = page.get_by_role("list", name="Other runs")

    # Any link to a run adds it; other links are ignored.
    for link in (f"{sqlite_service.url}/runs/{second.id}?tab=log", sqlite_service.url):
        dragged = page.evaluate_handle(
            "link => { const data = new DataTransfer(); data.setData('text/uri-list', link); return data; }",
            link,
        )
        compared.dispatch_event("drop", {"dataTransfer": dragged})
        expect(compared.get_by_role("link")).to_have_text(["seed 0", "seed 1"])

    page.get_by_role("button", name="Add runs").click()
    expect(others.get_by_role("listitem")).to_have_count(1)
    page.get_by_role("searchbox", name="Find runs to compare").fill("seed 2")
    others.get_by_role("button", name="Compare seed 2").press("Enter")
    page.keyboard.press("Escape")
    expect(compared.get_by_role("link")).to_have_text(["seed 0", "seed 1", "seed 2"])

    compared.get_by_role("button", name="Actions for seed 0").click()
    page.get_by_role("menuitem", name="Remove").click()
    expect(compared.get_by_role("link")).to_have_text(["seed 1", "seed 2"])
    # They keep their styles.
    assert f"runs={second.id}%2C{third.id}&" in page.url
    assert "styles=1%2C2" in page.url
    page.go_back()
    expect(compared.get_by_role("link")).to_have_text(["seed 0", "seed 1", "seed 2"])


@pytest.mark.long
def test_style_changed_by_a_click_on_its_swatch_is_drawn_and_stands_in_the_address(
    service_page: Page, sqlite_service: RunningService
) -> None:
    engine, page = sqlite_service.engine, service_page
    for seed in range(2):
        _train(engine, 0.01, seed, 100.0 + seed)
    with reading(engine) as session:
        ids = {run.name: run.id for run in session.scalars(select(Run))}
    first, second = (ids[f"rate 0.01 seed {seed}"] for seed in range(2))
    page.goto(f"/compare?runs={first},{second}")
    swatch = page.get_by_role("button", name=re.compile("Style of rate 0.01 seed 0"))
    swatch.press("Enter")
    palette = page.get_by_role("group", name="Styles")
    expect(palette.get_by_role("button", pressed=True)).to_be_focused()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    expect(palette).to_have_count(0)
    page.wait_for_url(re.compile("styles=12(,|%2C)1(&|$)"))
    for _ in range(2):
        _await_symbols(page, {first: "square", second: None})
        expect(swatch).to_have_accessible_name(re.compile("second shade, square"))
        page.reload()


@pytest.mark.long
def test_deleted_run_can_be_removed(service_page: Page, sqlite_service: RunningService) -> None:
    page, engine = service_page, sqlite_service.engine
    existing = make_run(engine, RunState.FINISHED, name="still there")
    deleted = make_run(engine, RunState.FINISHED, name="deleted since")
    assert sqlite_service.client.delete(f"/api/v1/runs/{deleted.id}").status_code < 300
    page.goto(f"/compare?runs={deleted.id},{existing.id}")
    expect(page.get_by_text("None of these runs has finished an episode yet.")).to_be_visible()
    page.get_by_role("button", name=f"Remove deleted run {deleted.id}").click()
    page.wait_for_url(f"**/?runs={existing.id}&*")
    expect(page.get_by_role("grid", name="Compared runs").get_by_role("link")).to_have_count(1)


@pytest.mark.long
def test_older_runs_are_offered_when_all_latest_runs_are_compared(
    service_page: Page, sqlite_service: RunningService
) -> None:
    page, engine = service_page, sqlite_service.engine
    make_run(engine, RunState.FINISHED, name="the oldest")
    latest = [make_run(engine, RunState.FINISHED, name=f"run {at}").id for at in range(25)]
    page.goto(f"/compare?runs={','.join(latest)}")
    page.get_by_role("button", name="Add runs").click()
    page.get_by_role("button", name="Compare the oldest", exact=True).click()
    expect(page.get_by_role("grid", name="Compared runs").get_by_role("link")).to_have_count(26)


def test_statistics_compare_two_learning_rates(service_page: Page, sqlite_service: RunningService) -> None:
    for seed in range(5):
        _train(sqlite_service.engine, 0.01, seed, 300.0 + seed)
        _train(sqlite_service.engine, 0.1, seed, 100.0 + seed)
    page = service_page
    page.goto("/")
    page.get_by_role("combobox", name="Group runs").select_option("seed")
    page.wait_for_url(re.compile("group=seed"))
    table = page.get_by_role("table", name="Runs by seed")
    row = table.get_by_role("row").filter(has_text="lr 0.01")
    for text in ("302.0", "[300.0, 304.0]"):
        expect(row).to_contain_text(text)
    row.get_by_role("button", name=re.compile("Runs of")).click()
    expect(table.get_by_role("link", name="rate 0.01 seed 2")).to_be_visible()

    for rate in (0.01, 0.1):
        tick(table.get_by_role("checkbox", name=f"Select lr {rate}", exact=True))
    selected = page.get_by_role("toolbar", name="Selected runs")
    expect(selected).to_contain_text("10 runs selected")
    selected.get_by_role("link", name="Compare").click()
    _await_group_traces(page, "medians", 2)
    expect(page.get_by_role("status", name="Points drawn")).to_contain_text("band: ± 1 s.e.")
    # Lines and rows are named by what differs; the head states the rest.
    names = page.locator("[class*=endName]")
    expect(names).to_have_count(2)
    assert sorted(names.all_text_contents()) == ["lr 0.01", "lr 0.1"]
    expect(page.get_by_role("main").get_by_text("PAAC · CartPole", exact=True)).to_be_visible()
    rows = page.get_by_role("grid", name="Compared configs").locator("[data-row]")
    expect(rows).to_have_text(["lr 0.015 seeds302.0", "lr 0.15 seedsbaseline102.0"])
    verdict = page.get_by_role("region", name="Verdict")
    expect(verdict).to_contain_text("lr 0.01 is better than the baseline lr 0.1")
    expect(verdict).to_contain_text("+200.0 [197.0, 203.0], p = 0.008, 5 + 5 seeds")

    statistics = page.get_by_role("region", name="Statistics")
    better = statistics.get_by_role("row").filter(has_text="lr 0.01").first
    expect(better).to_contain_text("302.0 [300.0, 304.0]")
    last = statistics.get_by_role("row").last
    # Of the 25 differences between 196 and 204, the third lowest and highest.
    for text in ("100 %", "200.0 [197.0, 203.0]", "A better (p = 0.008)"):
        expect(last).to_contain_text(text)

    statistics.get_by_role("textbox", name="Time to threshold").fill("250")
    page.wait_for_url(re.compile("threshold=250"))
    expect(better).to_contain_text("5 of 5")
    # After 184 episodes of 100 agent steps, 84 of the last hundred returned 300: the mean is 252.
    expect(better).to_contain_text("18.4")
    worse = statistics.get_by_role("row").filter(has_text="lr 0.1").first
    expect(worse).to_contain_text("0 of 5")

    # A window that gets narrower, such as a tablet that is turned.
    page.get_by_role("region", name="Score by hyperparameter").locator(".js-plotly-plot").wait_for()
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_function("() => innerWidth === 390 && document.documentElement.scrollWidth === 390")

    copy = page.context.new_page()
    copy.goto(page.url)
    again = copy.get_by_role("region", name="Statistics")
    expect(again.get_by_role("textbox", name="Time to threshold")).to_have_value("250")
    expect(again.get_by_role("row").filter(has_text="lr 0.01").first).to_contain_text("5 of 5")


@pytest.mark.long
def test_two_seeds_a_side_are_drawn_without_band_or_verdict(
    service_page: Page, sqlite_service: RunningService
) -> None:
    for seed in range(2):
        _train(sqlite_service.engine, 0.01, seed, 300.0 + seed)
        _train(sqlite_service.engine, 0.1, seed, 100.0 + seed)
    page = service_page
    page.goto("/")
    page.get_by_role("combobox", name="Group runs").select_option("seed")
    table = page.get_by_role("table", name="Runs by seed")
    for rate in (0.01, 0.1):
        tick(table.get_by_role("checkbox", name=f"Select lr {rate}", exact=True))
    page.get_by_role("toolbar", name="Selected runs").get_by_role("link", name="Compare").click()
    page.get_by_role("combobox", name="Line").select_option("median")
    page.get_by_role("combobox", name="Band").select_option("ci95")
    _await_group_traces(page, "seeds", 4)
    status = page.get_by_role("status", name="Points drawn")
    expect(status).to_contain_text("each seed (an interval needs 5)")
    expect(status).not_to_contain_text("band")
    last = page.get_by_role("region", name="Statistics").get_by_role("row").last
    expect(last).to_contain_text("100 %")
    expect(last).to_contain_text(
        "not decided: 2 seeds cannot reach p < 0.05 in 1 comparison; 4 seeds per group could"
    )

    # A second panel, of the same groups.
    page.get_by_role("combobox", name="Add a metric").fill("learning")
    page.get_by_role("combobox", name="Add a metric").press("Enter")
    page.wait_for_url(re.compile("metrics=.*optim(/|%2F)learning_rate"))
    _await_group_traces(page, "seeds", 4, "optim/learning_rate")
