import ast
import csv
import io
import json
import math
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from backend.drawing.branch import FanLine, branch_figure
from backend.drawing.catalogue import EPISODE_RETURN
from backend.drawing.cells import of_cell
from backend.drawing.diagnostics import BY_ID, diagnostic_figure
from backend.drawing.episode_trace import TracePanel, episode_trace_figure
from backend.drawing.export_caption import caption
from backend.drawing.export_script import ScriptOptions, matplotlib_script
from backend.drawing.export_series import COLUMNS, as_csv, drawn_series
from backend.drawing.figure import Figure, Label
from backend.drawing.learning_curve import Evaluated, Level, learning_curve_figure
from backend.drawing.marks import Mark
from backend.drawing.panels import Frame
from backend.drawing.scatter import Dot, scatter_figure
from backend.drawing.seed_curve import SeedGroup, seed_curve_figure
from backend.drawing.theme import tick_text
from backend.experiments.figures.kinds.counts import counts_figure
from backend.http.figures import FigureForm
from backend.platform.errors import Invalid
from backend.statistics.grouping import Spread
from tests.backend.drawing.lines import A, B, line
from tests.backend.drawing.test_gaps import figure_of

HOSTILE = [
    "'''\n\"\"\"); import os; os.system('touch /tmp/owned') #",
    "$\\frac{1}{0}$ \\$ 100 % {x} {0} %s",
    '_hidden, "quoted" \\N{NULL} \\u0000 \x1b[2J </script><b>',
    "=1+1\t; ß ε −",
]


def rows_of(figure: Figure) -> list[dict[str, str]]:
    rows = list(csv.DictReader(io.StringIO(as_csv(figure))))
    assert all(tuple(row) == COLUMNS for row in rows)
    return rows


def numbers(rows: list[dict[str, str]], name: str) -> list[float | None]:
    return [float(row[name]) if row[name] else None for row in rows]


def groups(names: list[str], n_seeds: int = 5, n_points: int = 40) -> Figure:
    rng = np.random.default_rng(0)
    several = []
    for number, name in enumerate(names):
        mean = np.cumsum(rng.normal(1, 1, n_points))
        columns = {"x": 64.0 * np.arange(1, n_points + 1), "mean": mean, "median": mean, "iqm": mean}
        # Its shortest seed ends before the others.
        n = np.where(np.arange(n_points) < n_points - 5, n_seeds, n_seeds - 1)
        columns |= {"low": mean - 1 / 3, "high": mean + 1 / 7, "n": n}
        columns["low"][-1] = columns["high"][-1] = np.nan
        several.append(
            SeedGroup(
                id=f"g{number}",
                label=Label(name, n_seeds=n_seeds),
                runs=[f"{number}{seed}" for seed in range(n_seeds)],
                metric=EPISODE_RETURN,
                source="",
                columns=columns,
                seed_values=[mean, mean + 1] if n_seeds == 2 else (),
                is_partial=True,
                n_total=900,
                n_shown=n_points,
            )
        )
    spread = Spread("mean", "se" if n_seeds > 2 else "ci95")
    return seed_curve_figure(
        several, metric=EPISODE_RETURN, x="agent_steps", spread=spread, smooth="0.9", title="Training return"
    )


def test_csv_has_centre_band_and_number_of_seeds_of_each_group() -> None:
    figure = groups(["PAAC on Pong", "A3C, on Pong"])
    rows = rows_of(figure)
    assert len(rows) == 2 * (40 + 5)
    for at, name in enumerate(("PAAC on Pong", "A3C, on Pong")):
        low, high, centre, thin = figure.data[4 * at : 4 * at + 4]
        group_rows = [row for row in rows if row["series"] == f"{name} (n = 5)"]
        whole, partial = group_rows[:40], group_rows[40:]
        assert {row["kind"] for row in whole} == {"line"}
        assert numbers(whole, "x") == centre["x"].tolist()
        assert numbers(whole, "y")[:35] == centre["y"][:35].tolist()
        assert numbers(whole, "low")[:35] == low["y"][:35].tolist()
        assert numbers(whole, "high")[:35] == high["y"][:35].tolist()
        assert {(row["y"], row["low"], row["high"]) for row in whole[35:]} == {("", "", "")}
        assert numbers(whole, "n") == centre["customdata"].tolist()
        assert {(row["kind"], row["low"], row["n"]) for row in partial} == {("partial", "", "4")}
        assert numbers(partial, "x") == thin["x"].tolist() == centre["x"][35:].tolist()
        assert numbers(partial, "y") == thin["y"].tolist()


