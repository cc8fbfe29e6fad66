import math
import statistics
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from backend.db import Run
from backend.runs.runs.groups import group_key
from backend.specs.run import parse_run_spec
from backend.statistics.estimates import median
from backend.statistics.grouping import (
    Centre,
    Interval,
    Spread,
    draws_seeds,
    grid_step,
    interval_name,
    lacks_value,
    on_grid,
    summary,
)
from tests.support.rows import CARTPOLE

points = st.lists(
    st.tuples(
        st.integers(0, 5000),
        st.one_of(st.floats(-100, 100), st.sampled_from([math.nan, math.inf, -math.inf])),
    ),
    max_size=60,
)


CENTRES: tuple[Centre, ...] = ("mean", "iqm")
MEDIAN = Spread("median", "ci95")


def slow_on_grid(rows: list[tuple[int, float]], step: float, n_points: int, at: float) -> list[float]:
    def inside(k: int) -> list[float]:
        return [y for x, y in rows if k * step < x <= (k + 1) * step or (k == 0 and x == 0)]

    def here(k: int) -> float:
        finite = [y for y in inside(k) if math.isfinite(y)]
        return statistics.fmean(finite) if finite else math.nan

    furthest = max((x for x, _ in rows), default=-1)
    occupied = [k for k in range(n_points) if inside(k)]
    out = []
    for k in range(n_points):
        before = max((other for other in occupied if other <= k), default=None)
        after = min((other for other in occupied if other > k), default=None)
        if before is None or not (k * step < max(furthest, at) or (k == 0 and furthest == 0)):
            out.append(math.nan)
        elif before == k:
            out.append(here(k))
        elif not math.isfinite(inside(before)[-1]):
            out.append(math.nan)
        elif after is None or math.isnan(here(after)):
            out.append(here(before))
        else:
            share = (k - before) / (after - before)
            out.append((1 - share) * here(before) + share * here(after))
    return out


@given(points, st.integers(0, 8).map(lambda k: 2.0**k * 10), st.floats(0, 5000))
def test_on_grid_matches_definition(rows: list[tuple[int, float]], step: float, at: float) -> None:
    n_points = math.ceil(5000 / step)
    x, y = np.array([r[0] for r in rows], "i8"), np.array([r[1] for r in rows], "f8")
    wanted = slow_on_grid(rows, step, n_points, at)
    np.testing.assert_allclose(on_grid(x, y, step, n_points, at), wanted, rtol=1e-9, atol=1e-9)


@given(points, st.integers(0, 40), st.floats(0, 5000))
def test_on_grid_from_a_later_point_has_the_same_values(
    rows: list[tuple[int, float]], first: int, at: float
) -> None:
    x, y = np.array([r[0] for r in rows], "i8"), np.array([r[1] for r in rows], "f8")
    np.testing.assert_allclose(on_grid(x, y, 64.0, 30, at, first), on_grid(x, y, 64.0, 80, at)[first:][:30])


def test_on_grid_holds_last_value_until_current_position() -> None:
    x, y = np.array([10, 40, 50]), np.array([1.0, 2.5, 3.0])
    np.testing.assert_array_equal(on_grid(x, y, 10.0, 8, 65.0), [1, 1.5, 2, 2.5, 3, 3, 3, np.nan])


def test_on_grid_has_a_straight_line_where_no_episode_ends() -> None:
    x, y = np.array([10, 10, 100]), np.array([0.0, 2.0, 10.0])
    np.testing.assert_allclose(on_grid(x, y, 10.0, 10), np.arange(1.0, 11.0))


def test_a_run_lacks_value_what_is_before_its_first_and_after_its_last_value() -> None:
    x = np.array([30, 50])
    for reached, opened in ((0.0, [1, 1, 0, 0, 0, 0, 0, 0]), (75.0, [1, 1, 0, 0, 0, 0, 1, 1])):
        assert lacks_value(x, 10.0, 8, 55.0, reached).tolist() == opened
        assert lacks_value(x, 10.0, 4, 55.0, reached, 4).tolist() == opened[4:]
    assert not lacks_value(np.empty(0), 10.0, 8, 55.0, 75.0).any()


