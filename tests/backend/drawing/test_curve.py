from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from backend.drawing.curve import Band, CurveLine, add_lines, curve_figure
from backend.drawing.figure import Figure, Label, uid_of
from backend.drawing.palette import MAX_SYMBOLS, N_STYLES, colours, look
from tests.backend.drawing.lines import A, B, drawn, line, numbers, valid

COLUMNS = {
    "x": np.array([10, 20, 30, 40]),
    "mean": np.array([1.0, 2.0, 3.0, 4.0]),
    "min": np.array([0.0, 1.0, 2.0, 3.0]),
    "max": np.array([2.0, 3.0, 4.0, 9.0]),
    "smoothed": np.array([1.0, 1.0, 2.0, 3.0]),
}


def draw(*lines: CurveLine, **more: Any) -> go.Figure:
    defaults: dict[str, Any] = {"metric": "loss/value", "x": "agent_steps"}
    return valid(curve_figure(lines, **(defaults | more)))


WINDOW = {
    "window_x": np.array([10.0, 15.0, 25.0, 35.0]),
    "window_mean": np.array([1.0, 1.5, 2.5, 3.5]),
    "window_low": np.array([np.nan, 1.0, 2.0, 2.5]),
    "window_high": np.array([np.nan, 2.0, 3.0, 4.5]),
    "window_n": np.array([1, 2, 2, 2]),
}
OVER = "over 20 agent steps"


def test_single_line_of_window_means_has_faint_points_and_their_standard_deviation() -> None:
    alone = line(columns=COLUMNS | WINDOW | {"count": np.array([8, 9, 1, 8])})
    figure = draw(alone, smooth=OVER)
    band, points, main = drawn(figure)
    assert (main.x, main.y) == ((10, 15, 25, 35), (1.0, 1.5, 2.5, 3.5))
    assert main.meta["low"] == [None, 1.0, 2.0, 2.5]
    assert main.meta["high"] == [None, 2.0, 3.0, 4.5]
    assert main.meta["n"] == [1, 2, 2, 2]
    assert (points.mode, points.x, points.y) == ("markers", (30,), (3.0,))
    assert points.marker.color.endswith("0.25)")
    assert band.fill == "toself"
    assert band.x == (15, 25, 35, 35, 25, 15)
    assert band.y == (2.0, 3.0, 4.5, 2.5, 2.0, 1.0)
    assert [trace.showlegend for trace in figure.data] == [False, False, True, True]
    assert [trace.hoverinfo for trace in (band, points, main)] == ["skip", "skip", None]
    assert main.line.color.startswith("#")
    assert (
        "mean over 20 agent steps · band: ± 1 s.d."
        in draw(line(columns=alone.columns, n_total=4, n_shown=4), smooth=OVER).layout.title.subtitle.text
    )


def test_only_lines_are_drawn_from_two_on() -> None:
    columns = COLUMNS | WINDOW | {"count": np.array([8, 9, 1, 8])}
    figure = draw(line(A, columns=columns), line(B, columns=columns), smooth=OVER)
    assert [trace.meta["kind"] for trace in figure.data] == ["line", "line"]
    banded = draw(line(A, columns=columns), line(B, columns=columns), smooth=OVER, band="sd")
    assert [trace.meta["kind"] for trace in banded.data] == ["range", "line", "range", "line", "legend"]


def test_range_of_buckets_of_many_points_is_drawn_where_asked_for() -> None:
    few = line(columns=COLUMNS | {"count": np.array([8, 9, 1, 8])})
    envelope, points, main = drawn(draw(few, smooth="0.9", band="min_max"))
    assert main.y == (1.0, 1.0, 2.0, 3.0)
    assert main.meta["low"] == [0.0, 1.0, 2.0, 3.0]
    assert envelope.x == (10, 20, 20, 10, None, 40, 40)
    assert envelope.y == (2.0, 3.0, 1.0, 0.0, None, 9.0, 3.0)
    assert envelope.name == "min–max"
    assert points.y == (3.0,)
    assert [trace.meta["kind"] for trace in draw(few, smooth="0.9").data] == ["points", "line"]
    assert [trace.meta["kind"] for trace in draw(few, smooth="0.9", band="sd").data] == ["points", "line"]


