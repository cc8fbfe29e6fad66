"""The list beside the charts: twenty runs in eight configs, what is drawn, and the verdict on it."""

import re

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import Engine

from backend.analysis.metrics import repository as series
from backend.db.engine import writing
from backend.specs.events import PointsEvent
from backend.specs.states import RunState
from tests.support.rows import make_run
from tests.support.service import RunningService

pytestmark = [pytest.mark.browser, pytest.mark.long]

RATES = [0.001 * 2**at for at in range(8)]
"""Of higher rates the score is higher."""


def _train(engine: Engine, rate: float, seed: int) -> str:
    """A run of 100 episodes, finished at 1,000 agent steps."""
    run = make_run(engine, RunState.FINISHED, seed=seed, config={"learning_rate": rate})
    steps = [10 * (at + 1) for at in range(100)]
    points = PointsEvent(
        metric="rollout/episode_return",
        agent_steps=steps,
        frames=steps,
        wall_time_s=[step / 100 for step in steps],
        episodes=list(range(100)),
        value=[10_000 * rate + seed] * 100,
    )
    with writing(engine) as session:
        series.append(session, run.id, 1, 2, [points])
    return run.id


def test_eight_configs_are_identified_compared_and_given_more_seeds(
    service_page: Page, sqlite_service: RunningService
) -> None:
    page, engine = service_page, sqlite_service.engine
    n_seeds = [2, 2, 2, 2, 3, 3, 3, 3]
    ids = [_train(engine, rate, seed) for rate, n in zip(RATES, n_seeds, strict=True) for seed in range(n)]
    page.goto(f"/compare?runs={','.join(ids)}&group=seed")
    page.wait_for_url(re.compile(r"/\?runs=.*list=beside"))
    rows = page.get_by_role("grid", name="Compared configs").locator("[data-row]")
    names = [f"lr {rate:.3g}" for rate in reversed(RATES)]
    ends = page.locator("[class*=endName]")
    expect(rows).to_have_count(8)
    expect(rows.first).to_contain_text(names[0])
    # The best six are drawn, and each line has its name in the chart.
    expect(ends).to_have_count(6)
    assert sorted(ends.all_text_contents()) == sorted(names[:6])
    verdict = page.get_by_role("region", name="Verdict")
    expect(verdict).to_contain_text(f"{names[0]} is ahead of the baseline {names[5]}")
    expect(verdict).to_contain_text("2 hidden configs not tested")

    rows.nth(1).hover()
    expect(page.locator("[class*=endName][data-faded]")).to_have_count(5)
    page.get_by_role("button", name="Draw all").click()
    expect(ends).to_have_count(8)

    # One click compares with another config, whose line is wider.
    star = page.get_by_role("button", name=f"Compare the others with {names[1]}")
    star.click()
    page.wait_for_url(re.compile("baseline=[0-9a-f]{16}"))
    expect(star).to_have_attribute("aria-pressed", "true")
    expect(verdict).to_contain_text(f"the baseline {names[1]}")
    scores = page.get_by_role("region", name="Scores by config").get_by_role("row")
    expect(scores.filter(has_text=names[0]).first).to_contain_text(re.compile(r"\+640.*p ="))
    expect(page.locator(".scatterlayer .js-line[style*='stroke-width: 3.5px']")).to_have_count(1)
    rows.nth(4).get_by_role("button", name=re.compile("^Actions for")).click()
    page.get_by_role("menuitem", name="Pin to the top").click()
    expect(rows.first).to_contain_text(names[4])
    rows.first.get_by_role("button", name=re.compile("^Actions for")).click()
    page.get_by_role("menuitem", name="Unpin").click()
    expect(rows.first).to_contain_text(names[0])

    page.get_by_role("button", name="IQM").click()
    expect(rows.first).to_contain_text(names[-1])
    rows.first.focus()
    page.keyboard.press("x")
    expect(ends).to_have_count(7)
    page.wait_for_url(re.compile("hidden=[0-9a-f]{16}"))
    expect(page.get_by_role("radiogroup", name="Layout").get_by_role("radio", name="Both")).to_be_checked()
    page.keyboard.press("[")
    expect(rows).to_have_count(0)
    page.reload()
    expect(ends).to_have_count(7)

    verdict.get_by_role("button", name=re.compile("^Queue ")).click()
    expect(verdict).to_contain_text(re.compile(r"\d+ seeds queued or training"))
    expect(verdict.get_by_role("button")).to_have_count(0)
