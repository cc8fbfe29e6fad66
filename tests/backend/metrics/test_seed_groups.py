import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from backend.db.engine import reading
from backend.metrics import repository
from backend.metrics.charts import Axes
from backend.metrics.grouping import grid_step, on_grid, summary
from backend.metrics.seed_groups import GroupCurve, group_curve
from backend.metrics.smoothing import smoothed
from tests.backend.metrics.oracle import METRICS, Life, columns_of

pytestmark = pytest.mark.service

KEY = METRICS[0]
steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 2), st.integers(1, 300)),
        st.tuples(st.just("cut"), st.integers(0, 2), st.floats(0, 1)),
        st.tuples(st.just("look"), st.just(0), st.just(0)),
    ),
    max_size=12,
)
few = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def read(lives: list[Life], how: Axes, since: list[int] | None = None) -> GroupCurve:
    runs = [life.run_id for life in lives]
    with reading(lives[0].engine) as session:
        members = repository.list_series(session, runs, [KEY[0]])
        return group_curve(
            session, members, how, "ci95", None if since is None else dict(zip(runs, since, strict=True))
        )


@few
@given(steps, st.sampled_from([Axes("agent_steps", 20), Axes("wall_time_s", 100, 0.9), Axes("frames", 1000)]))
def test_a_reader_pieces_together_the_mean_of_the_runs(engine: Engine, steps: list, how: Axes) -> None:
    lives = [Life(engine, seed) for seed in range(3)]
    for life in lives:
        life.append({KEY: 20})
    curve = read(lives, how)
    kept, seen = curve.grid, [life.revision for life in lives]
    for what, at, amount in [*steps, ("look", 0, 0)]:
        if what == "append":
            lives[at].append({KEY: amount})
        elif what == "cut":
            lives[at].cut(amount)
        else:
            curve = read(lives, how, seen)
            seen = [life.revision for life in lives]
            kept = {
                name: np.concatenate([kept[name][: curve.first_bucket], curve.grid[name]]) for name in kept
            }
    rows = [columns_of(life.live[KEY]) for life in lives]
    xs = [columns[how.x] for columns in rows]
    ys = [smoothed(c["value"], how.smooth) if how.smooth else c["value"] for c in rows]
    furthest = max((float(x.max()) for x in xs if len(x)), default=0.0)
    step = grid_step(furthest, how.max_points)
    assert curve.step == step
    n = len(kept["x"])
    assert n == curve.n_points
    assert kept["x"].tolist() == [step * (k + 1) for k in range(n)]
    wanted = summary(np.array([on_grid(x, y, step, n) for x, y in zip(xs, ys, strict=True)]), "ci95")
    for name, column in wanted.items():
        assert np.array_equal(kept[name], column, equal_nan=True), name


def test_growth_sends_the_tail_alone(engine: Engine) -> None:
    lives = [Life(engine, seed) for seed in range(3)]
    for life in lives:
        life.append({KEY: 3000})
    how = Axes("agent_steps", 500)
    whole, seen = read(lives, how), [life.revision for life in lives]
    lives[0].append({KEY: 1})
    new = read(lives, how, seen)
    assert not new.reset
    assert new.first_bucket > 0.95 * whole.n_points
    unchanged = read(lives, how, [life.revision for life in lives])
    assert unchanged.first_bucket == unchanged.n_points
    assert not len(unchanged.grid["mean"])