def test_on_grid_has_no_value_where_the_latest_is_not_finite() -> None:
    x, y = np.array([10, 20, 50, 60]), np.array([1.0, np.nan, 3.0, np.inf])
    np.testing.assert_array_equal(on_grid(x, y, 10.0, 8, 80.0), [1, *[np.nan] * 3, 3, *[np.nan] * 3])


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=40))
def test_summary_matches_mean_and_interval_definitions(values: list[float]) -> None:
    table = np.array(values)[:, None]
    ci, sd = summary(table, MEDIAN), summary(table, Spread("mean", "sd"))
    assert ci["mean"][0] == sd["mean"][0] == pytest.approx(statistics.fmean(values), abs=1e-9)
    assert ci["n"][0] == len(values)
    wanted = median(np.array(values))
    assert ci["median"][0] == sd["median"][0] == wanted.value
    if wanted.low is None:
        assert np.isnan([ci["low"][0], ci["high"][0]]).all()
    else:
        assert (ci["low"][0], ci["high"][0]) == (wanted.low, wanted.high)
    if len(values) == 1:
        assert np.isnan([sd["low"][0], sd["high"][0]]).all()
    else:
        s = statistics.stdev(values)
        assert sd["high"][0] - sd["mean"][0] == pytest.approx(s, abs=3e-6)
        assert sd["mean"][0] - sd["low"][0] == pytest.approx(s, abs=3e-6)


