"""The charts of a run: linked zoom, arrangement, diagnostics and full screen."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import Engine

from backend.analysis.metrics import repository as series
from backend.db import Run
from backend.db.engine import writing
from backend.specs.events import PointsEvent
from backend.specs.states import RunState
from tests.support.rows import PROVENANCE, add_attempt, make_run
from tests.support.service import RunningService
from tests.support.waiting import rounds

pytestmark = pytest.mark.browser

RANGE = """label => {
  const chart = document.querySelector(`[role=img][aria-label^="${label}"]`);
  return chart?._fullLayout?.xaxis?.range ?? null;
}"""


def _run(engine: Engine, *metrics: str, name: str = "charted") -> str:
    run = make_run(engine, RunState.FINISHED, name=name)
    steps = list(range(0, 10_000, 100))
    points = [
        PointsEvent(
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


def test_pointer_and_zoom_of_one_chart_apply_to_all_charts(
    service_page: Page, sqlite_service: RunningService
) -> None:
    run_id = _run(sqlite_service.engine, "loss/policy", "loss/value", name=f"charted {10 * 'many words '}")
    page = service_page
    page.goto(f"/runs/{run_id}")
    drag = page.get_by_role("img", name="Policy loss of charted").locator(".nsewdrag").first
    page.wait_for_function(RANGE, arg="Value loss of charted")
    drag.hover()  # once it is in view and no longer moves
    cards = [
        page.get_by_role("img", name=f"{chart} of charted").locator("..").get_by_role("presentation")
        for chart in ("Policy loss", "Value loss")
    ]
    for card in cards:
        expect(card).to_be_visible()
        assert card.evaluate("card => card.offsetWidth") <= 240
    values = [card.get_by_role("listitem").locator(".num").inner_text() for card in cards]
    assert values[0] == values[1]
    box = drag.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.25 * box["width"], middle)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.75 * box["width"], middle, steps=4)
    with page.expect_request(lambda request: "x_from=" in request.url):
        page.mouse.up()
    page.wait_for_url("**zoom=**")
    page.wait_for_function(f"label => ({RANGE})(label)?.[0] > 1000", arg="Value loss of charted")
    zoomed = page.evaluate(RANGE, "Policy loss of charted")
    assert page.evaluate(RANGE, "Value loss of charted") == pytest.approx(zoomed)
    drag.dblclick()  # it has moved: the zoomed range has a card above
    page.wait_for_function(f"label => ({RANGE})(label)?.[0] <= 0", arg="Value loss of charted")


@pytest.mark.long
def test_values_at_the_pointer_are_not_cut_off(service_page: Page, sqlite_service: RunningService) -> None:
    run_id = _run(sqlite_service.engine, "rollout/episode_return")
    page = service_page
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"/runs/{run_id}")
    drag = page.get_by_role("region", name="Learning curve").locator(".nsewdrag").first
    drag.hover()
    values = page.get_by_role("presentation").filter(has_text="Agent steps")
    expect(values).to_be_visible()
    clipping = values.evaluate(
        """values => {
          const {bottom} = values.getBoundingClientRect();
          const cut = ({parentElement: above}) => above === null ? [] : [above, ...cut(above)];
          return cut(values)
            .filter(above => ![document.documentElement, document.body].includes(above))
            .filter(above => getComputedStyle(above).overflowY !== "visible")
            .filter(above => above.getBoundingClientRect().bottom < bottom)
            .map(above => above.className);
        }"""
    )
    assert clipping == []


@pytest.mark.long
def test_chart_arrangement_is_kept_after_reload(service_page: Page, sqlite_service: RunningService) -> None:
    run_id = _run(sqlite_service.engine, "loss/entropy", "loss/policy", "loss/value")
    page = service_page
    page.set_viewport_size({"width": 1280, "height": 1600})  # only charts in view are drawn
    page.goto(f"/runs/{run_id}")
    section = page.get_by_role("region", name="Metrics of loss")  # key metrics have charts of the same
    charts = section.get_by_role("img", name="of charted")

    def choose(chart: str, item: str) -> None:
        section.get_by_role("button", name=f"Options for charted {chart}").click()
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


def test_diagnostics_tab_shows_the_metrics_of_the_method(
    service_page: Page, sqlite_service: RunningService
) -> None:
    engine, page = sqlite_service.engine, service_page
    plain = _run(engine, "loss/value", "speed/agent_steps_per_s", "speed/updates_per_s")
    known = PROVENANCE.model_dump()
    add_attempt(engine, plain, provenance=known)
    newer = known | {"packages": {**known["packages"], "torch": "2.10.0"}, "rollout_workers": 2}
    add_attempt(engine, plain, 2, host="b", provenance=newer)
    page.goto(f"/runs/{plain}?tab=system")
    table = page.get_by_role("region", name="Provenance of each attempt")
    expect(table.get_by_role("columnheader")).to_have_text(["Attempt", "1 on a", "2 on b"])
    for fact, values in (
        ("Commit", ["0123456789ab, with uncommitted changes"] * 2),
        ("Processor", ["A processor"] * 2),
        ("Rollout workers", ["–", "2"]),
        ("torch", ["2.9.0", "2.10.0 (changed)"]),
    ):
        expect(table.get_by_role("row", name=fact).get_by_role("cell")).to_have_text([fact, *values])
    expect(page.get_by_role("img", name="speed/updates_per_s of charted")).to_be_visible()
    expect(page.get_by_role("img", name="loss/value of charted")).to_have_count(0)
    expect(page.get_by_role("tab", name="Diagnostics")).to_have_count(0)
    page.goto(f"/runs/{_run(engine, 'ga3c/prediction_queue', 'ga3c/training_queue')}")
    page.get_by_role("tab", name="Diagnostics").click()
    queues = page.get_by_role("img", name="Queue lengths of charted")
    expect(queues).to_be_visible()
    names = "() => [...document.querySelectorAll('[role=img]')].find(e => e.ariaLabel?.startsWith('Queue'))"
    page.wait_for_function(f"() => ({names})()?.data?.filter(trace => trace.x.length === 100).length === 2")
    assert page.evaluate(f"() => ({names})().data.map(trace => trace.name)") == ["training", "prediction"]


@pytest.mark.long
def test_diagnostics_tab_draws_gorila_as_in_its_paper(
    service_page: Page, sqlite_service: RunningService, tmp_path: Path
) -> None:
    run = make_run(
        sqlite_service.engine,
        RunState.RUNNING,
        name="gorila",
        algorithm="gorila_dqn",
        config={"n_actors": 12, "n_learners": 12, "n_shards": 5, "replay": "bundled"},
    )
    parts: dict[str, list[tuple[str, int, Callable[[int], float]]]] = {
        "gorila/shard_updates": [("shard", 5, lambda k: 12_000 + 10 * k)],
        "gorila/version_seen": [("actor", 12, lambda k: 12_000 - 100 * k)],
        "gorila/episodes": [("actor", 12, lambda k: 40 + k)],
        "gorila/replay_fill": [("replay", 12, lambda k: 0.25 + 0.05 * k)],
    }
    bins = {"0": 0.5, "1": 0.3, "2-3": 0.15, "4-7": 0.05}
    whole = {
        "gorila/pushes_per_s": 100.0,
        "gorila/push_bytes_per_s": 3.0 * 2**20,
        "gorila/pulls_per_s": 50.0,
        "gorila/pull_bytes_per_s": 2.0 * 2**20,
        "gorila/stale_discards": 17.0,
        "gorila/outlier_discards": 23.0,
        "gorila/gradient_staleness": 1.5,
        "gorila/gradient_staleness_max": 6.0,
        "speed/updates_per_s": 20.0,
        "speed/agent_steps_per_s": 80.0,
        "loss/td": 0.125,
        "exploration/epsilon": 0.5,
    }
    values = {(metric, ""): value for metric, value in whole.items()}
    values |= {("gorila/gradient_staleness_share", name): share for name, share in bins.items()}
    for metric, [(kind, n, of)] in parts.items():
        values |= {(metric, f"{kind} {k}"): of(k) for k in range(n)}

    def record(step: int, factor: float) -> None:
        points = [
            PointsEvent(
                metric=metric,
                source=source,
                agent_steps=[step],
                frames=[4 * step],
                wall_time_s=[step / 100],
                episodes=[step],
                value=[factor * value],
            )
            for (metric, source), value in values.items()
        ]
        with writing(sqlite_service.engine) as session:
            series.append(session, run.id, 1, 1, points)

    record(100, 0.5)
    record(200, 1.0)
    page = service_page
    page.goto(f"/runs/{run.id}?tab=diagnostics")
    drawn = page.get_by_label("Gorila architecture")
    server = drawn.get_by_label("Parameter server, 5 shards")
    expect(server).to_contain_text("Stale gradients discarded17")
    expect(server).to_contain_text("12.0k")
    expect(drawn).to_contain_text("gradients100/s, 3.0\u00a0MiB/s")
    expect(drawn).to_contain_text("12 bundles of one actor, learner and replay memory")
    learners = drawn.get_by_label("12 learners")
    expect(learners).to_contain_text("Outliers discarded23")
    expect(learners).to_contain_text("up to 50%")
    expect(learners.get_by_title("2-3: 15%")).to_be_attached()
    expect(drawn.get_by_label("Replay memories")).to_contain_text("25% to 80%")
    actors = drawn.get_by_label("12 actors")
    expect(actors).to_contain_text("Episodes by actor40 to 51")
    expect(actors.get_by_title("actor 11: 51")).to_be_attached()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 900})
            page.wait_for_function("width => document.documentElement.scrollWidth <= width", arg=width)
            drawn.screenshot(path=tmp_path / f"gorila-{scheme}-{width}.png")


@pytest.mark.long
@pytest.mark.parametrize(
    ("chart", "menu"),
    [("Learning curve", "charted learning curve"), ("loss/value of charted", "charted loss value")],
)
def test_full_screen_chart_fills_the_screen_and_restores_its_size(
    service_page: Page, sqlite_service: RunningService, chart: str, menu: str
) -> None:
    run_id = _run(sqlite_service.engine, "loss/value", "rollout/episode_return")
    with writing(sqlite_service.engine) as session:
        session.get_one(Run, run_id).episodes = 100  # a curve without any has no film strip
    page = service_page
    page.goto(f"/runs/{run_id}")
    region = "Metrics of loss" if chart.startswith("loss") else "Learning curve"
    section = page.get_by_role("region", name=region)
    section.scroll_into_view_if_needed()  # only charts in view are drawn
    image = section.get_by_role("img", name=chart).first
    drawn = image.locator(".main-svg").first
    expect(drawn).to_be_visible()
    before = drawn.bounding_box()
    for _ in rounds():  # until no part of the page that is still loading moves it
        page.wait_for_timeout(500)
        earlier, before = before, drawn.bounding_box()
        if before == earlier:
            break
    assert before is not None
    section.get_by_role("button", name=f"Options for {menu}").click()
    page.get_by_role("menuitem", name="Full screen").click()
    page.wait_for_function("() => document.fullscreenElement?.matches('.panel')")
    assert image.evaluate("element => document.fullscreenElement.contains(element)")
    height = """([label, least, most]) => {
      const svg = document.querySelector(`[role=img][aria-label^="${label}"] .main-svg`);
      const {width, height} = svg.getBoundingClientRect();
      return height >= least && height <= most && width <= innerWidth;
    }"""
    # The whole screen except the panel's header and padding, and the film strip below the learning curve.
    strip = section.get_by_role("group", name="Recorded episodes")
    strip_px = 0 if chart.startswith("loss") else strip.evaluate("element => element.offsetHeight")
    screen = page.evaluate("innerHeight")
    page.wait_for_function(height, arg=[chart, screen - 120 - strip_px, screen])
    page.evaluate("document.exitFullscreen()")
    page.wait_for_function(height, arg=[chart, before["height"] - 1, before["height"] + 1])