def test_csv_has_each_seed_where_they_are_too_few_for_a_band() -> None:
    figure = groups(["PAAC on Pong"], n_seeds=2)
    rows = rows_of(figure)
    assert [numbers(rows[:40], "y"), numbers(rows[40:], "y")] == [t["y"].tolist() for t in figure.data]
    assert [row["number"] for row in rows[::40]] == ["0", "1"]


def test_csv_of_a_curve_has_the_range_where_it_is_drawn() -> None:
    columns = {
        "x": np.array([10.0, 20.0, 30.0, 40.0, 50.0, 60.0]),
        "mean": np.array([1.0, 2.0, 3.0, np.nan, 5.0, 6.0]),
        "min": np.array([0.0, 1.0, 2.0, np.nan, 4.0, 5.0]),
        "max": np.array([2.0, 3.0, 4.0, np.nan, 6.0, 7.0]),
        "count": np.array([8, 9, 2, 0, 8, 8]),
        "smoothed": np.array([1.0, 1.5, 2.5, np.nan, 4.0, 5.0]),
    }
    a_run = line(metric=EPISODE_RETURN, label=Label("a <run>"), columns=columns)
    figure = learning_curve_figure([a_run], x="agent_steps", smooth="0.9", band="min_max")
    rows = rows_of(figure)
    curve = [row for row in rows if row["kind"] == "line"]
    assert {(row["series"], row["run"], row["metric"]) for row in curve} == {("a <run>", A, EPISODE_RETURN)}
    assert numbers(curve, "x") == [10, 20, 30, 40, 50, 60]
    assert numbers(curve, "y") == [1.0, 1.5, 2.5, None, 4.0, 5.0]
    drawn = {row["x"]: (row["low"], row["high"]) for row in curve}
    ranges = {x: edges for x, edges in drawn.items() if edges != ("", "")}
    assert ranges == {"10": ("0", "2"), "20": ("1", "3"), "50": ("4", "6"), "60": ("5", "7")}
    points = [row for row in rows if row["kind"] == "points"]
    assert [(row["x"], row["y"]) for row in points] == [("30", "3"), ("40", "")]


def everything() -> Figure:
    """A learning curve with all that one can have."""
    return learning_curve_figure(
        [line(A, metric=EPISODE_RETURN), line(B, metric=EPISODE_RETURN, label=Label("another run"))],
        x="agent_steps",
        smooth="0.9",
        evaluations=[Evaluated(A, "a run", "plain", 20.0, 5.0, 30)],
        levels=[Level("human", 9.3, "noop_starts"), Level("random", -20.7, "noop_starts")],
        best=4.0,
        checkpoints=[Mark(A, 10.0, "checkpoint at 10 agent steps")],
        restarts=[Mark(B, 20.0, "attempt 2")],
    )


def test_csv_has_evaluations_marks_and_published_scores() -> None:
    rows = rows_of(everything())
    marks = {row["series"]: (row["x"], row["text"]) for row in rows if row["kind"] == "marks"}
    assert marks == {
        "evaluations": ("20", "a run: evaluation (standard resets), mean return 5 of 30 episodes"),
        "restarts": ("20", "attempt 2"),
    }
    levels = [row for row in rows if row["kind"] == "reference"]
    assert sorted((float(row["y"]), row["x"]) for row in levels) == [(-20.7, ""), (9.3, "")]
    assert "human 9.3 (published, no-op starts)" in {row["series"] for row in levels}


