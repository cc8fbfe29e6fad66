from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from backend.analysis.metrics import repository
from backend.analysis.metrics.axes import Axes
from backend.analysis.metrics.seed_groups import GroupGrid, group_curve
from backend.analysis.metrics.smoothing import Smoothing, average_row_windows, smooth_rows
from backend.db.engine import reading, writing
from backend.runs.runs import service as runs
from backend.specs.events import PointsEvent
from backend.statistics.grouping import Spread, grid_step, lacks_value, on_grid, summary
from tests.backend.analysis.metrics.oracle import METRICS, RecordedRun, columns_of
from tests.support.rows import make_run

pytestmark = pytest.mark.service

KEY = METRICS[0]
SPREAD = Spread("median", "ci95")
steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 2), st.integers(1, 300)),
        st.tuples(st.just("cut"), st.integers(0, 2), st.floats(0, 1)),
        st.tuples(st.just("update"), st.just(0), st.just(0)),
    ),
    max_size=12,
)
few = settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])


def read(recorded_runs: list[RecordedRun], how: Axes, since: list[int] | None = None) -> GroupGrid:
    runs = [recorded.run_id for recorded in recorded_runs]
    with reading(recorded_runs[0].engine) as session:
        members = repository.list_series(session, runs, [KEY[0]])
        return group_curve(
            session, members, how, SPREAD, None if since is None else dict(zip(runs, since, strict=True))
        )


axes = [
    Axes("agent_steps", 20),
    Axes("wall_time_s", 100, 0.9),
    Axes("frames", 1000),
    Axes("agent_steps", 50, smoothing="window", scale=700.0),
]


@few
@given(steps, st.sampled_from(axes))
def test_incremental_reads_add_up_to_mean_of_runs(engine: Engine, steps: list[Any], how: Axes) -> None:
    recorded_runs = [RecordedRun(engine, seed) for seed in range(3)]
    for recorded in recorded_runs:
        recorded.append({KEY: 20})
    curve = read(recorded_runs, how)
    kept, known_revisions = curve.grid, [recorded.revision for recorded in recorded_runs]
    kept_values = curve.seed_values
    for what, at, amount in [*steps, ("update", 0, 0)]:
        if what == "append":
            recorded_runs[at].append({KEY: amount})
        elif what == "cut":
            recorded_runs[at].cut(amount)
        else:
            curve = read(recorded_runs, how, known_revisions)
            known_revisions = [recorded.revision for recorded in recorded_runs]
            kept = {
                name: np.concatenate([kept[name][: curve.first_bucket], curve.grid[name]]) for name in kept
            }
            kept_values = np.hstack([kept_values[:, : curve.first_bucket], curve.seed_values])
    rows = [columns_of(recorded.live[KEY]) for recorded in recorded_runs]
    xs = [columns[how.x] for columns in rows]
    ys = [smooth_rows(c["value"], how.smooth) if how.smooth else c["value"] for c in rows]
    if how.scale:
        drawn = [average_row_windows(y, x, how.scale) for x, y in zip(xs, ys, strict=True)]
        xs, ys = [x for x, _ in drawn], [y for _, y in drawn]
    furthest = max((float(x.max()) for x in xs if len(x)), default=0.0)
    step = grid_step(furthest, how.max_points)
    assert curve.step == step
    n = len(kept["x"])
    assert n == curve.n_points
    assert kept["x"].tolist() == [step * (k + 1) for k in range(n)]
    values = np.array([on_grid(x, y, step, n) for x, y in zip(xs, ys, strict=True)])
    assert np.array_equal(kept_values, values, equal_nan=True)
    lacks = np.logical_or.reduce([lacks_value(x, step, n, 0.0, 0.0) for x in xs])
    wanted = summary(values, SPREAD)
    for name, column in wanted.items():
        shown = column if name == "n" else np.where(lacks, np.nan, column)
        assert np.array_equal(kept[name], shown, equal_nan=True), name


def test_read_after_growth_sends_only_the_tail(engine: Engine) -> None:
    recorded_runs = [RecordedRun(engine, seed) for seed in range(3)]
    for recorded in recorded_runs:
        recorded.append({KEY: 3000})
    how = Axes("agent_steps", 500)
    whole, known_revisions = read(recorded_runs, how), [recorded.revision for recorded in recorded_runs]
    recorded_runs[0].append({KEY: 1})
    new = read(recorded_runs, how, known_revisions)
    assert not new.reset
    assert new.first_bucket > 0.95 * whole.n_points
    unchanged = read(recorded_runs, how, [recorded.revision for recorded in recorded_runs])
    assert unchanged.first_bucket == unchanged.n_points
    assert not len(unchanged.grid["mean"])


@pytest.mark.parametrize("smoothing", ["points", "ema", "window"])
def test_range_of_x_has_a_finer_grid_with_the_same_values(engine: Engine, smoothing: Smoothing) -> None:
    recorded_runs = [RecordedRun(engine, seed) for seed in range(3)]
    for recorded in recorded_runs:
        recorded.append({KEY: 3000})
    smooth = 0.9 if smoothing == "points" else 0.0
    fine = Axes("agent_steps", 8192, smooth, smoothing, 50.0)
    whole = read(recorded_runs, fine)
    middle = float(whole.grid["x"][-1]) / 2
    zoomed = read(recorded_runs, replace(fine, max_points=256, span=(middle, middle + 100 * whole.step)))
    assert zoomed.step <= whole.step
    assert middle - whole.step <= zoomed.grid["x"][0] <= middle
    assert zoomed.grid["x"][-1] >= middle + 100 * whole.step
    shared, at, to = np.intersect1d(whole.grid["x"], zoomed.grid["x"], return_indices=True)
    assert len(shared) >= 100
    if zoomed.step == whole.step:
        for name in ("median", "n"):
            np.testing.assert_allclose(whole.grid[name][at], zoomed.grid[name][to])


def test_centre_ends_where_a_run_has_its_last_value_though_others_have_a_later_one(engine: Engine) -> None:
    """The runs have one budget, but their last episodes end at different steps."""
    ids = []
    for seed, ends in enumerate(([400, 5000, 9000], [300, 5000, 9600], [500, 5000, 9990])):
        run_id = make_run(engine, seed=seed).id
        ids.append(run_id)
        columns = {name: [float(at) for at in ends] for name in ("wall_time_s",)}
        columns |= {name: list(ends) for name in ("agent_steps", "frames", "episodes")}
        points = PointsEvent(metric=KEY[0], source="", value=[0.0, 50.0, 100.0 * (seed + 1)], **columns)
        with writing(engine) as session:
            run = runs.find(session, run_id, for_update=True)
            assert run is not None
            run.agent_steps = 10_000
            repository.append(session, run_id, 1, runs.touch(session, run), [points])
    with reading(engine) as session:
        members = repository.list_series(session, ids, [KEY[0]])
        how = Axes("agent_steps", 500, smoothing="window", scale=500.0)
        curve = group_curve(session, members, how, Spread("mean", "se"))
    grid, shown = curve.grid, np.isfinite(curve.grid["mean"])
    assert grid["n"][-1] == 1
    assert grid["x"][shown].min() >= 500
    assert 9700 < grid["x"][shown].max() <= 9800, "half a window before the end"
    assert set(grid["n"][shown]) == {3}
    assert not curve.is_partial
    assert np.array_equal(np.isfinite(grid["low"]), shown)