def test_legend_names_the_range_once_and_only_where_it_is_drawn() -> None:
    many: dict[str, Any] = {"columns": COLUMNS | {"count": np.full(4, 8)}}
    few: dict[str, Any] = {"columns": COLUMNS | {"count": np.full(4, 7)}}

    def named(*lines: CurveLine) -> list[str]:
        return [t.name for t in draw(*lines, band="min_max").data if t.showlegend]

    assert named(line(A, **few), line(B, **few)) == ["a run"] * 2
    assert sorted(named(line(A, **few), line(B, **many))) == ["a run", "a run", "min–max"]
    assert sorted(named(line(A, **many), line(B, **many))) == ["a run", "a run", "min–max"]


def test_episodes_that_end_at_one_agent_step_are_averaged() -> None:
    columns = {
        "x": np.array([10, 10, 20, 20, 20]),
        "count": np.array([1, 3, 1, 0, 1]),
        "mean": np.array([0.0, 4.0, 6.0, np.nan, 8.0]),
        "min": np.array([0.0, 1.0, 6.0, np.nan, 8.0]),
        "max": np.array([0.0, 7.0, 6.0, np.nan, 8.0]),
        "smoothed": np.array([0.0, 2.0, 3.0, 3.5, 4.0]),
    }
    points, main = drawn(draw(line(columns=columns), smooth="0.9"))
    assert (main.x, main.y) == ((10, 20), (2.0, 4.0))
    assert points.y == (3.0, 7.0)


def test_curve_without_smoothing_draws_mean() -> None:
    [main] = drawn(draw(line()))
    assert main.y == (1.0, None, 3.0)
    assert main.meta["kind"] == "line"


@pytest.mark.parametrize("metric", ["eval/noop_starts/mean_return", "optim/learning_rate"])
def test_means_and_schedules_are_not_smoothed(metric: str) -> None:
    figure = draw(line(metric=metric, n_total=3, n_shown=3), metric=metric, smooth="0.9")
    assert [trace.y for trace in drawn(figure)] == [(1.0, None, 3.0)]
    assert figure.layout.title.subtitle.text == "3 points"


def test_line_of_few_points_has_markers() -> None:
    def mode(n: int, **more: Any) -> str:
        columns = {name: np.arange(float(n)) for name in ("x", "mean", "min", "max")}
        [main] = drawn(draw(line(columns=columns | {"count": np.ones(n)}, **more)))
        return str(main.mode)

    assert [mode(1), mode(8), mode(9)] == ["lines+markers", "lines+markers", "lines"]


def test_traces_state_what_they_show() -> None:
    traces = drawn(draw(line(source="actor 1", label=Label("a run", detail="actor 1")), smooth="0.5"))
    assert [trace.meta["kind"] for trace in traces] == ["points", "line"]
    assert {(t.meta["run"], t.meta["metric"], t.meta["source"]) for t in traces} == {
        (A, "loss/value", "actor 1")
    }
    assert traces[-1].meta["label"] == {"name": "a run", "detail": "actor 1"}
    assert traces[-1].name == "a run, actor 1"
    assert len({trace.uid for trace in traces}) == 2


def growing(start: int | None, first: int, count: int = 8) -> CurveLine:
    """A line of buckets from `first` to 5 that is new from `start` on."""
    at = np.arange(first, 6)
    columns = {"x": 10 * at + 10, "mean": 1.0 * at, "min": at - 1.0, "max": at + 1.0, "smoothed": 2.0 * at}
    return line(columns=columns | {"count": np.full(len(at), count), "bucket": at}, start=start)


