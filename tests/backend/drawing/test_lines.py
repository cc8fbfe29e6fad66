import itertools

import numpy as np

from backend.drawing.export_script import matplotlib_script
from backend.drawing.figure import Label
from backend.drawing.lines import DASHES, LineText, Sheet, group_lines_figure, lines_figure, titles_of
from backend.drawing.seed_curve import SeedGroup
from backend.statistics.grouping import Spread
from tests.backend.drawing.lines import line, valid

TEXTS = [LineText(f"loss/{n}") for n in range(9)] + [LineText("loss/0 / loss/1", is_formula=True)]
SHEET = Sheet(TEXTS, "agent_steps", None, "Losses", "")


def test_no_two_lines_of_several_runs_look_alike() -> None:
    runs = [f"run{n}" for n in range(10)]
    lines = [line(run, entry.text) for run, entry in itertools.product(runs, TEXTS)]
    figure = lines_figure(lines, SHEET, styles={run: n for n, run in enumerate(runs)})
    looks = {
        (trace.line.color, trace.line.dash) for trace in valid(figure).data if trace.meta["kind"] == "line"
    }
    assert len(looks) == len(lines) == 100
    assert len({trace["uid"] for trace in figure.data}) == len(figure.data)


def test_no_two_lines_look_alike_in_an_exported_file() -> None:
    lines = [line(run, entry.text) for run, entry in itertools.product("AB", TEXTS)]
    script = matplotlib_script(lines_figure(lines, SHEET, styles={"A": 0, "B": 1}))
    literal = script.split("FIGURE = ")[1]
    dashes = {part.split(",\n")[0] for part in literal.split("'dash': ")[1:]}
    assert len(dashes) == len(DASHES)


def test_lines_of_one_group_have_a_colour_each() -> None:
    grid = {"x": np.array([1.0, 2.0]), "n": np.array([2, 2])}
    grid |= {name: np.array([1.0, 2.0]) for name in ("mean", "median", "iqm", "low", "high")}
    groups = [
        SeedGroup("g", Label(entry.text), ["A", "B"], entry.text, "", grid, n_total=4, n_shown=2)
        for entry in TEXTS[:3]
    ]
    figure = valid(group_lines_figure(groups, SHEET, spread=Spread.chosen(None, "se"), styles={"g": 4}))
    lines = [trace.line for trace in figure.data if trace.meta["kind"] == "line"]
    assert len({look.color for look in lines}) == 3
    assert {look.dash for look in lines} == {None}


def test_lines_of_equal_titles_are_called_by_their_names() -> None:
    # A formula may be called as a metric is.
    drawn = [LineText("loss/value"), LineText("Value loss", is_formula=True)]
    assert titles_of(drawn) == ["loss/value", "Value loss"]


def test_what_is_empty_is_named_without_axes_where_nothing_is_drawn() -> None:
    sheet = Sheet(TEXTS[:1], "agent_steps", None, "Losses", "", empty=["loss/0"])
    figure = valid(lines_figure([], sheet, styles={}))
    assert figure.layout.annotations[0].text == "No values of loss/0"
    assert (figure.layout.xaxis.visible, figure.layout.yaxis.visible) == (False, False)