def shares() -> Figure:
    columns = {name: np.array([0.25, 0.5]) for name in ("mean", "min", "max", "smoothed")}
    columns |= {"x": np.array([10.0, 20.0]), "count": np.array([1, 1])}
    lines = [
        line(metric=metric, columns=columns) for metric in ("paac/time_environment", "paac/time_choosing")
    ]
    return diagnostic_figure(BY_ID["time_usage"], lines, x="agent_steps", smooth="", title="Time breakdown")


def test_stacked_shares_have_their_edges() -> None:
    first, second = drawn_series(shares())
    assert (first.y, first.low, first.high) == ([0.25, 0.5], [0.0, 0.0], [0.25, 0.5])
    assert (second.y, second.low, second.high) == ([0.25, 0.5], [0.25, 0.5], [0.5, 1.0])


def test_figure_with_an_unknown_type_of_trace_is_refused() -> None:
    figure = Figure(data=[{"type": "heatmap", "z": [[1.0]]}])
    with pytest.raises(ValueError, match="heatmap"):
        as_csv(figure)
    with pytest.raises(ValueError, match="heatmap"):
        matplotlib_script(figure)


def scatter(x: list[Any]) -> Figure:
    dots = [
        Dot(run, f"run {run}", value, float(at), "s", "PAAC")
        for at, (run, value) in enumerate(zip("ABC", x, strict=True))
    ]
    return scatter_figure(dots, x="config.network", y="Score", title="Score by network")


def bars() -> Figure:
    figure = Figure({"title": {"text": "Scores"}, "xaxis": {"type": "category"}})
    figure.data.append(
        {
            "type": "bar",
            "name": "A",
            "x": ["Pong", "Q*bert"],
            "y": [1.0, 2.0],
            "error_y": {"array": [0.5, 0.25]},
        }
    )
    return figure


def with_lane() -> Figure:
    """Curves above a lane of events, with a stretch over the whole height that is no band of the line."""
    figure = Figure(
        {
            "xaxis": {"anchor": "y2", "title": {"text": "Agent steps"}, "rangemode": "tozero"},
            "yaxis": {"domain": [0.13, 1.0], "title": {"text": "Loss"}},
            "yaxis2": {"domain": [0.0, 0.09], "range": [0, 1], "visible": False, "anchor": "x"},
            "yaxis3": {"overlaying": "y", "anchor": "x", "range": [0, 1], "visible": False},
            "shapes": [
                {
                    "type": "rect",
                    "x0": 10,
                    "x1": 20,
                    "y0": 0,
                    "y1": 1,
                    "yref": "y domain",
                    "fillcolor": "#eeeeee",
                }
            ],
        }
    )
    steps = np.arange(10.0, 60.0, 10.0)
    facts = {"run": A, "metric": "loss/value", "source": ""}
    figure.add_scatter(
        x=steps,
        y=steps / 10,
        mode="lines",
        name="a run",
        line={"color": "#3f4fc4"},
        meta=facts | {"kind": "line"},
    )
    corners = {"x": np.array([30.0, 40.0, 40.0, 30.0]), "y": np.array([0.0, 0.0, 1.0, 1.0])}
    figure.add_scatter(
        **corners,
        fill="toself",
        fillcolor="rgba(200,40,40,0.1)",
        yaxis="y3",
        showlegend=False,
        meta=facts | {"kind": "not_finite"},
    )
    marker = {"symbol": "triangle-right", "size": 9, "color": "#3f4fc4"}
    figure.add_scatter(
        x=[20.0], y=[0.5], mode="markers", marker=marker, name="restarts", yaxis="y2", meta={"kind": "marks"}
    )
    return figure


def test_stretch_over_the_whole_height_is_no_band_of_its_line() -> None:
    line, stretch, mark = drawn_series(with_lane())
    assert line.low == []
    assert (stretch.kind, stretch.x, stretch.low, stretch.high) == ("not_finite", [30, 40], [0, 0], [1, 1])
    assert (mark.kind, mark.x) == ("marks", [20])


