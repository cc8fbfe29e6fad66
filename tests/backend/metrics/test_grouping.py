import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.metrics.grouping import grid_step, group_key, on_grid, summary, t_975
from backend.specs.run import parse_run_spec
from tests.support.runs import CARTPOLE

points = st.lists(
    st.tuples(st.integers(0, 5000), st.one_of(st.floats(-100, 100), st.just(math.nan))), max_size=60
)


def slow_on_grid(rows: list[tuple[int, float]], step: float, n_points: int, at: float) -> list[float]:
    rows = [(x, y) for x, y in rows if not math.isnan(y)]
    out, held = [], math.nan
    furthest = max((x for x, _ in rows), default=-1)
    for k in range(n_points):
        low, high = k * step, (k + 1) * step
        inside = [y for x, y in rows if low < x <= high or (k == 0 and x == 0)]
        if inside:
            held = statistics.fmean(inside)
        out.append(held if low < max(furthest, at) or (k == 0 and furthest == 0) else math.nan)
    return out


@given(points, st.integers(0, 8).map(lambda k: 2.0**k * 10), st.floats(0, 5000))
def test_values_on_the_grid_are_what_the_definition_says(
    rows: list[tuple[int, float]], step: float, at: float
) -> None:
    n_points = math.ceil(5000 / step)
    x, y = np.array([r[0] for r in rows], "i8"), np.array([r[1] for r in rows], "f8")
    wanted = slow_on_grid(rows, step, n_points, at)
    np.testing.assert_allclose(on_grid(x, y, step, n_points, at), wanted, rtol=1e-9, atol=1e-9)


def test_a_last_value_holds_to_where_the_run_is() -> None:
    x, y = np.array([10, 40, 50]), np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(on_grid(x, y, 10.0, 8, 65.0), [1, 1, 1, 2, 3, 3, 3, np.nan])


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=40))
def test_mean_and_intervals(values: list[float]) -> None:
    table = np.array(values)[:, None]
    ci, sd = summary(table, "ci95"), summary(table, "sd")
    assert ci["mean"][0] == pytest.approx(statistics.fmean(values), abs=1e-9)
    assert ci["n"][0] == len(values)
    if len(values) == 1:
        assert np.isnan([ci["low"][0], ci["high"][0], sd["low"][0], sd["high"][0]]).all()
        return
    s = statistics.stdev(values)
    assert sd["high"][0] - sd["mean"][0] == pytest.approx(s, abs=3e-6)
    half = t_975(len(values) - 1) * s / math.sqrt(len(values))
    assert ci["high"][0] - ci["mean"][0] == pytest.approx(half, abs=3e-6)
    assert ci["mean"][0] - ci["low"][0] == pytest.approx(half, abs=3e-6)


def test_runs_that_end_early_leave_the_mean() -> None:
    table = np.array([[1.0, 2.0, np.nan], [3.0, 4.0, 5.0]])
    got = summary(table, "ci95")
    assert got["mean"].tolist() == [2.0, 3.0, 5.0]
    assert got["n"].tolist() == [2, 2, 1]
    assert np.isnan(got["low"][2])


@pytest.mark.parametrize(
    ("degrees", "wanted"),
    [(1, 12.706205), (4, 2.776445), (30, 2.042272), (31, 2.039513), (60, 2.000298), (1000, 1.962339)],
)
def test_quantiles_of_students_t(degrees: int, wanted: float) -> None:
    assert t_975(degrees) == pytest.approx(wanted, abs=3e-6)


def test_quantiles_fall_towards_the_normal_one() -> None:
    quantiles = [t_975(v) for v in range(1, 200)]
    assert quantiles == sorted(quantiles, reverse=True)
    assert quantiles[-1] > statistics.NormalDist().inv_cdf(0.975)


@given(st.floats(1e-6, 1e12), st.integers(1, 5000))
def test_the_step_is_the_least_power_of_two_that_fits(furthest: float, most: int) -> None:
    step = grid_step(furthest, most)
    assert math.frexp(step)[0] == 0.5
    assert math.ceil(furthest / step) <= most < math.ceil(furthest / step * 2) + 1


def test_no_extent_has_a_step_too() -> None:
    assert grid_step(0.0, 1000) == 1.0


LINE = {
    "id": "Own/Line-v0",
    "title": "A line",
    "observation": "vector",
    "actions": "discrete",
    "action_names": ["left", "right"],
}


def test_groups_ignore_the_seed_and_what_names_a_run() -> None:
    spec = parse_run_spec(CARTPOLE | {"seed": 1, "name": "a"}).model_dump(mode="json")
    same = parse_run_spec(CARTPOLE | {"seed": 2, "notes": "b", "priority": 3}).model_dump(mode="json")
    assert group_key(spec) == group_key(same)
    before = spec | {"config": {k: v for k, v in spec["config"].items() if k != "standardise"}}
    assert group_key(before) == group_key(spec), "from before there was this setting"
    own = spec | {"environment": "Own/Line-v0", "own": LINE, "environment_config": {}}
    assert group_key(own) == group_key(own | {"config": before["config"]})
    for change in ({"config": {"n_e": 8}}, {"group": "g"}, {"config": {"standardise": True}}):
        other = parse_run_spec(CARTPOLE | change).model_dump(mode="json")
        assert group_key(spec) != group_key(other)
