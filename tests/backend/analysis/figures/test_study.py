from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from backend.analysis.figures import study
from backend.analysis.figures.figure import Figure
from backend.analysis.figures.palette import N_COLOURS, N_STYLES
from backend.analysis.figures.study import ArmCurve, Bar, Frame, RunDot
from backend.statistics.profiles import Profile
from tests.backend.analysis.figures.lines import valid

ARMS = ["A3C", "PAAC"]
FRAME = Frame("t", ARMS)


def curve(arm: str, panel: str, n_runs: int = 1) -> ArmCurve:
    x = np.array([1.0, 2.0])
    return ArmCurve(arm, panel, x, x * 10, x * 9, x * 11, np.full(2, n_runs), n_runs)


def test_curves_have_a_panel_for_each_environment_and_one_legend() -> None:
    curves = [curve("PAAC", "Pong"), curve("A3C", "Pong", 3), curve("A3C", "Breakout", 3)]
    figure = valid(
        study.curves_figure(curves, panels=["Pong", "Breakout", "Qbert"], x="x", y="y", frame=FRAME)
    )
    named = [(trace.name, trace.xaxis, trace.showlegend) for trace in figure.data if trace.name]
    assert named == [("A3C", "x", True), ("A3C", "x2", False), ("PAAC", "x", True)]
    bands = [trace for trace in figure.data if not trace.name]
    assert len(bands) == 4
    assert [note.text for note in figure.layout.annotations] == [
        "<b>Pong</b>",
        "<b>Breakout</b>",
        "<b>Qbert</b>",
    ]
    assert figure.layout.xaxis3.domain[0] > figure.layout.xaxis2.domain[1] > figure.layout.xaxis.domain[1]


def test_mean_of_some_of_the_runs_is_a_thin_line_without_a_band() -> None:
    whole = curve("A3C", "Pong", 3)
    some_runs = replace(whole, n=np.array([3, 1]))
    traces = valid(study.curves_figure([some_runs], panels=["Pong"], x="x", y="y", frame=FRAME)).data
    low, high, line, thin = [(trace.meta["kind"], trace.y, trace.line.width) for trace in traces]
    assert [low, high] == [("range", (9.0, None), 0), ("range", (11.0, None), 0)]
    assert [line, thin] == [("line", (10.0, None), 2), ("partial", (20.0,), 1)]
    assert [trace.customdata for trace in traces[2:]] == [(3, 1), (1,)]
    assert len(valid(study.curves_figure([whole], panels=["Pong"], x="x", y="y", frame=FRAME)).data) == 3


@pytest.mark.parametrize(("width", "columns"), [(390, 1), (700, 2), (1280, 3)])
def test_panels_stand_in_as_many_columns_as_the_width_allows(width: int, columns: int) -> None:
    panels = ["a", "b", "c", "d"]
    frame = Frame("t", ARMS, width_px=width)
    figure = valid(
        study.curves_figure(
            [curve("A3C", panel) for panel in panels], panels=panels, x="x", y="y", frame=frame
        )
    )
    axes = [figure.layout[f"xaxis{'' if at == 1 else at}"].domain for at in range(1, 5)]
    assert len({domain[0] for domain in axes}) == columns


def test_dots_are_drawn_on_a_log_axis_in_the_colour_of_their_arm() -> None:
    dots = [
        RunDot("A3C", "Pong", "r1", 1e-4, 1.0),
        RunDot("A3C", "Pong", "<r2>", 1e-2, 2.0),
        RunDot("PAAC", "Pong", "r3", 1e-3, 3.0),
    ]
    figure = valid(study.dots_figure(dots, panels=["Pong"], x="Rate", y="Score", log=None, frame=FRAME))
    assert [(trace.name, list(trace.x), list(trace.y)) for trace in figure.data] == [
        ("A3C", [1e-4, 1e-2], [1.0, 2.0]), ("PAAC", [1e-3], [3.0])
    ]  # fmt: skip
    assert figure.data[0].text[1] == "&lt;r2&gt;"
    assert (figure.layout.xaxis.type, list(figure.layout.xaxis.tickvals)) == ("log", [1e-4, 1e-3, 1e-2])
    assert list(figure.layout.xaxis.ticktext) == ["1e−4", "0.001", "0.01"]
    drawn = [RunDot("A3C", "Pong", "r", rate, 1.0) for rate in (1.079e-4, 1.208e-4)]
    random = valid(study.dots_figure(drawn, panels=["Pong"], x="Rate", y="Score", log=True, frame=FRAME))
    assert list(random.layout.xaxis.tickvals) == [1.079e-4, 1.208e-4]
    assert figure.data[0].marker.line.color != figure.data[1].marker.line.color


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (23_456.5, 34_567_890.5, ["100k", "1.0M", "10.0M"]),
        (12_345.5, 67_890.5, ["20.0k", "50.0k"]),
        (0.000123, 0.0345, ["0.001", "0.01"]),
        (2.34567, 4.56789, ["2.34567", "4.56789"]),
    ],
)
def test_a_log_axis_of_random_settings_has_texts_of_tables(low: float, high: float, texts: list[str]) -> None:
    dots = [RunDot("A3C", "Pong", "r", value, 1.0) for value in (low, high)]
    axis = valid(study.dots_figure(dots, panels=["Pong"], x="x", y="y", log=True, frame=FRAME)).layout.xaxis
    assert list(axis.ticktext) == texts


