from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from backend.drawing.figure import Figure, Label, uid_of
from backend.drawing.palette import colours, look
from backend.drawing.seed_curve import SeedGroup, add_groups, seed_curve_figure
from backend.statistics.grouping import Interval, Spread, interval_name
from tests.backend.drawing.lines import valid

MEDIAN = Spread("median", "ci95")
BAND = interval_name(5, MEDIAN)


RUNS = ["A", "B", "C", "D", "E"]


def group(key: str = "a", n_seeds: int = 5, **more: Any) -> SeedGroup:
    columns = {
        "x": np.array([64.0, 128.0, 192.0]),
        "mean": np.array([1.1, 2.1, 3.1]),
        "median": np.array([1.0, 2.0, 3.0]),
        "low": np.array([0.5, 1.5, np.nan]),
        "high": np.array([1.5, 2.5, np.nan]),
        "n": np.array([5, 5, 1]),
    }
    default: dict[str, Any] = {"metric": "loss/value", "source": ""}
    default |= {"id": key, "columns": columns, "n_total": 900, "n_shown": 3}
    default |= {"label": Label("PAAC on Pong", n_seeds=n_seeds), "runs": RUNS[:n_seeds]}
    return SeedGroup(**(default | more))


def draw(*groups: SeedGroup, **more: Any) -> go.Figure:
    defaults: dict[str, Any] = {"metric": "loss/value", "x": "agent_steps", "spread": MEDIAN}
    return valid(seed_curve_figure(groups, **(defaults | more)))


@pytest.mark.parametrize(
    ("interval", "centre"), [("ci95", (1.0, 2.0, 3.0)), ("sd", (1.1, 2.1, 3.1))], ids=["median", "mean"]
)
def test_centre_is_drawn_over_its_band(interval: Interval, centre: tuple[float, ...]) -> None:
    low, high, mean, partial = draw(group(), spread=Spread.chosen(None, interval)).data
    assert (low.y, high.y, mean.y) == ((0.5, 1.5, None), (1.5, 2.5, None), (*centre[:2], None))
    assert low.x == high.x == mean.x == (64.0, 128.0, 192.0)
    assert (partial.x, partial.y) == ((192.0,), centre[2:])
    assert (low.fill, high.fill) == (None, "tonexty")
    assert low.line.width == high.line.width == 0
    assert [trace.showlegend for trace in (low, high, mean)] == [False, False, True]
    assert [trace.hoverinfo for trace in (low, high, mean)] == ["skip", "skip", None]
    assert len({trace.legendgroup for trace in (low, high, mean)}) == 1


def test_trace_name_states_number_of_seeds() -> None:
    *_, mean, _ = draw(group()).data
    assert mean.name == "PAAC on Pong (n = 5)"
    assert mean.customdata == (5, 5, 1)
    assert mean.meta["label"] == {"name": "PAAC on Pong"}
    assert "median of %{customdata}" in mean.hovertemplate
    assert draw(one_seed()).data[-1].name == "PAAC on Pong (n = 1)"


def one_seed() -> SeedGroup:
    return group(n_seeds=1, seed_values=[np.array([1.0, 2.0, 3.0])])


def few_seeds(**more: Any) -> SeedGroup:
    return group(
        "few", n_seeds=2, seed_values=[np.array([1.0, 2.0, 3.0]), np.array([5.0, 6.0, np.nan])], **more
    )


def test_each_seed_is_drawn_where_they_are_too_few_for_an_interval() -> None:
    first, second = draw(few_seeds()).data
    assert (first.y, second.y) == ((1.0, 2.0, 3.0), (5.0, 6.0, None))
    assert first.x == second.x == (64.0, 128.0, 192.0)
    assert (first.showlegend, second.showlegend) == (True, False)
    assert first.line == second.line
    assert first.name == second.name == "PAAC on Pong (n = 2)"
    assert [trace.uid for trace in (first, second)] == [
        uid_of("few loss/value  A B A"),
        uid_of("few loss/value  A B B"),
    ]
    banded = draw(few_seeds(), spread=Spread("mean", "sd")).data
    assert [trace.meta["kind"] for trace in banded] == ["range", "range", "line", "partial"]


def test_subtitle_names_the_band_when_drawn() -> None:
    assert f"median over seeds · band: {BAND}" in draw(group()).layout.title.subtitle.text
    assert "band" not in draw(one_seed()).layout.title.subtitle.text
    few = draw(few_seeds()).layout.title.subtitle.text
    assert few.startswith("each seed (an interval needs 5) · ")
    both = draw(few_seeds(), group()).layout.title.subtitle.text
    assert BAND in both
    assert "an interval needs 5" in both
    assert draw(group(), spread=Spread("mean", "sd")).layout.title.subtitle.text.startswith(
        "mean over seeds · band: ± 1 s.d."
    )
    subtitle = draw(group(), group("b"), smooth="0.9").layout.title.subtitle.text
    assert "each seed smoothed 0.9" in subtitle
    assert "6 grid points from 1,800 points" in subtitle