def redrawn(figure: Figure, folder: Path, *arguments: str, **options: Any) -> Path:
    """The script of a figure, run in a process of its own beside the CSV; warnings are errors."""
    script = folder / "figure.py"
    script.write_text(matplotlib_script(figure, caption(figure), ScriptOptions(**options)), encoding="utf-8")
    (folder / "figure.csv").write_text(as_csv(figure), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script), *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(folder / "figure.pdf"), str(folder / "figure.svg")]
    return folder


def drawn_lines(folder: Path) -> list[str]:
    """The paths of lines in the redrawn SVG."""
    return re.findall(r'<path d="([^"]+)" clip-path', (folder / "figure.svg").read_text())


@pytest.mark.long
@pytest.mark.service
def test_script_redraws_groups_of_seeds_with_embedded_fonts(tmp_path: Path) -> None:
    folder = redrawn(groups(["PAAC on Pong", "A3C on Pong"]), tmp_path, width_in=3.25)
    pdf = (folder / "figure.pdf").read_bytes()
    assert b"/FontFile2" in pdf
    assert re.search(rb"/MediaBox \[ 0 0 234 [\d.]+ \]", pdf) is not None, "3.25 in"
    assert "<text" not in (folder / "figure.svg").read_text(), "outlines"
    corners = [path.count("L") for path in drawn_lines(folder)]
    assert corners.count(34) == 2, "a line of 35 points of all seeds for each group"
    assert corners.count(4) >= 2, "and one of five points of fewer seeds"


@pytest.mark.long
@pytest.mark.service
def test_script_is_higher_for_panels_below_one_another(tmp_path: Path) -> None:
    ones = np.ones(5)
    panels: list[TracePanel] = ["reward", "value", "value_error"]
    episode = episode_trace_figure(ones, ones, np.empty((5, 0)), [], panels=panels, returns=np.zeros(5))
    pdf = (redrawn(episode, tmp_path, width_in=3.25, legend="none") / "figure.pdf").read_bytes()
    [height] = re.findall(rb"/MediaBox \[ 0 0 234 ([\d.]+) \]", pdf)
    assert float(height) > 3 * 72


def drawn(figure: Figure) -> list[Any]:
    """The plots of matplotlib, with every series drawn and finished."""
    script: dict[str, Any] = {"__name__": "script"}
    exec(matplotlib_script(figure), script)
    plots: list[Any] = script["panels"](script["Figure"]())
    rows = rows_of(figure)
    for series in script["FIGURE"]["series"]:
        own = [row for row in rows if int(row["number"]) == series["number"]]
        script["draw"](plots[series["panel"]], series, own, 1.0)
    for plot, panel in zip(plots, script["FIGURE"]["panels"], strict=True):
        script["finish"](plot, panel, log=False)
    return plots


def fan() -> Figure:
    """A branch of three continuations, one of which was cut off."""
    lines = [
        FanLine(np.array([0.0, 1.0, total]), total, is_bootstrapped=total == 4.0) for total in (2.0, 3.0, 4.0)
    ]
    return branch_figure(
        lines, lines[0], value=2.5, value_name="V", y="Discounted return", title="A branch", subtitle=""
    )


def test_script_draws_v_of_a_branch_and_the_outlines_of_its_ends() -> None:
    [plot] = drawn(fan())
    by_data = {(tuple(line.get_xdata()), tuple(line.get_ydata())): line for line in plot.lines}
    v = by_data[((0.0, 1.03 * 2), (2.5, 2.5))]
    assert v.get_linestyle() == "--"
    [whole, cut_off] = [by_data[((2.0, 2.0), (2.0, 3.0))], by_data[((2.0,), (4.0,))]]
    assert whole.get_markerfacecolor() != cut_off.get_markerfacecolor()
    assert whole.get_markeredgecolor() == cut_off.get_markeredgecolor() == whole.get_markerfacecolor()
    assert cut_off.get_markeredgewidth() > 0


