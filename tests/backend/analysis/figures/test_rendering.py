"""Figures as an offline browser renders them, at telephone and desktop width."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser

from backend.drawing.catalogue import EPISODE_RETURN
from backend.drawing.curve import CurveLine
from backend.drawing.episode_trace import episode_trace_figure
from backend.drawing.figure import Figure, Label
from backend.drawing.learning_curve import Evaluated, Level, learning_curve_figure
from backend.drawing.marks import Mark
from backend.drawing.seed_curve import SeedGroup, seed_curve_figure
from backend.statistics.grouping import Spread
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.browser

RUNS = ["01ARZ3NDEKTSV4RRFFQ69G5FAV", "01BX5ZZKBKACTAV9WEVGEMMVRZ"]


def returns(width_px: int) -> Figure:
    lines = []
    for at, run in enumerate(RUNS):
        y = np.linspace(-20, 15, 500) + np.random.default_rng(at).normal(size=500)
        columns = {"x": np.arange(500) * 2000, "mean": y, "min": y - 2, "max": y + 2, "smoothed": y}
        columns["count"] = np.full(500, 200)
        lines.append(
            CurveLine(run, Label(f"PAAC on Pong, seed {at}"), EPISODE_RETURN, "", columns, 100_000, 500)
        )
    return learning_curve_figure(
        lines,
        x="agent_steps",
        smooth="0.9",
        evaluations=[Evaluated(RUNS[0], "PAAC on Pong, seed 0", "noop_starts", 5e5, 3.0, 30)],
        levels=[Level("random", -20.7, "noop_starts"), Level("human", 9.3, "noop_starts")],
        best=16.0,
        checkpoints=[Mark(RUNS[0], 5e5, "checkpoint at 500,000 agent steps")],
        restarts=[Mark(RUNS[0], 3e5, "attempt 2")],
        setting_changes=[Mark(RUNS[1], 6e5, "beta = 0.02")],
        title="Learning curve, PAAC (Clemente et al. 2017) on Pong, 2 runs",
        width_px=width_px,
    )


def seeds(width_px: int) -> Figure:
    groups = []
    for at, settings in enumerate(("n_e = 16", "n_e = 32")):
        label = Label(settings, n_seeds=5)
        mean = np.linspace(-20, 15 - 5 * at, 500)
        columns = {"x": 2048.0 * np.arange(1, 501), "median": mean, "low": mean - 3, "high": mean + 3}
        columns["n"] = np.full(500, 5)
        groups.append(SeedGroup(RUNS[at], label, "ABCDE", EPISODE_RETURN, "", columns, (), 500_000, 500))
    return seed_curve_figure(
        groups,
        metric=EPISODE_RETURN,
        x="agent_steps",
        spread=Spread("median", "ci95"),
        smooth="0.9",
        title="Learning curve, PAAC (Clemente et al. 2017) on Pong, 10 runs",
        width_px=width_px,
    )


def episode(width_px: int) -> Figure:
    rng = np.random.default_rng(0)
    return episode_trace_figure(
        (rng.random(2000) < 0.01).astype("f8"),
        rng.normal(size=2000),
        rng.dirichlet(np.ones(6), 2000),
        ["NOOP", "FIRE", "RIGHT", "LEFT", "RIGHTFIRE", "LEFTFIRE"],
        lives=3 - np.arange(2000) // 700,
        title="Episode at 1,000,000 agent steps, return 33, PAAC on Breakout",
        width_px=width_px,
    )


@pytest.mark.parametrize("width_px", [390, pytest.param(1280, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "figure",
    [returns, pytest.param(seeds, marks=pytest.mark.long), pytest.param(episode, marks=pytest.mark.long)],
)
def test_figure_is_rendered_without_clipping(
    browser: Browser, tmp_path: Path, figure: Callable[[int], Figure], width_px: int
) -> None:
    path = tmp_path / "figure.html"
    drawn = figure(width_px)
    drawn.layout["height"] = 640
    path.write_text(drawn.to_html(), encoding="utf-8")
    page = browser.new_page(viewport={"width": width_px, "height": 640}, offline=True)
    page.set_default_timeout(PATIENCE_S * 1000)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.goto(path.as_uri())
    page.locator(".xaxislayer-above text, .xaxislayer-below text").first.wait_for()
    boxes = page.locator(".main-svg text").evaluate_all(
        "texts => texts.filter(t => t.textContent).map(t => [t.textContent, t.getBoundingClientRect()])"
    )
    assert len(boxes) > 15
    for text, box in boxes:
        assert box["left"] >= 0, text
        assert box["top"] >= 0, text
        assert box["right"] <= width_px + 16, text  # the page has a margin of 8 on either side
    titles = page.locator(".main-svg .g-gtitle text").evaluate_all(
        "texts => texts.map(text => text.getBoundingClientRect())"
    )
    inside = page.evaluate("document.querySelector('.js-plotly-plot')._fullLayout._size")
    assert titles
    assert max(box["bottom"] for box in titles) <= inside["t"] + 8
    assert inside["w"] > 0.75 * width_px
    assert inside["h"] > 200
    assert errors == []
    page.close()


def test_marks_without_values_are_rendered(browser: Browser, tmp_path: Path) -> None:
    empty = {name: np.zeros(0) for name in ("x", "mean", "min", "max", "smoothed", "count")}
    figure = learning_curve_figure(
        [CurveLine(RUNS[0], Label("PAAC on Pong"), EPISODE_RETURN, "", empty, 0, 0)],
        x="agent_steps",
        smooth="0.9",
        restarts=[Mark(RUNS[0], 3e5, "attempt 2")],
    )
    path = tmp_path / "figure.html"
    path.write_text(figure.to_html(), encoding="utf-8")
    page = browser.new_page(offline=True)
    page.set_default_timeout(PATIENCE_S * 1000)
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.goto(path.as_uri())
    page.locator(".overplot .lines, .scatterlayer .lines").first.wait_for(state="attached")
    page.wait_for_function("document.querySelector('.js-plotly-plot')._fullLayout._size.w > 0")
    assert errors == []
    page.close()
