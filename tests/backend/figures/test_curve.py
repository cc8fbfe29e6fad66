import numpy as np
import pytest

from backend.figures.curve import Line, curve
from backend.figures.theme import DASHES, colour_index, colours, styles

A, B = "01ARZ3NDEKTSV4RRFFQ69G5FAV", "01BX5ZZKBKACTAV9WEVGEMMVRZ"


def line(run: str = A, metric: str = "loss/value", **more) -> Line:
    columns = {
        "x": np.array([10, 20, 30]),
        "mean": np.array([1.0, np.nan, 3.0]),
        "min": np.array([0.0, np.nan, -np.inf]),
        "max": np.array([2.0, np.nan, 4.0]),
        "smoothed": np.array([1.0, 1.0, 2.0]),
    }
    return Line(**({"run": run, "name": "a run", "metric": metric, "source": "", "columns": columns} | more))


def draw(*lines: Line, **more):
    return curve(lines, **({"metric": "loss/value", "x": "agent_steps"} | more))


def test_raw_is_faint_behind_the_smoothed_line() -> None:
    low, high, main = draw(line(), smooth=0.9).data
    assert main.y == (1.0, 1.0, 2.0)
    assert (low.y, high.y) == ((0.0, None, None), (2.0, None, 4.0))
    assert high.fill == "tonexty"
    assert [trace.showlegend for trace in (low, high, main)] == [False, False, True]
    assert [trace.hoverinfo for trace in (low, high, main)] == ["skip", "skip", None]
    assert low.line.color.startswith("rgba(")
    assert main.line.color.startswith("#")


def test_without_smoothing_the_mean_is_the_line() -> None:
    assert draw(line()).data[-1].y == (1.0, None, 3.0)


def test_without_numbers_a_trace_says_what_belongs_in_it() -> None:
    traces = draw(line(columns=None), smooth=0.5).data
    assert [trace.x for trace in traces] == [()] * 3
    assert [trace.meta["y"] for trace in traces] == ["min", "max", "smoothed"]
    assert {(t.meta["run"], t.meta["metric"], t.meta["source"]) for t in traces} == {(A, "loss/value", "")}


def look(figure, run: str) -> tuple[str, str]:
    return next((t.line.color, t.line.dash) for t in figure.data if t.meta["run"] == run and t.showlegend)


def test_a_run_has_the_colour_of_its_id_wherever_that_is_free() -> None:
    assert colour_index(A) % len(colours("light")) != colour_index(B) % len(colours("light"))
    assert look(draw(line(A)), A) == look(draw(line(B), line(A)), A)


def test_no_two_runs_share_a_colour_while_one_is_free() -> None:
    n = len(colours("light"))
    alike = [key for key in (f"{at:026d}" for at in range(1000)) if colour_index(key) % n == 3][
        : n * len(DASHES)
    ]
    looks = list(styles(alike, "light").values())
    for round_, dash in enumerate(DASHES):
        some = looks[round_ * n : (round_ + 1) * n]
        assert {one for one, _ in some} == set(colours("light"))
        assert {other for _, other in some} == {dash}


def test_looks_are_those_the_pages_give() -> None:
    """As in `colours.test.ts`; the first, second and fourth ask for the same."""
    looks = styles([f"{at:026d}" for at in (0, 8, 1, 13)], "light")
    assert [colour for colour, _ in looks.values()] == ["#56b4e9", "#6b5d00", "#009e73", "#333333"]


def test_one_more_run_changes_no_other() -> None:
    keys = [f"{at:026d}" for at in range(40)]
    looks = styles(keys, "dark")
    for n in range(1, len(keys)):
        assert styles(keys[:n], "dark").items() <= looks.items()


def test_a_run_that_has_no_line_yet_has_chosen_its_colour() -> None:
    keys = [f"{at:026d}" for at in range(1000)]
    n = len(colours("light"))
    first, second = [key for key in keys if colour_index(key) % n == 0][:2]
    alone = draw(line(second), runs=[first, second])
    assert look(alone, second) == look(draw(line(first), line(second)), second)
    assert look(alone, second) != look(draw(line(second)), second)


def test_parts_of_one_run_have_a_colour_each_and_stand_beside_the_plot() -> None:
    figure = draw(line(), line(source="actor 0"), line(source="actor 1"))
    assert len({t.line.color for t in figure.data if t.showlegend}) == 3
    assert figure.data[-1].showlegend
    assert figure.layout.legend.orientation == "v"
    alone = next(t for t in draw(line()).data if t.showlegend)
    assert alone.line.color == next(t for t in figure.data if t.showlegend).line.color


def test_axes_say_what_they_count() -> None:
    layout = draw(line(), x="frames").layout
    assert layout.xaxis.title.text == "Emulator frames"
    assert layout.yaxis.title.text == "Value loss"
    assert layout.title.text == "Value loss"
    assert draw(line(), metric="my/own_metric").layout.title.text == "Own metric"
    evaluation = draw(line(), metric="eval/noop_starts/mean_return").layout
    assert "no-op starts" in evaluation.yaxis.title.text


def test_one_tooltip_legend_outside_room_for_labels() -> None:
    layout = draw(line()).layout
    assert layout.hovermode == "x unified"
    assert (layout.legend.orientation, layout.legend.yref) == ("h", "container")
    assert layout.template.layout.xaxis.automargin
    assert layout.template.layout.yaxis.automargin


def test_says_how_many_points_are_drawn() -> None:
    subtitle = draw(line(n_total=4000, n_shown=1000), smooth=0.9).layout.title.subtitle.text
    assert "1,000 of 4,000 points" in subtitle
    assert "smoothed 0.9" in subtitle
    assert draw(line(n_total=7, n_shown=7)).layout.title.subtitle.text == "7 points"


@pytest.mark.parametrize("width_px", [390, 1280, None])
def test_a_title_is_broken_to_fit(width_px: int | None) -> None:
    figure = draw(
        line(),
        title="PAAC on Montezuma's Revenge, with five seeds of each of two settings",
        width_px=width_px,
    )
    lines = figure.layout.title.text.split("<br>")
    assert (len(lines) > 1) == (width_px == 390)
    assert figure.layout.width == width_px
    assert figure.layout.margin.t >= 30 + 20 * (len(lines) - 1)


def test_both_themes() -> None:
    light, dark = draw(line(), theme="light"), draw(line(), theme="dark")
    assert light.layout.template.layout.paper_bgcolor == "#ffffff"
    assert light.layout.template.layout.paper_bgcolor != dark.layout.template.layout.paper_bgcolor
    assert light.data[-1].line.color in colours("light")
    assert dark.data[-1].line.color in colours("dark")


def test_of_many_lines_nothing_is_drawn_behind_them() -> None:
    figure = draw(*(line(f"{at:026d}", n_total=100, n_shown=10) for at in range(11)), smooth=0.9)
    assert [trace.meta["y"] for trace in figure.data] == ["smoothed"] * 11
    assert "faint" not in figure.layout.title.subtitle.text