def counts() -> Figure:
    """Two numbers of processes and a rate, which has the axis at the right."""
    times = np.array([0.0, 10.0, 20.0])
    lines = [
        ("predictors", "Predictors", times, np.array([1.0, 2.0, 2.0])),
        ("trainers", "Trainers", times, np.array([1.0, 1.0, 3.0])),
        ("rate", "Trainings per second", times, np.array([120.0, 180.0, 150.0])),
    ]
    frame = Frame(title="Adjustment", arms=[], theme="light", width_px=None)
    return counts_figure(lines, x="Time (s)", second="Trainings per second", frame=frame)


def test_script_draws_a_rate_by_an_axis_of_its_own_at_the_right() -> None:
    left, right = drawn(counts())
    assert [list(line.get_ydata()) for line in left.lines] == [[1, 2, 2], [1, 1, 3]]
    [rate] = right.lines
    assert list(rate.get_ydata()) == [120, 180, 150]
    assert rate.get_transform().contains_branch(right.transData)
    assert right.get_position().bounds == left.get_position().bounds
    assert right.yaxis.get_ticks_position() == "right"
    assert (left.get_ylabel(), right.get_ylabel()) == ("Number", "Trainings per second")
    assert left.get_ylim()[1] < 10 < 180 <= right.get_ylim()[1]
    assert right.get_xlim() == left.get_xlim() == (0.0, left.get_xlim()[1])
    assert (left.spines["right"].get_visible(), right.spines["right"].get_visible()) == (False, True)


@pytest.mark.parametrize(("mode", "way"), [("stack", "v"), ("group", "v"), ("group", "h")])
def test_script_redraws_bars_on_top_of_or_beside_each_other(mode: str, way: str) -> None:
    axis = {"type": "category", "categoryarray": ["c", "a", "b"]} if way == "h" else {"type": "category"}
    figure = Figure({"barmode": mode, "yaxis" if way == "h" else "xaxis": axis})
    for name, values in (("first", [1.0, 2.0, 3.0]), ("second", [4.0, 5.0, 6.0])):
        names = ["a", "b", "c"]
        x, y = (values, names) if way == "h" else (names, values)
        figure.data.append({"type": "bar", "orientation": way, "name": name, "x": x, "y": y})
    script: dict[str, Any] = {"__name__": "script"}
    exec(matplotlib_script(figure), script)
    drawing = script["Figure"]()
    [axes] = script["panels"](drawing)
    rows = rows_of(figure)
    for series in script["FIGURE"]["series"]:
        script["draw"](axes, series, [row for row in rows if int(row["number"]) == series["number"]], 1.0)
    edges = [bar.get_bbox() for bar in axes.patches]
    drawn = [
        ((box.y0, box.y1, box.x0, box.x1) if way == "h" else (box.x0, box.x1, box.y0, box.y1))
        for box in edges
    ]
    # Of each bar: from and to across, from and to along.
    first = {"v": [0, 1, 2], "h": [1, 2, 0]}[way]
    left, right = ((-0.4, 0.4), (-0.4, 0.4)) if mode == "stack" else ((-0.4, 0.0), (0.0, 0.4))
    base = [1, 2, 3] if mode == "stack" else [0, 0, 0]
    expected = [
        (place + left[0], place + left[1], 0, value) for place, value in zip(first, (1, 2, 3), strict=True)
    ]
    expected += [
        (place + right[0], place + right[1], low, low + value)
        for place, low, value in zip(first, base, (4, 5, 6), strict=True)
    ]
    assert [pytest.approx(bar) for bar in expected] == drawn
    ticks = (axes.yaxis if way == "h" else axes.xaxis).get_ticklabels()
    assert [tick.get_text() for tick in ticks] == (["c", "a", "b"] if way == "h" else ["a", "b", "c"])


