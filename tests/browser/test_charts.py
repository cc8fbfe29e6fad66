"""The charts of a run: zoomed together, arranged as one likes, and what its method is made of."""

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import Engine

from backend.db.engine import writing
from backend.metrics import repository as series
from backend.specs.events import Points
from backend.specs.states import RunState
from tests.support.runs import make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.browser

RANGE = """label => {
  const chart = document.querySelector(`[role=img][aria-label^="${label}"]`);
  return chart?._fullLayout?.xaxis?.range ?? null;
}"""


def _run(engine: Engine, *metrics: str) -> str:
    run = make_run(engine, RunState.FINISHED, name="charted")
    steps = list(range(0, 10_000, 100))
    points = [
        Points(
            metric=metric,
            agent_steps=steps,
            frames=steps,
            wall_time_s=[step / 100 for step in steps],
            episodes=steps,
            value=[float(step % 700) for step in steps],
        )
        for metric in metrics
    ]
    with writing(engine) as session:
        series.append(session, run.id, 1, 1, points)
    return run.id


def test_a_zoom_in_one_chart_is_a_zoom_in_all(service_page: Page, sqlite_service: RunningService) -> None:
    run_id = _run(sqlite_service.engine, "loss/policy", "loss/value")
    page = service_page
    page.goto(f"/runs/{run_id}")
    drag = page.get_by_role("img", name="loss/policy of charted").locator(".nsewdrag").first
    drag.scroll_into_view_if_needed()
    box = drag.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.25 * box["width"], middle)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.75 * box["width"], middle, steps=4)
    page.mouse.up()
    page.wait_for_function(f"label => ({RANGE})(label)?.[0] > 1000", arg="loss/value of charted")
    zoomed = page.evaluate(RANGE, "loss/policy of charted")
    assert page.evaluate(RANGE, "loss/value of charted") == pytest.approx(zoomed)
    page.mouse.dblclick(box["x"] + 0.5 * box["width"], middle)
    page.wait_for_function(f"label => ({RANGE})(label)?.[0] <= 0", arg="loss/value of charted")


def test_charts_are_hidden_moved_and_enlarged_for_good(
    service_page: Page, sqlite_service: RunningService
) -> None:
    run_id = _run(sqlite_service.engine, "loss/entropy", "loss/policy", "loss/value")
    page = service_page
    page.goto(f"/runs/{run_id}")
    charts = page.get_by_role("region", name="Metrics of loss").get_by_role("img", name="of charted")

    def choose(chart: str, item: str) -> None:
        page.get_by_role("button", name=f"View and save charted {chart}").click()
        page.get_by_role("menu").get_by_text(item, exact=True).click()
        expect(page.get_by_role("menu")).to_have_count(0)

    choose("loss entropy", "Hide")
    choose("loss value", "Move forward")
    choose("loss policy", "Large")
    page.reload()
    expect(charts).to_have_count(2)
    expect(charts.first).to_have_attribute("aria-label", "loss/value of charted")
    small, large = (charts.nth(at).bounding_box() for at in (0, 1))
    assert small is not None
    assert large is not None
    assert large["height"] > 1.5 * small["height"]
    page.get_by_role("button", name="2 of 3 charts").click()
    page.get_by_role("menuitemcheckbox", name="loss/entropy", checked=False).click()
    expect(page.get_by_role("button", name="Charts", exact=True)).to_be_visible()


def test_a_method_shows_what_it_is_made_of(service_page: Page, sqlite_service: RunningService) -> None:
    engine, page = sqlite_service.engine, service_page
    plain = _run(engine, "loss/value", "speed/agent_steps_per_s", "speed/updates_per_s")
    page.goto(f"/runs/{plain}?tab=system")
    expect(page.get_by_role("img", name="speed/updates_per_s of charted")).to_be_visible()
    expect(page.get_by_role("img", name="loss/value of charted")).to_have_count(0)
    expect(page.get_by_role("tab", name="Internals")).to_have_count(0)
    page.goto(f"/runs/{_run(engine, 'ga3c/prediction_queue', 'ga3c/training_queue')}")
    page.get_by_role("tab", name="Internals").click()
    queues = page.get_by_role("img", name="Queue lengths of charted")
    expect(queues).to_be_visible()
    names = "() => [...document.querySelectorAll('[role=img]')].find(e => e.ariaLabel?.startsWith('Queue'))"
    page.wait_for_function(f"() => ({names})()?.data?.every(trace => trace.x.length === 100)")
    assert page.evaluate(f"() => ({names})().data.map(trace => trace.name)") == ["predictions", "trainings"]
