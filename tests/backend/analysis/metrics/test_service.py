import json
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier, BrokenBarrierError
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine

from backend.analysis.metrics import repository, service
from backend.analysis.metrics.axes import Axes
from backend.analysis.metrics.charts import curves
from backend.db.engine import reading, writing
from backend.platform.errors import Invalid
from backend.runs.runs import service as runs
from backend.specs.events import PointsEvent
from backend.statistics.grouping import Spread
from tests.support.rows import make_run

N_METRICS = 20
N_POINTS = 5000


def _run_with_points(engine: Engine) -> str:
    run = make_run(engine)
    at = list(range(N_POINTS))
    values = np.random.default_rng(1).normal(size=N_POINTS).tolist()
    columns: dict[str, Any] = {"agent_steps": at, "frames": at, "episodes": at, "value": values}
    points = [
        PointsEvent(metric=f"m/{n}", wall_time_s=[float(i) for i in at], **columns) for n in range(N_METRICS)
    ]
    with writing(engine) as session:
        repository.append(session, run.id, 1, runs.bump_revision(session, run.id), points)
    return run.id


def _request(run_id: str) -> service.ChartRequest:
    return service.ChartRequest(
        runs=[run_id],
        metrics=[f"m/{n}" for n in range(N_METRICS)],
        sources=[],
        axes=Axes("agent_steps", N_POINTS, 0.0),
        grouped=False,
        spread=Spread.chosen(None, "ci95"),
        since=[],
    )


@pytest.mark.long
def test_memory_of_a_large_chart_is_bounded_by_its_json_size(engine: Engine) -> None:
    request = _request(_run_with_points(engine))
    with reading(engine) as session:
        service.chart(session, request)  # imports and caches
        tracemalloc.start()
        try:
            body = service.chart(session, request)
            _, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert [len(curve["mean"]) for curve in json.loads(bytes(body))["series"]] == [N_POINTS] * N_METRICS
    assert peak_bytes < 1.4 * len(body)


def test_chart_of_too_many_points_is_refused(engine: Engine) -> None:
    request = replace(_request(_run_with_points(engine)), axes=Axes("agent_steps", 15_000, 0.0))
    with (
        reading(engine) as session,
        pytest.raises(Invalid, match="20 series of up to 15000 points exceed the maximum of 250,000 points"),
    ):
        service.chart(session, request)


def test_large_charts_are_computed_one_after_the_other(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = _request(_run_with_points(engine))
    both = Barrier(2)

    def at_the_same_time(*given: Any, **options: Any) -> Any:
        with pytest.raises(BrokenBarrierError):
            both.wait(0.3)
        return curves(*given, **options)

    monkeypatch.setattr(service, "curves", at_the_same_time)
    monkeypatch.setattr(service, "LARGE_BUCKETS", N_METRICS * N_POINTS - 1)

    def read(_: int) -> int:
        with reading(engine) as session:
            return len(service.chart(session, request))

    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(read, range(2))
    assert first == second > 0