def test_script_hatches_bars_as_the_figure_does() -> None:
    figure = Figure({"barmode": "group", "xaxis": {"type": "category"}})
    for shape, size in ((None, 0), ("/", 5), ("/", 12)):
        pattern = {"pattern": {"shape": shape, "size": size, "fgcolor": "#ffffff"}} if shape else {}
        marker = {"color": "#3f4fc4", **pattern}
        figure.data.append(
            {"type": "bar", "name": f"{shape}{size}", "x": ["a"], "y": [1.0], "marker": marker}
        )
    script: dict[str, Any] = {"__name__": "script"}
    exec(matplotlib_script(figure), script)
    [axes] = script["panels"](script["Figure"]())
    entries = [script["draw"](axes, series, [], 1.0) for series in script["FIGURE"]["series"]]
    assert [entry.get_hatch() for entry in entries] == [None, "///", "/"]
    assert {entry.get_facecolor() for entry in entries} == {entries[0].get_facecolor()}
    assert entries[1].get_edgecolor() == (1.0, 1.0, 1.0, 1.0)


@pytest.mark.service
@pytest.mark.long
@pytest.mark.parametrize(
    ("figure", "legend"),
    [
        (everything(), "below"),
        (shares(), "right"),
        (scatter([1.0, 10.0, 100.0]), "inside"),
        (scatter(["nips", "nature", "nips"]), "none"),
        (bars(), "inside"),
        (with_lane(), "below"),
        (fan(), "right"),
        (counts(), "inside"),
    ],
    ids=["learning curve", "shares", "log axis", "categories", "bars", "lane", "branch", "counts"],
)
def test_script_redraws_every_kind_of_figure(figure: Figure, legend: str, tmp_path: Path) -> None:
    redrawn(figure, tmp_path, legend=legend, title="A title of $5")


@pytest.mark.long
@pytest.mark.service
@pytest.mark.parametrize("place", ["below", "right", "inside"])
@pytest.mark.parametrize("name", ["W" * 90, "M" * 12 + " and " + "W" * 40, "short"])
def test_script_keeps_legends_with_wide_letters_within_the_page(
    name: str, place: str, tmp_path: Path
) -> None:
    script = tmp_path / "figure.py"
    script.write_text(matplotlib_script(groups(["A", "B"])), encoding="utf-8")
    drawing = runpy.run_path(str(script))
    with drawing["matplotlib"].rc_context({"font.size": 8, "legend.fontsize": 8}):
        figure = drawing["Figure"](figsize=(3.25, 4), layout="constrained")
        drawing["FigureCanvasAgg"](figure)
        axes = figure.add_subplot()
        lines = [drawing["Line2D"]([], []) for _ in range(3)]
        drawing["add_legend"](figure, axes, lines, [name, "another", name], place, 3.25, 8)
        figure.draw_without_rendering()
        [legend] = figure.legends or [axes.get_legend()]
        place_of_legend = legend.get_window_extent()
    assert place_of_legend.x0 >= 0
    assert place_of_legend.x1 <= figure.bbox.width


def hostile() -> Figure:
    figure = groups(HOSTILE)
    figure.layout["title"]["text"] = HOSTILE[0]
    figure.layout["yaxis"]["title"]["text"] = HOSTILE[1]
    figure.add_annotation(text=HOSTILE[1], x=0.5, y=0.5, xref="paper", yref="paper", showarrow=False)
    return figure


def test_names_enter_the_script_as_literals_only() -> None:
    def parts(figure: Figure, text: str) -> list[ast.stmt]:
        return ast.parse(matplotlib_script(figure, text, ScriptOptions(title=text))).body

    code, literal = [], {}
    for nodes in (parts(groups(["A", "B", "C", "D"]), ""), parts(hostile(), HOSTILE[0])):
        (assigned,) = [node for node in nodes if isinstance(node, ast.Assign)]
        literal = ast.literal_eval(assigned.value)
        code.append([ast.dump(node) for node in nodes if node is not assigned])
    assert code[0] == code[1]
    assert literal["title"] == literal["caption"] == HOSTILE[0]
    labels = [line["label"] for line in literal["series"] if line["label"]]
    assert labels[1] == f"{HOSTILE[1]} (n = 5)"
    assert "\x1b" not in labels[2], "control characters are left out"


