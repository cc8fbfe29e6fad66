import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.analysis.metrics.rollups import aggregate, not_finite
from backend.analysis.metrics.smoothing import average_windows
from backend.drawing.curve import CurveLine, add_lines, curve_figure
from backend.drawing.figure import Figure
from backend.drawing.gaps import in_words
from tests.backend.drawing.lines import drawn, line, numbers, valid

values = st.lists(
    st.one_of(
        st.floats(-100, 100),
        st.floats(-100, 100),
        st.sampled_from([float("nan"), float("inf"), -float("inf")]),
    ),
    min_size=1,
    max_size=60,
)


def curve(measured: list[float], size: int, scale: float) -> CurveLine:
    """A line of buckets of these values at multiples of 10."""
    value, x = np.array(measured, "f8"), 10 * np.arange(1, len(measured) + 1)
    columns = aggregate({"x": x, "value": value}, size, ("x",)) | not_finite(value, size)
    windows = average_windows(value, x, scale, 0, size)
    columns |= {"smoothed": np.where(np.isfinite(columns["mean"]), windows.mean, np.nan)}
    columns |= {"window_x": windows.x, "window_mean": windows.drawn}
    columns |= dict(zip(("window_low", "window_high"), windows.band, strict=True)) | {"window_n": windows.n}
    return line(columns=columns, n_total=len(measured))


def figure_of(measured: list[float], size: int, smooth: str) -> Figure:
    return curve_figure([curve(measured, size, 35.0)], metric="loss/value", x="agent_steps", smooth=smooth)


@given(values, st.sampled_from([1, 2, 4]), st.sampled_from(["", "0.9", "over 35 agent steps"]))
def test_no_line_or_band_is_drawn_where_values_are_not_finite(
    measured: list[float], size: int, smooth: str
) -> None:
    figure = valid(figure_of(measured, size, smooth))
    (main,) = [trace for trace in drawn(figure) if trace.meta["kind"] == "line"]
    known = [value for value in measured if np.isfinite(value)]
    for x, y in zip(main.x, main.y, strict=True):
        if y is None:
            continue
        assert min(known) - 1e-9 <= y <= max(known) + 1e-9
        bucket = measured[int(np.ceil(x / 10 / size) - 1) * size :][:size]
        assert any(np.isfinite(bucket))
        assert not any(np.isinf(bucket))
    for trace in drawn(figure):
        assert all(value is None or np.isfinite(value) for value in trace.y)


@given(values, st.sampled_from([1, 2, 4]))
def test_every_value_that_is_not_finite_is_in_a_hatched_stretch_and_counted(
    measured: list[float], size: int
) -> None:
    value = np.array(measured, "f8")
    figure = figure_of(measured, size, "0.9")
    kinds = [np.isnan(value).sum(), (value == np.inf).sum(), (value == -np.inf).sum()]
    (gaps,) = [trace for trace in figure.data if trace["meta"]["kind"] == "not_finite"]
    assert [gaps["meta"][name].sum() for name in ("nan", "inf", "neg_inf")] == kinds
    stretches = gaps["x"].reshape(-1, 5)
    for at in np.flatnonzero(~np.isfinite(value)):
        assert ((stretches[:, 1] < 10 * (at + 1)) & (10 * (at + 1) <= stretches[:, 2])).any()
    notes = [note["text"] for note in figure.layout.get("annotations", [])]
    assert notes == ([in_words(kinds, len(measured))] if sum(kinds) else [])
    assert gaps["yaxis"] == "y3"
    assert "yaxis3" in figure.layout


@pytest.mark.parametrize("smooth", ["", "over 35 agent steps"])
def test_values_that_plotly_cannot_place_are_left_out_and_noted(smooth: str) -> None:
    figure = figure_of([1.0, 2.0, 1.7e308, -1.7e308, 1e299, 3.0], 1, smooth)
    for trace in drawn(valid(figure)):
        assert all(value is None or abs(value) <= 1e300 for value in trace.y)
    assert any(value is not None for trace in drawn(valid(figure)) for value in trace.y)
    assert [note["text"] for note in figure.layout["annotations"]] == ["Values beyond 1e300 are not drawn"]


def test_update_has_the_stretches_of_new_buckets_from_the_last_known_one_on() -> None:
    whole = curve([1.0, float("nan"), 3.0, float("inf"), float("nan")], 1, 35.0)
    at = np.arange(2, 5)
    columns = {name: column[2:] for name, column in whole.columns.items()} | {"bucket": at}
    grown = Figure()
    update = line(columns=columns, start=3)
    add_lines(grown, [update], metric="loss/value", smooth="", theme="light")
    (sent,) = [trace for trace in grown.document()["data"] if "nan" in trace.get("meta", {})]
    assert sent["from"] == 3
    assert numbers(sent["x"]) == [None, 30, 40, 40, 30, None, 40, 50, 50, 40]
    assert numbers(sent["meta"]["bucket"]) == [3] * 5 + [4] * 5
    assert numbers(sent["meta"]["inf"]) == [1] + [0] * 9


@pytest.mark.parametrize(
    ("counts", "n", "words"),
    [
        ((299, 1, 0), 3000, "299 NaN, 1 Inf"),
        ((0, 0, 2), 3000, "2 \u2212Inf"),
        ((3000, 0, 0), 3000, "All 3,000 values are NaN"),
        ((1, 0, 0), 1, "The only value is NaN"),
        ((2999, 1, 0), 3000, "None of the 3,000 values is finite: 2,999 NaN, 1 Inf"),
        ((0, 0, 0), 5, ""),
    ],
)
def test_counts_in_words(counts: tuple[int, int, int], n: int, words: str) -> None:
    assert in_words(counts, n) == words