def test_sorted_scores_fall_from_the_best() -> None:
    scores = {("A3C", "Pong"): [1.0, 3.0, 2.0], ("PAAC", "Pong"): [5.0]}
    figure = valid(study.sorted_figure(scores, panels=["Pong"], y="Score", frame=FRAME))
    assert [(list(trace.x), list(trace.y)) for trace in figure.data] == [
        ([1, 2, 3], [3.0, 2.0, 1.0]), ([1], [5.0])
    ]  # fmt: skip


@pytest.mark.parametrize(("stacked", "mode"), [(True, "stack"), (False, "group")])
def test_bars_of_several_parts_are_stacked_or_stand_side_by_side(stacked: bool, mode: str) -> None:
    bars = [
        Bar("16", "Pong", 0.7, 16, "environments", 2), Bar("32", "Pong", 0.6, 32, "environments", 2),
        Bar("16", "Pong", 0.3, 16, "learning", 2), Bar("32", "Pong", None, 32, "learning"),
    ]  # fmt: skip
    figure = valid(
        study.bars_figure(
            bars, panels=["Pong"], parts=["environments", "learning"], x="n_e", y="Share", stacked=stacked,
            frame=FRAME,
        )
    )  # fmt: skip
    assert figure.layout.barmode == mode
    assert [(trace.name, list(trace.x), list(trace.y)) for trace in figure.data] == [
        ("environments", ["16", "32"], [0.7, 0.6]), ("learning", ["16"], [0.3])
    ]  # fmt: skip


def test_games_are_ordered_by_their_highest_bar_with_the_reference_as_a_line() -> None:
    bars = [
        Bar("A3C", "Pong", 90.0, "A3C"),
        Bar("PAAC", "Pong", 150.0, "PAAC"),
        Bar("A3C", "Qbert", 120.0, "A3C"),
    ]
    figure = valid(study.games_figure(bars, x="%", reference=100.0, frame=FRAME))
    assert list(figure.layout.yaxis.categoryarray) == ["Qbert", "Pong"]  # from the bottom
    assert (figure.layout.shapes[0].x0, figure.layout.shapes[0].x1) == (100.0, 100.0)


def test_reached_environments_are_counted_by_hour() -> None:
    hours = {"A3C": [2.0, 0.5], "PAAC": []}
    figure = valid(
        study.reached_figure(hours, n_environments=3, furthest=4.0, x="h", unit="min", frame=FRAME)
    )
    a3c, paac = figure.data
    assert "%{x:.3~g} min: %{y} environments" in a3c.hovertemplate
    assert (list(a3c.x), list(a3c.y)) == ([0.0, 0.5, 2.0, 4.0], [0, 1, 2, 2])
    assert list(paac.y) == [0, 0]
    assert a3c.line.shape == "hv"


MANY_ARMS = [f"arm {at}" for at in range(N_STYLES)]
MANY = Frame("t", MANY_ARMS, "dark")


def profiles_of_many() -> Figure:
    x = np.linspace(0.0, 100.0, 3)
    arms = [Profile(arm, x, x / 100, 50.0, 1) for arm in MANY_ARMS]
    return study.profile_figure(arms, x="x", target=100.0, frame=MANY)


def reached_by_many() -> Figure:
    return study.reached_figure(
        {arm: [1.0] for arm in MANY_ARMS}, n_environments=1, furthest=2.0, x="h", unit="h", frame=MANY
    )


def games_of_many() -> Figure:
    bars = [Bar(arm, "Pong", 1.0, arm) for arm in MANY_ARMS]
    return study.games_figure(bars, x="%", reference=None, frame=MANY)


@pytest.mark.parametrize("draw_many", [profiles_of_many, reached_by_many, games_of_many])
def test_any_two_of_many_arms_differ_by_colour_or_by_symbol_or_hatch(draw_many: Callable[[], Figure]) -> None:
    figure = draw_many()
    valid(figure)
    looks = []
    for trace in figure.data:
        marker = trace.get("marker", {})
        pattern = marker.get("pattern", {})
        colour = trace["line"]["color"] if "line" in trace else marker["color"]
        looks.append((colour, marker.get("symbol"), pattern.get("shape"), pattern.get("size")))
    assert len(set(looks)) == N_STYLES
    # Rows of ten colours, each with a symbol or hatch of its own.
    assert len({tuple(marks) for _, *marks in looks}) == N_STYLES // N_COLOURS
    assert {tuple(marks) for _, *marks in looks[:N_COLOURS]} == {(None, None, None)}


def test_counts_are_steps_and_the_rate_has_an_axis_of_its_own() -> None:
    x, y = np.array([0.0, 60.0]), np.array([1.0, 2.0])
    lines = [("ga3c/n_actors", "Agents", x, y), ("speed/updates_per_s", "Updates (TPS)", x, y * 50)]
    figure = valid(study.counts_figure(lines, x="s", second="Updates/s", frame=Frame("t", [])))
    agents, rate = figure.data
    assert (agents.line.shape, agents.yaxis, rate.line.shape, rate.yaxis) == ("hv", "y", None, "y2")
    assert figure.layout.yaxis2.side == "right"