def updates(
    grown: CurveLine, smooth: str = "", style: int = 0, band: Band = "min_max"
) -> dict[str, dict[str, Any]]:
    """What a client lacks of a figure of the line, by kind of trace."""
    figure = Figure()
    styles = {grown.run: style}
    add_lines(figure, [grown], metric="loss/value", smooth=smooth, band=band, styles=styles, theme="light")
    document = figure.document()
    assert "layout" not in document
    names = {"line": grown.key, "range": f"{grown.key} range", "points": f"{grown.key} points"}
    kinds = {uid_of(name): kind for kind, name in (names | {"legend": "min–max"}).items()}
    return {kinds[trace["uid"]]: trace for trace in document["data"]}


def test_update_has_the_new_points_alone() -> None:
    update = updates(growing(4, 3, count=2), smooth="0.9")
    points = {"uid": uid_of(f"{A} loss/value points"), "from": 4, "x": [50, 60], "y": [4.0, 5.0], "meta": {}}
    details = {"low": [3.0, 4.0], "high": [5.0, 6.0], "n": [2, 2]}
    main = {"uid": uid_of(f"{A} loss/value"), "from": 4, "x": [50, 60], "y": [8.0, 10.0], "meta": details}
    assert update == {"points": points, "line": main}
    assert updates(growing(6, 6), smooth="0.9") == {}


def test_range_of_an_update_joins_the_last_bucket_that_the_client_keeps() -> None:
    update = updates(growing(4, 3))
    envelope = update["range"]
    assert (envelope["from"], numbers(envelope["x"])) == (4, [None, 40, 50, 60, 60, 50, 40])
    assert numbers(envelope["y"]) == [None, 4, 5, 6, 4, 3, 2]
    # A client that gets bucket 4 again drops the join with it.
    assert numbers(envelope["meta"]["bucket"]) == [4, 4, 4, 5, 5, 4, 4]
    assert update["legend"] == {"uid": uid_of("min–max"), "showlegend": True}


def line_of(figure: go.Figure, run: str) -> go.Scatter:
    return next(t for t in drawn(figure) if t.meta["run"] == run and t.showlegend)


def test_one_run_is_a_solid_line_in_the_accent_colour() -> None:
    alone = line_of(draw(line(A)), A)
    assert (alone.line.color, alone.line.dash, alone.line.width) == ("#3f4fc4", None, 2)
    assert alone.marker.symbol is None


def test_runs_have_styles_in_their_order_or_the_given_ones() -> None:
    both = [line(B), line(A)]
    assert [line_of(draw(*both), run).line.color for run in (B, A)] == list(colours("light")[:2])
    figure = draw(*both, styles={A: 3, B: 41})
    assert [line_of(figure, run).line.color for run in (A, B)] == [
        look(3, "light").colour,
        look(41, "light").colour,
    ]


def test_lines_after_the_tenth_have_a_few_symbols_and_none_is_dashed() -> None:
    figure = draw(*(line(f"{at:026d}") for at in range(25)))
    lines = [trace for trace in drawn(figure) if trace.meta["kind"] == "line"]
    assert {trace.line.dash for trace in lines} == {None}
    assert {trace.marker.symbol for trace in lines[:10]} == {None}
    assert [trace.marker.symbol for trace in lines[10:]] == ["square"] * 10 + ["triangle-up"] * 5
    assert {trace.mode for trace in lines[10:]} == {"lines+markers"}
    assert {trace.marker.maxdisplayed for trace in lines[10:]} == {MAX_SYMBOLS}


def test_update_keeps_the_symbols_of_a_line() -> None:
    assert updates(growing(4, 0))["line"]["mode"] == "lines+markers"
    main = updates(growing(4, 0), style=12)["line"]
    assert "mode" not in main
    assert "marker" not in main


