"""Six tasks that users bring to the pages: clicks, typed keys, and the seconds that the pages take for them.

A choice from a list counts as two clicks. The seconds are the pages' own: this user neither reads nor thinks.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Self

import pytest
from playwright.sync_api import Locator, Page, expect
from sqlalchemy import Engine

from backend.analysis.metrics import repository as series
from backend.db import Run
from backend.db.engine import writing
from backend.specs.events import PointsEvent
from backend.specs.states import RunState
from tests.browser.boxes import tick
from tests.support.artifacts import make_episode
from tests.support.rows import make_run
from tests.support.service import RunningService

pytestmark = [pytest.mark.browser, pytest.mark.benchmark]

EIGHT_RATES = [0.0001 * 100 ** (at / 7) for at in range(8)]


class Task:
    """Counts what the user does, and prints it with the time since the first click."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.n_clicks = self.n_keys = 0
        self._marks: list[str] = []
        self._begun = 0.0

    def __enter__(self) -> Self:
        self._begun = perf_counter()
        return self

    def __exit__(self, *error: object) -> None:
        print(f"\n{self._name}: {self.n_clicks} clicks, {self.n_keys} keys; {', '.join(self._marks)}")  # noqa: T201

    def click(self, target: Locator, modifier: str | None = None) -> None:
        """Click something."""
        self.n_clicks += 1
        target.click(modifiers=["Shift"] if modifier else None)

    def tick(self, box: Locator) -> None:
        """Click a checkbox."""
        self.n_clicks += 1
        tick(box)

    def choose(self, select: Locator, value: str) -> None:
        """Choose an entry of a list."""
        self.n_clicks += 2
        select.select_option(value)

    def write(self, field: Locator, text: str, *, focused: bool = False) -> None:
        """Replace the text of a field."""
        self.n_clicks += not focused
        self.n_keys += len(text)
        field.fill(text)

    def done(self, what: str) -> None:
        """Note the time at which something is on the screen."""
        self._marks.append(f"{what} after {perf_counter() - self._begun:.1f} s")


def _trained(engine: Engine, rates: Sequence[float]) -> None:
    """Five finished runs of each learning rate, with 250 episodes; the lower rates score higher."""
    steps = [100 * (at + 1) for at in range(250)]
    for place, rate in enumerate(rates):
        for seed in range(5):
            name = f"paac CartPole-v1 learning_rate={rate:.4g} seed {seed}"
            run = make_run(engine, RunState.FINISHED, seed=seed, config={"learning_rate": rate}, name=name)
            score = 400.0 - 40 * place + seed
            points = PointsEvent(
                metric="rollout/episode_return",
                agent_steps=steps,
                frames=steps,
                wall_time_s=[step / 1000 for step in steps],
                episodes=list(range(250)),
                value=[0.0] * 100 + [score] * 150,
            )
            with writing(engine) as session:
                series.append(session, run.id, 1, 2, [points])
                row = session.get_one(Run, run.id)
                row.score, row.best_return = score, score


def _await_groups(page: Page, n: int) -> None:
    page.wait_for_function(
        """n => document.querySelector('[role=img][aria-label^="Learning curves"]')?.data
          ?.filter(trace => trace.meta?.group && 'n' in trace.meta && trace.x.length)
          .length === n""",
        arg=n,
    )


def test_five_seeds_of_paac_are_started_on_breakout(
    service_page: Page, sqlite_service: RunningService
) -> None:
    page = service_page
    page.goto("/")
    with Task("Train PAAC on Breakout with five seeds") as task:
        task.click(page.get_by_role("link", name="New run").first)
        search = page.get_by_role("combobox", name="Search environments")
        task.write(search, "breako", focused=True)
        search.press("Enter")
        task.n_keys += 1
        task.write(page.get_by_label("Seeds", exact=False), "5")
        task.click(page.get_by_role("button", name="Start 5 runs"))
        expect(page.get_by_role("toolbar", name="Selected runs")).to_contain_text("5 runs selected")
        task.done("five runs in the list")
    runs = sqlite_service.client.get("/api/v1/runs").json()["items"]
    assert {(run["algorithm"], run["environment"]) for run in runs} == {("paac", "ALE/Breakout-v5")}