def test_groups_differ_in_style_and_keep_their_colour() -> None:
    def style_of(figure: go.Figure, key: str) -> tuple[str, str]:
        (mean,) = [t for t in figure.data if t.meta["group"] == key and t.showlegend]
        assert mean.line.dash is None
        return mean.line.color, mean.marker.symbol

    assert style_of(draw(group("a")), "a") == style_of(draw(group("a"), group("b")), "a")
    assert style_of(draw(group("b"), order=["a", "b"]), "b") == style_of(draw(group("a"), group("b")), "b")
    wanted = draw(group("a"), group("b"), wanted={"a": 1})
    assert [style_of(wanted, key)[0] for key in "ab"] == [look(1, "light").colour, look(0, "light").colour]
    keys = [f"{at:016x}" for at in range(2 * len(colours("light")))]
    figure = draw(*map(group, keys))
    assert len({style_of(figure, key) for key in keys}) == len(keys)


@pytest.mark.parametrize("n_seeds", [1, 5])
def test_sources_of_groups_have_a_look_each_and_the_first_that_of_its_group(n_seeds: int) -> None:
    values = [np.zeros(3)] * n_seeds
    groups = [
        group(key, n_seeds, source=source, seed_values=values)
        for key in "ab"
        for source in ("actor 0", "actor 1")
    ]
    named = [trace for trace in draw(*groups, wanted={"a": 3}).data if trace.showlegend]
    assert [trace.line.color for trace in named] == [look(style, "light").colour for style in (3, 1, 0, 2)]


def test_update_has_the_new_grid_points_of_each_trace() -> None:
    later = {name: values[2:] for name, values in group().columns.items()}
    figure = Figure()
    add_groups(figure, [group(columns=later, start=2)], spread=MEDIAN, order=[], theme="light")
    document = figure.document()
    assert [(trace["uid"], trace["from"], trace["x"], trace["y"]) for trace in document["data"]] == [
        (uid_of("a loss/value  A B C D E low"), 2, [192.0], [None]),
        (uid_of("a loss/value  A B C D E high"), 2, [192.0], [None]),
        (uid_of("a loss/value  A B C D E median"), 2, [192.0], [None]),
        (uid_of("a loss/value  A B C D E median of some"), 2, [192.0], [3.0]),
    ]
    assert document["data"][-2]["meta"] == {"low": [None], "high": [None], "n": [1]}
    assert document["bands"] == [f"band: {BAND}"]


def test_each_seed_is_a_thin_line_behind_the_band_on_request() -> None:
    values = [np.arange(3.0) + seed for seed in range(5)]
    figure = draw(group(seed_values=values), spread=Spread("mean", "se", seeds=True))
    *thin, _, _, mean, _ = figure.data
    centre = ["range", "range", "line", "partial"]
    assert [trace.meta["kind"] for trace in figure.data] == ["seed"] * 5 + centre
    assert [trace.y for trace in thin] == [tuple(value) for value in values]
    assert {(trace.line.width, trace.showlegend, trace.hoverinfo) for trace in thin} == {(1, False, "skip")}
    assert mean.line.width == 2
    without = draw(group(seed_values=values), spread=Spread("mean", "se"))
    assert [trace.meta["kind"] for trace in without.data] == centre


def test_values_that_are_not_finite_are_counted_over_all_groups() -> None:
    figure = Figure()
    groups = [group("a", not_finite=(2, 0, 0)), group("b", not_finite=(1, 1, 0))]
    add_groups(figure, groups, spread=MEDIAN, order=[], theme="light")
    assert figure.bands[-1] == "3 NaN, 1 Inf not drawn"


def falling(n: list[int], start: int | None = None, **more: Any) -> SeedGroup:
    """A group of five seeds with these numbers of values at its grid points."""
    first = start or 0
    centre = np.arange(1.0, len(n) + 1)
    columns = {"x": 64 * centre, "mean": centre, "median": centre, "n": np.array(n)}
    columns |= {"low": centre - 0.5, "high": centre + 0.5}
    shown = {name: column[first:] for name, column in columns.items()}
    return group(columns=shown, start=start, is_partial=min(n) < 5, **more)


def test_centre_of_fewer_than_all_seeds_is_a_thin_line_without_a_band() -> None:
    figure = draw(falling([4, 5, 5, 3, 5, 2]), spread=Spread("mean", "se"))
    low, high, mean, partial = figure.data
    assert mean.y == (None, 2, 3, None, 5, None)
    assert low.y == (None, 1.5, 2.5, None, 4.5, None)
    assert high.y == (None, 2.5, 3.5, None, 5.5, None)
    assert (partial.x, partial.y) == ((64, 128, 256, 320, 384), (1, None, 4, None, 6))
    assert partial.customdata == (4, 5, 3, 5, 2)
    assert (partial.line.color, partial.line.width, mean.line.width) == (mean.line.color, 1, 2)
    assert (partial.line.dash, mean.line.dash) == ("dot", None)
    assert (partial.showlegend, partial.legendgroup) == (False, mean.legendgroup)
    assert "thin and dotted where not all seeds have a value" in figure.layout.title.subtitle.text
    assert "thin" not in draw(falling([5, 5]), spread=Spread("mean", "se")).layout.title.subtitle.text


def test_update_of_a_thin_line_ends_a_stretch_that_the_client_has() -> None:
    figure = Figure()
    spread = Spread("mean", "se")
    add_groups(figure, [falling([5, 3, 5, 5, 2], 2)], spread=spread, order=[], theme="light")
    partial = figure.document()["data"][-1]
    assert (partial["from"], partial["x"], partial["y"]) == (2, [192, 320], [None, 5])
    assert partial["meta"] == {"n": [5, 2], "bucket": [2, 4]}
    figure = Figure()
    add_groups(figure, [falling([5, 3, 3], 2)], spread=spread, order=[], theme="light")
    assert figure.document()["data"][-1]["y"] == [3]