def test_sources_of_one_run_have_a_colour_each_and_a_vertical_legend() -> None:
    figure = draw(line(), line(source="actor 0"), line(source="actor 1"))
    assert len({t.line.color for t in drawn(figure) if t.showlegend}) == 3
    assert drawn(figure)[-1].showlegend
    assert figure.layout.legend.orientation == "v"
    alone = next(t for t in drawn(draw(line())) if t.showlegend)
    assert alone.line.color == next(t for t in drawn(figure) if t.showlegend).line.color


def test_sources_of_several_runs_have_a_look_each_and_the_first_that_of_its_run() -> None:
    lines = [line(run, source=f"actor {at}") for run in (B, A) for at in range(2)]
    traces = drawn(draw(*lines, styles={B: 2, A: 0}))
    assert [trace.line.color for trace in traces] == [look(style, "light").colour for style in (2, 1, 0, 3)]
    many = drawn(draw(*(line(run, source=f"actor {at}") for run in (A, B) for at in range(51))))
    looks = [(trace.line.color, trace.marker.symbol) for trace in many]
    assert len(set(looks)) == N_STYLES
    assert [looks[0], looks[51]] == [(colour, None) for colour in colours("light")[:2]]


def test_axes_and_title_name_their_quantities() -> None:
    layout = draw(line(), x="frames").layout
    assert layout.xaxis.title.text == "Emulator frames"
    assert layout.yaxis.title.text == "Value loss"
    assert layout.title.text == "Value loss"
    assert draw(line(), metric="my/own_metric").layout.title.text == "my/own_metric"
    assert draw(line(), metric="my/own_metric").layout.yaxis.title.text == "Own metric"
    scripts = draw(line(), metric="<i>R</i> < 1").layout
    assert scripts.title.text == "&lt;i&gt;R&lt;/i&gt; &lt; 1"
    assert scripts.yaxis.title.text == "I&gt; &lt; 1"
    evaluation = draw(line(), metric="eval/noop_starts/mean_return").layout
    assert "no-op starts" in evaluation.yaxis.title.text


def test_layout_has_unified_tooltip_outside_legend_and_automargins() -> None:
    layout = draw(line()).layout
    assert layout.hovermode == "x unified"
    assert (layout.legend.orientation, layout.legend.yref) == ("h", "container")
    assert layout.template.layout.xaxis.automargin
    assert layout.template.layout.yaxis.automargin


def test_subtitle_states_number_of_points() -> None:
    subtitle = draw(line(n_total=4000, n_shown=1000), smooth="0.9").layout.title.subtitle.text
    assert "1,000 of 4,000 points" in subtitle
    assert "smoothed 0.9" in subtitle
    assert draw(line(n_total=7, n_shown=7)).layout.title.subtitle.text == "7 points"


@pytest.mark.parametrize("width_px", [390, 1280, None])
def test_title_wraps_to_figure_width(width_px: int | None) -> None:
    figure = draw(
        line(),
        title="PAAC on Montezuma's Revenge, with five seeds of each of two settings",
        width_px=width_px,
    )
    lines = figure.layout.title.text.split("<br>")
    assert (len(lines) > 1) == (width_px == 390)
    assert figure.layout.width == width_px
    assert figure.layout.margin.t >= 30 + 20 * (len(lines) - 1)


def test_light_and_dark_theme_differ_in_colours() -> None:
    light, dark = draw(line(), theme="light"), draw(line(), theme="dark")
    assert light.layout.template.layout.paper_bgcolor == "#ffffff"
    assert light.layout.template.layout.paper_bgcolor != dark.layout.template.layout.paper_bgcolor
    assert drawn(light)[-1].line.color in colours("light")
    assert drawn(dark)[-1].line.color in colours("dark")


def test_more_than_ten_lines_have_no_band() -> None:
    figure = draw(*(line(f"{at:026d}", n_total=100, n_shown=10) for at in range(11)), smooth="0.9")
    assert [trace.meta["kind"] for trace in figure.data] == ["line"] * 11