def test_the_better_of_two_learning_rates_is_found(
    service_page: Page, sqlite_service: RunningService
) -> None:
    _trained(sqlite_service.engine, (0.01, 0.1))
    page = service_page
    page.goto("/")
    with Task("Which of these two learning rates is better, and is it sure?") as task:
        task.choose(page.get_by_role("combobox", name="Group runs"), "seed")
        table = page.get_by_role("table", name="Runs by seed")
        for rate in (0.01, 0.1):
            task.tick(table.get_by_role("checkbox", name=f"Select lr {rate}", exact=True))
        task.click(page.get_by_role("toolbar", name="Selected runs").get_by_role("link", name="Compare"))
        expect(page.get_by_role("region", name="Statistics")).to_contain_text(re.compile("[AB] better"))
        task.done("the verdict")
        _await_groups(page, 2)
        task.done("both curves")


def test_the_moment_of_a_lost_life_is_found(
    service_page: Page, sqlite_service: RunningService, tmp_path: Path
) -> None:
    engine = sqlite_service.engine
    run = make_run(engine, RunState.FINISHED, name="one that lost lives")
    make_episode(engine, run, sqlite_service.artifacts, tmp_path, lives=(3, 3, 2, 2, 1))
    page = service_page
    page.goto("/")
    with Task("Show me the moment it lost a life, and its value estimate there") as task:
        task.click(page.get_by_role("link", name="one that lost lives"))
        task.click(page.get_by_role("button", name="Next lost life"))
        position = page.get_by_role("slider", name="Position in the episode")
        expect(position).to_have_attribute("aria-valuenow", "2")
        expect(page.get_by_role("list", name=re.compile("Policy"))).to_contain_text("50%")
        task.done("value and policy")


def test_eight_learning_rates_are_started_and_compared(
    service_page: Page, sqlite_service: RunningService
) -> None:
    page = service_page
    page.goto("/")
    with Task("Start eight learning rates with five seeds each") as task:
        task.click(page.get_by_role("link", name="New run").first)
        search = page.get_by_role("combobox", name="Search environments")
        task.write(search, "cartp", focused=True)
        search.press("Enter")
        task.n_keys += 1
        task.write(page.locator("[name='config.learning_rate']"), "0.0001..0.01 log 8")
        task.write(page.get_by_label("Seeds", exact=False), "5")
        task.click(page.get_by_role("button", name="Start 40 runs"))
        expect(page.get_by_role("main")).to_contain_text("40 runs")
        expect(page.get_by_role("link", name="learning_rate=0.01 seed 4")).to_be_visible()
        task.done("forty runs in the list")


def test_the_best_of_eight_learning_rates_is_found_and_drawn(
    service_page: Page, sqlite_service: RunningService
) -> None:
    _trained(sqlite_service.engine, EIGHT_RATES)
    page = service_page
    page.goto("/")
    with Task("Which of these eight learning rates is best, and is it sure?") as task:
        task.tick(page.get_by_role("checkbox", name="Select all loaded runs"))
        task.click(page.get_by_role("toolbar", name="Selected runs").get_by_role("link", name="Compare"))
        expect(page.get_by_role("region", name="Statistics")).to_contain_text("6 seeds per group could")
        task.done("the medians, and that seven seeds each could be sure")
        scatter = page.get_by_role("img", name=re.compile("of each run by .*learning_rate"))
        scatter.scroll_into_view_if_needed()
        expect(scatter).to_be_visible()
        task.done("learning rate against final score of 40 runs")


def test_ten_runs_are_exported(service_page: Page, sqlite_service: RunningService) -> None:
    _trained(sqlite_service.engine, EIGHT_RATES[:2])
    page = service_page
    page.goto("/")
    with Task("Export these ten runs for a colleague") as task:
        boxes = page.get_by_role("checkbox", name=re.compile("^Select paac"))
        task.tick(boxes.first)
        task.click(boxes.nth(9), "Shift")
        selected = page.get_by_role("toolbar", name="Selected runs")
        expect(selected).to_contain_text("10 runs selected")
        task.click(selected.get_by_role("button", name="Export"))
        with page.expect_download() as download:
            task.click(page.get_by_role("menuitem", name=re.compile("CSV")))
        path = download.value.path()
        task.done(f"a file of {path.stat().st_size / 1e3:.0f} kB")
    assert (
        len({line.split(",")[0] for line in path.read_text().splitlines() if not line.startswith("#")}) >= 10
    )
