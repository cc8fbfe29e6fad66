import pytest

from backend.drawing.bars import Bar, bars_figure
from backend.drawing.panels import Frame
from tests.backend.drawing.lines import valid

FRAME = Frame("t", ["A3C", "PAAC"])


@pytest.mark.parametrize(("stacked", "mode"), [(True, "stack"), (False, "group")])
def test_bars_of_several_parts_are_stacked_or_stand_side_by_side(stacked: bool, mode: str) -> None:
    bars = [
        Bar("16", "Pong", 0.7, 16, "environments", 2), Bar("32", "Pong", 0.6, 32, "environments", 2),
        Bar("16", "Pong", 0.3, 16, "learning", 2), Bar("32", "Pong", None, 32, "learning"),
    ]  # fmt: skip
    figure = valid(
        bars_figure(
            bars, panels=["Pong"], parts=["environments", "learning"], x="n_e", y="Share", stacked=stacked,
            frame=FRAME,
        )
    )  # fmt: skip
    assert figure.layout.barmode == mode
    assert [(trace.name, list(trace.x), list(trace.y)) for trace in figure.data] == [
        ("environments", ["16", "32"], [0.7, 0.6]), ("learning", ["16"], [0.3])
    ]  # fmt: skip
