"""Panels of the workspace: added, duplicated, moved to a tab, and kept in a view."""

import json
import re
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import Engine

from backend.analysis.metrics import repository as series
from backend.db.engine import writing
from backend.specs.events import PointsEvent
from backend.specs.states import RunState
from tests.browser.axe import axe_violations
from tests.support.rows import make_run
from tests.support.service import RunningService

pytestmark = [pytest.mark.browser, pytest.mark.long]

METRICS = ("rollout/episode_return", "loss/value", "loss/policy")


def _train(engine: Engine, rate: float, n_e: int = 8, seed: int = 0) -> str:
    """A finished run of 100 agent steps."""
    run = make_run(engine, RunState.FINISHED, seed=seed, config={"learning_rate": rate, "n_e": n_e})
    steps = list(range(1, 101))
    points = [
        PointsEvent(
            metric=metric,
            agent_steps=steps,
            frames=steps,
            wall_time_s=[step / 100 for step in steps],
            episodes=list(range(100)),
            value=[1_000 * rate + n_e + seed + step / 100 for step in steps],
        )
        for metric in METRICS
    ]
    with writing(engine) as session:
        series.append(session, run.id, 1, 2, points)
    return run.id


def test_panel_with_a_formula_is_duplicated_moved_to_a_tab_and_kept_in_a_view(
    service_page: Page, sqlite_service: RunningService
) -> None:
    page, engine = service_page, sqlite_service.engine
    ids = [_train(engine, rate) for rate in (0.001, 0.002)]
    page.goto(f"/?list=beside&runs={','.join(ids)}")
    page.get_by_role("button", name="Add panel").click()
    page.get_by_role("menuitem", name="Lines").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("textbox", name="Formulas").fill("ema(loss/value, 0.9) / loss/policy")
    dialog.get_by_role("textbox", name="Title").fill("Ratio")
    dialog.get_by_role("button", name="Add").click()
    ratios = page.get_by_role("heading", name="Ratio", exact=True)
    expect(ratios).to_have_count(1)

    options = page.get_by_role("button", name="Options for Ratio", exact=True)
    options.click()
    page.get_by_role("menuitem", name="Duplicate").click()
    expect(ratios).to_have_count(2)
    expect(page.get_by_role("menu")).to_have_count(0)
    options.last.click()
    page.get_by_role("menuitem", name="Move to a new tab…").click()
    dialog.get_by_role("textbox", name="Name").fill("Losses")
    dialog.get_by_role("button", name="Save").click()
    tab = page.get_by_role("tab", name="Losses")
    expect(tab).to_have_attribute("aria-selected", "true")
    expect(ratios).to_have_count(1)
    expect(
        page.get_by_role("img", name="ema(loss/value, 0.9) / loss/policy of the compared runs")
    ).to_be_visible()

    page.get_by_role("button", name="Save view").click()
    dialog.get_by_role("textbox", name="Name").fill("ratios")
    dialog.get_by_role("button", name="Save").click()
    page.wait_for_url(re.compile("/w/ratios"))
    page.reload()
    expect(ratios).to_have_count(1)
    tab.click()
    expect(ratios).to_have_count(1)
    expect(page.get_by_text("Changed", exact=True)).to_have_count(0)
    [view] = sqlite_service.client.get("/api/v1/views").json()["items"]
    panels = sqlite_service.client.get(f"/api/v1/views/{view['id']}").json()["document"]["panels"]
    assert [(panel["title"], panel["tab"]) for panel in panels] == [
        (None, None),
        ("Ratio", None),
        ("Ratio", "Losses"),
    ]


def test_panels_of_all_kinds_follow_what_a_range_of_an_axis_keeps(
    service_page: Page, sqlite_service: RunningService
) -> None:
    page, engine = service_page, sqlite_service.engine
    ids = [
        _train(engine, rate, n_e, seed)
        for rate in (0.001, 0.002, 0.004)
        for n_e in (8, 16)
        for seed in (0, 1)
    ]
    panels = [
        *({"kind": kind} for kind in ("parallel", "importance", "bars", "heatmap", "strips", "diff")),
        {"kind": "scatter", "columns": 4},
        {"kind": "text", "text": "# A note"},
        {"kind": "lines", "metrics": ["loss/value"], "x": "loss/policy"},
    ]
    query = {"list": "beside", "group": "seed", "runs": ",".join(ids), "panels": json.dumps(panels)}
    page.goto(f"/?{urlencode(query)}")
    drawn = page.get_by_text(re.compile(r"^\d of 6 drawn$"))
    expect(drawn).to_have_text("6 of 6 drawn")
    bars = page.get_by_role("img", name="Score by config").locator(".barlayer .point")
    expect(bars).to_have_count(6)
    cells = page.get_by_role("region", name="Score by two settings").get_by_role("cell")
    expect(cells).to_have_count(6)
    assert not axe_violations(page)

    lowest = page.get_by_role("slider", name="Lowest Learning rate")
    lowest.focus()
    page.keyboard.press("PageUp")
    expect(drawn).to_have_text("4 of 6 drawn")
    expect(bars).to_have_count(4)
    expect(cells).to_have_count(4)
    page.get_by_role("row", name=re.compile("lr 0.004 · nₑ 16")).first.hover()
    expect(page.locator(".barlayer [data-faded]")).to_have_count(3)
    lowest.focus()
    page.keyboard.press("Home")
    expect(drawn).to_have_text("6 of 6 drawn")


def test_two_drawn_runs_have_a_page_of_their_differences(
    service_page: Page, sqlite_service: RunningService
) -> None:
    page, engine = service_page, sqlite_service.engine
    page.goto(f"/?list=beside&runs={_train(engine, 0.001)},{_train(engine, 0.002)}")
    page.get_by_role("link", name="Diff").click()
    expect(page.get_by_text("Same except: Learning rate")).to_be_visible()
    expect(page.get_by_role("region", name="Config").get_by_role("row")).to_have_text(
        [re.compile("lr 0.001.*lr 0.002"), re.compile("Learning rate.*0.001.*0.002")]
    )
    assert not axe_violations(page)