@pytest.mark.parametrize("n", [13, 16, 30, 40])
def test_intervals_of_means_match_scipy(n: int) -> None:
    values = np.random.default_rng(n).lognormal(size=n)
    mean, iqm = (summary(values[:, None], Spread(centre, "ci95")) for centre in CENTRES)
    low, high = stats.t.interval(0.95, n - 1, values.mean(), stats.sem(values))
    assert (mean["low"][0], mean["high"][0]) == pytest.approx((low, high), abs=1e-3)
    assert iqm["iqm"][0] == pytest.approx(stats.trim_mean(values, 0.25))
    yuen = stats.ttest_ind(values, np.zeros(n), equal_var=False, trim=0.25)
    half = stats.t.ppf(0.975, n - 2 * (n // 4) - 1) * iqm["iqm"][0] / yuen.statistic
    assert iqm["high"][0] - iqm["iqm"][0] == pytest.approx(half, rel=1e-3)
    assert iqm["iqm"][0] - iqm["low"][0] == pytest.approx(half, rel=1e-3)


@pytest.mark.parametrize(("centre", "least"), [("median", 5), ("mean", 11), ("iqm", 13)])
def test_each_seed_is_drawn_where_an_interval_would_cover_too_little(centre: Centre, least: int) -> None:
    spread = Spread(centre, "ci95")
    for n, shown in ((least - 1, False), (least, True)):
        got = summary(np.arange(float(n))[:, None], spread)
        assert np.isfinite([got["low"][0], got["high"][0]]).all() == shown
        assert draws_seeds(n, spread) != shown
        assert (f"needs {least})" in interval_name(n, spread)) != shown
        assert not draws_seeds(n, Spread(centre, "min_max"))


@pytest.mark.parametrize(
    ("centre", "interval", "band"),
    [
        ("mean", "se", (3.0 - 0.5**0.5, 3.0 + 0.5**0.5)),
        ("median", "min_max", (1.0, 5.0)),
        ("iqm", "sd", (3.0 - 2.5**0.5, 3.0 + 2.5**0.5)),
    ],
)
def test_band_is_around_the_chosen_centre(
    centre: Centre, interval: Interval, band: tuple[float, float]
) -> None:
    got = summary(np.arange(1.0, 6.0)[:, None], Spread(centre, interval))
    assert (got["low"][0], got["high"][0]) == pytest.approx(band)


def test_standard_error_of_a_median_is_refused() -> None:
    with pytest.raises(ValueError, match="a median has no standard error"):
        Spread.chosen("median", "se")
    assert Spread.chosen(None, "se").centre == Spread.chosen(None, "sd").centre == "mean"
    assert Spread.chosen(None, "ci95").centre == "median"


def test_summary_omits_runs_that_ended_early() -> None:
    table = np.array([[1.0, 2.0, np.nan], [3.0, 4.0, 5.0]] * 3)
    got = summary(table, MEDIAN)
    assert got["mean"].tolist() == got["median"].tolist() == [2.0, 3.0, 5.0]
    assert got["n"].tolist() == [6, 6, 3]
    assert got["high"][:2].tolist() == [3.0, 4.0]
    assert np.isnan(got["low"][2])


@given(st.floats(1e-6, 1e12), st.integers(1, 5000))
def test_grid_step_is_least_power_of_two_that_fits(furthest: float, most: int) -> None:
    step = grid_step(furthest, most)
    assert math.frexp(step)[0] == 0.5
    assert math.ceil(furthest / step) <= most < math.ceil(furthest / step * 2) + 1


def test_grid_step_of_zero_extent_is_one() -> None:
    assert grid_step(0.0, 1000) == 1.0


LINE = {
    "id": "Custom/Line-v0",
    "title": "A line",
    "observation": "vector",
    "actions": "discrete",
    "action_names": ["left", "right"],
}


def key_of(spec: dict[str, Any]) -> str:
    return group_key(Run(spec=spec))


def test_group_key_ignores_seed_name_and_notes() -> None:
    spec = parse_run_spec(CARTPOLE | {"seed": 1, "name": "a"}).model_dump(mode="json")
    same = parse_run_spec(CARTPOLE | {"seed": 2, "notes": "b", "priority": 3}).model_dump(mode="json")
    assert key_of(spec) == key_of(same)
    before = spec | {"config": {k: v for k, v in spec["config"].items() if k != "standardise"}}
    assert key_of(before) == key_of(spec), "stored before this setting existed"
    custom = spec | {"environment": "Custom/Line-v0", "custom": LINE, "environment_config": {}}
    assert key_of(custom) == key_of(custom | {"config": before["config"]})
    for change in ({"config": {"n_e": 8}}, {"group": "g"}, {"config": {"standardise": True}}):
        other = parse_run_spec(CARTPOLE | change).model_dump(mode="json")
        assert key_of(spec) != key_of(other)


@pytest.mark.parametrize("centre", CENTRES)
def test_bootstrap_agrees_with_scipy_and_does_not_depend_on_other_points(centre: Centre) -> None:
    values = np.random.default_rng(0).lognormal(size=(8, 40))
    spread = Spread(centre, "bootstrap")
    got = summary(values, spread)

    def of(sample: np.ndarray, axis: int) -> np.ndarray:
        return np.asarray(
            stats.trim_mean(sample, 0.25, axis=axis) if centre == "iqm" else sample.mean(axis=axis)
        )

    wanted = stats.bootstrap(
        (values,), of, axis=0, method="percentile", n_resamples=4000, rng=np.random.default_rng(1)
    ).confidence_interval
    assert np.abs(got["low"] - wanted.low).mean() < 0.1 * np.abs(wanted.low).mean()
    assert np.abs(got["high"] - wanted.high).mean() < 0.1 * np.abs(wanted.high).mean()
    alone = summary(values[:, 7:9], spread)
    np.testing.assert_array_equal(alone["low"], got["low"][7:9])
    values[:4, 3] = np.nan
    assert np.isnan(summary(values, spread)["low"][3]), "four runs are too few"


def test_bootstrap_needs_five_runs_and_no_median() -> None:
    assert Spread.chosen(None, "bootstrap").centre == "iqm"
    assert draws_seeds(4, Spread("iqm", "bootstrap"))
    assert not draws_seeds(5, Spread("iqm", "bootstrap"))
    assert interval_name(4, Spread("iqm", "bootstrap")) == "each seed (a bootstrap needs 5)"
    with pytest.raises(ValueError, match="exact interval"):
        Spread.chosen("median", "bootstrap")
