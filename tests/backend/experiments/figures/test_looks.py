from collections.abc import Callable

import numpy as np
import pytest

from backend.drawing.bars import Bar
from backend.drawing.figure import Figure
from backend.drawing.palette import N_COLOURS, N_STYLES
from backend.drawing.panels import Frame
from backend.drawing.profiles import profile_figure
from backend.experiments.figures.kinds.games import games_figure
from backend.experiments.figures.kinds.reached import reached_figure
from backend.statistics.profiles import Profile
from tests.backend.drawing.lines import valid

MANY_ARMS = [f"arm {at}" for at in range(N_STYLES)]
MANY = Frame("t", MANY_ARMS, "dark")


def profiles_of_many() -> Figure:
    x = np.linspace(0.0, 100.0, 3)
    arms = [Profile(arm, x, x / 100, 50.0, 1) for arm in MANY_ARMS]
    return profile_figure(arms, x="x", target=100.0, frame=MANY)


def reached_by_many() -> Figure:
    return reached_figure(
        {arm: [1.0] for arm in MANY_ARMS}, n_environments=1, furthest=2.0, x="h", unit="h", frame=MANY
    )


def games_of_many() -> Figure:
    bars = [Bar(arm, "Pong", 1.0, arm) for arm in MANY_ARMS]
    return games_figure(bars, x="%", reference=None, frame=MANY)


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