@pytest.mark.long
@pytest.mark.service
def test_script_with_hostile_names_draws_them_as_text(tmp_path: Path) -> None:
    folder = redrawn(hostile(), tmp_path, title=HOSTILE[2], legend="right")
    ElementTree.fromstring((folder / "figure.svg").read_text())
    assert sorted(path.name for path in folder.iterdir()) == [
        f"figure.{end}" for end in ("csv", "pdf", "py", "svg")
    ]


def test_caption_states_series_n_estimator_band_and_smoothing() -> None:
    assert caption(groups(["PAAC on Pong", "A3C on Pong"])) == (
        "Training return. PAAC on Pong (n = 5); A3C on Pong (n = 5). Mean over seeds. "
        "Band: ± 1 s.e. Thin and dotted where not all seeds have a value. Each seed smoothed 0.9. "
        "80 grid points from 1,800 points."
    )


@pytest.mark.long
@pytest.mark.service
def test_stretch_that_is_not_finite_is_hatched_and_counted_in_the_redrawn_figure(tmp_path: Path) -> None:
    measured = [*np.linspace(1, 2, 10), *[np.nan] * 5, np.inf, *np.linspace(2, 3, 10)]
    figure = figure_of(measured, 1, "over 35 agent steps")
    assert caption(figure).endswith("Hatched where values are not finite: 5 NaN, 1 Inf.")
    redrawn(figure, tmp_path)
    svg = (tmp_path / "figure.svg").read_text()
    assert "<!-- 5 NaN, 1 Inf -->" in svg
    ids = re.findall(r'<pattern id="([^"]+)"', svg)
    assert len(ids) == 1
    assert f"url(#{ids[0]})" in svg
    assert b"/PatternType 1" in (tmp_path / "figure.pdf").read_bytes()
    rows = [row for row in rows_of(figure) if row["kind"] == "not_finite"]
    ends = sorted(float(row["x"]) for row in rows if row["x"])
    assert (ends[0], ends[-1]) == (100.0, 160.0)


def test_text_that_a_spreadsheet_would_execute_is_a_text_in_the_csv_and_as_given_when_read() -> None:
    names = ['=HYPERLINK("x")', "-1+1", "@a", "'=b"]
    rows = rows_of(groups(names))
    labels = {row[COLUMNS[1]] for row in rows}
    assert not [label for label in labels if label.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert {of_cell(label).partition(" (")[0].partition(",")[0] for label in labels} >= {"-1+1", "@a", "'=b"}


NUMBERS = Path(__file__).parents[4] / "frontend" / "src" / "lib" / "numbers.json"
"""Numbers with the texts that Plotly has for them, those of tables, and those of axes where they differ."""


def test_script_and_ticks_have_the_numbers_of_pages() -> None:
    script: dict[str, Any] = {"__name__": "imported"}
    exec(matplotlib_script(groups(["a"])), script)
    cases = [(value, texts[-1]) for value, *texts in json.loads(NUMBERS.read_text("utf-8"))]
    # JSON has none of these.
    cases += [(math.nan, "NaN"), (math.inf, "∞"), (-math.inf, "−∞"), (-0.0, "0")]
    for write in (script["tick_text"], tick_text):
        assert [write(value) for value, _ in cases] == [text for _, text in cases]


def test_file_has_the_texts_and_the_order_of_an_edited_legend() -> None:
    figure = groups(["lr 0.1", "lr 0.2"])
    arranged = FigureForm("csv", ScriptOptions(), {1: "second <b>", 0: "first"}).arranged(figure)
    labels = [series.label for series in drawn_series(arranged) if series.kind == "line"]
    assert labels == ["second <b>", "first"]
    assert FigureForm("csv", ScriptOptions()).arranged(figure) is figure
    with pytest.raises(Invalid, match="no entry 2"):
        FigureForm("csv", ScriptOptions(), {2: "third"}).arranged(figure)
