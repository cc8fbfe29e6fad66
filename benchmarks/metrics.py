"""Speed of appending and charting series, and their size, on a given database."""

from collections.abc import Iterator
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from sqlalchemy import Engine

from backend.analysis.metrics import repository, service
from backend.analysis.metrics.axes import Axes
from backend.db.engine import reading, writing
from backend.runs.runs import service as runs
from backend.specs.events import PointsEvent
from backend.specs.run import parse_run_spec
from backend.statistics.columns import Array
from backend.statistics.grouping import Spread
from backend.upkeep.retention.repository import database_bytes

METRIC = "loss/value"
N_POINTS = 100_000
N_RUNS = 20
"""The larger chart; the smaller one has 5 runs."""

_BATCH_ROWS = 10_000
_LIVE_SERIES = 20
_LIVE_ROWS = 5
_REPEATS = 7


def bench(db_engine: Engine) -> dict[str, float]:
    """Measure on a migrated database; 20 runs of 100,000 points stay in it.

    Returns:
        `append_points_per_s`: through `repository.append` in batches of 10,000, commits included;
        `live_append_ms`: 20 series of 5 points, as in a run's last second, commit included;
        `bytes_per_point`: growth of the database;
        `chart_5_ms`, `chart_20_ms`, `chart_20_smoothed_ms`: median time to a chart's JSON, 1,000 points
        a series.
    """
    before = _size(db_engine)
    run_ids = [_new_run(db_engine, seed) for seed in range(N_RUNS)]
    spent_s = sum(_append(db_engine, run_id, seed) for seed, run_id in enumerate(run_ids))
    result = {
        "append_points_per_s": N_RUNS * N_POINTS / spent_s,
        "bytes_per_point": (_size(db_engine) - before) / (N_RUNS * N_POINTS),
    }
    for name, ids, smooth in (
        ("chart_5_ms", run_ids[:5], 0.0),
        ("chart_20_ms", run_ids, 0.0),
        ("chart_20_smoothed_ms", run_ids, 0.9),
    ):
        result[name] = median(_chart_ms(db_engine, ids, smooth) for _ in range(_REPEATS))
    return result | {"live_append_ms": _live_append_ms(db_engine, _new_run(db_engine, N_RUNS))}


def _new_run(db_engine: Engine, seed: int) -> str:
    request = {"algorithm": "paac", "environment": "CartPole-v1", "stop": {"agent_steps": 1}, "seed": seed}
    spec = parse_run_spec(request)
    with writing(db_engine) as session:
        return runs.create(session, spec).id


def _batches(seed: int, n_points: int, batch_rows: int, metric: str) -> Iterator[PointsEvent]:
    """Points like those of training: 32-bit values, times to the microsecond."""
    rng = np.random.default_rng(seed)
    steps = np.cumsum(rng.integers(1, 400, n_points))
    columns: dict[str, Array] = {
        "agent_steps": steps,
        "frames": 4 * steps,
        "wall_time_s": np.round(np.cumsum(rng.gamma(4.0, 0.02, n_points)), 6),
        "episodes": np.arange(n_points),
        "value": rng.normal(size=n_points).astype("f4"),
    }
    for first in range(0, n_points, batch_rows):
        part: dict[str, Any] = {
            name: column[first : first + batch_rows].tolist() for name, column in columns.items()
        }
        yield PointsEvent(metric=metric, **part)


def _append(db_engine: Engine, run_id: str, seed: int) -> float:
    spent_s = 0.0
    for revision, batch in enumerate(_batches(seed, N_POINTS, _BATCH_ROWS, METRIC), start=2):
        started = perf_counter()
        with writing(db_engine) as session:
            repository.append(session, run_id, 1, revision, [batch])
        spent_s += perf_counter() - started
    return spent_s


def _live_append_ms(db_engine: Engine, run_id: str) -> float:
    n_batches = 50
    series = [
        list(_batches(at, _LIVE_ROWS * n_batches, _LIVE_ROWS, f"bench/{at}")) for at in range(_LIVE_SERIES)
    ]
    times_ms = []
    for revision, points in enumerate(zip(*series, strict=True), start=2):
        started = perf_counter()
        with writing(db_engine) as session:
            repository.append(session, run_id, 1, revision, points)
        times_ms.append(1000 * (perf_counter() - started))
    return median(times_ms)


def _chart_ms(db_engine: Engine, run_ids: list[str], smooth: float) -> float:
    request = service.ChartRequest(
        runs=run_ids,
        metrics=[METRIC],
        sources=[],
        axes=Axes("agent_steps", 1000, smooth),
        grouped=False,
        spread=Spread.chosen(None, "ci95"),
        since=[],
    )
    started = perf_counter()
    with reading(db_engine) as session:
        service.chart(session, request)
    return 1000 * (perf_counter() - started)


def _size(db_engine: Engine) -> int:
    with reading(db_engine) as session:
        return database_bytes(session)
