"""Figures as a browser draws them, with no network, from a telephone's width up."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import pytest
from playwright.sync_api import Browser, sync_playwright

from backend.figures.curve import Line
from backend.figures.episode_trace import episode_trace
from backend.figures.learning_curve import METRIC, Evaluated, Level, learning_curve
from backend.figures.marks import Mark
from backend.figures.seed_curve import Group, seed_curve

pytestmark = pytest.mark.browser

RUNS = ["01ARZ3NDEKTSV4RRFFQ69G5FAV", "01BX5ZZKBKACTAV9WEVGEMMVRZ"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    assert path, "these tests need Chromium (the package chromium)"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


def returns(width_px: int) -> go.Figure:
    lines = []
    for at, run in enumerate(RUNS):
        y = np.linspace(-20, 15, 500) + np.random.default_rng(at).normal(size=500)
        columns = {"x": np.arange(500) * 2000, "mean": y, "min": y - 2, "max": y + 2, "smoothed": y}
        lines.append(Line(run, f"PAAC on Pong, seed {at}", METRIC, "", columns, 100_000, 500))
    return learning_curve(
        lines,
        x="agent_steps",
        smooth=0.9,
        evaluations=[Evaluated(RUNS[0], "PAAC on Pong, seed 0", "noop_starts", 5e5, 3.0, 30)],
        levels=[Level("random", -20.7, "noop_starts"), Level("human", 9.3, "noop_starts")],
        best=16.0,
        checkpoints=[Mark(RUNS[0], 5e5, "checkpoint at 500,000 agent steps")],
        restarts=[Mark(RUNS[0], 3e5, "attempt 2")],
        setting_changes=[Mark(RUNS[1], 6e5, "beta = 0.02 from here on")],
        title="Learning curve, PAAC (Clemente et al. 2017) on Pong, 2 runs",
        width_px=width_px,
    )


def seeds(width_px: int) -> go.Figure:
    groups = []
    for at, name in enumerate(("PAAC on Pong (n_e = 16)", "PAAC on Pong (n_e = 32)")):
        mean = np.linspace(-20, 15 - 5 * at, 500)
        columns = {"x": 2048.0 * np.arange(1, 501), "mean": mean, "low": mean - 3, "high": mean + 3}
        columns["n"] = np.full(500, 5)
        groups.append(Group(RUNS[at], name, 5, METRIC, "", columns, 500_000, 500))
    return seed_curve(
        groups,
        metric=METRIC,
        x="agent_steps",
        interval="95 % CI of the mean (Student's t)",
        smooth=0.9,
        title="Learning curve, PAAC (Clemente et al. 2017) on Pong, 10 runs",
        width_px=width_px,
    )


def episode(width_px: int) -> go.Figure:
    rng = np.random.default_rng(0)
    return episode_trace(
        (rng.random(2000) < 0.01).astype("f8"),
        rng.normal(size=2000),
        rng.dirichlet(np.ones(6), 2000),
        ["NOOP", "FIRE", "RIGHT", "LEFT", "RIGHTFIRE", "LEFTFIRE"],
        lives=3 - np.arange(2000) // 700,
        title="Episode at 1,000,000 agent steps, return 33, PAAC on Breakout",
        width_px=width_px,
    )


@pytest.mark.parametrize("width_px", [390, 1280])
@pytest.mark.parametrize("figure", [returns, seeds, episode])
def test_drawn_whole(browser: Browser, tmp_path: Path, figure, width_px: int) -> None:
    path = tmp_path / "figure.html"
    figure(width_px).update_layout(height=640).write_html(path)
    page = browser.new_page(viewport={"width": width_px, "height": 640}, offline=True)
    page.set_default_timeout(20_000)
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
