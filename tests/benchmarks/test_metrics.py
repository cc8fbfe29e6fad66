import pytest
from sqlalchemy import select

from backend.analysis.metrics import repository
from backend.db import Run
from backend.db.engine import opened, reading
from benchmarks import metrics as bench

pytestmark = [pytest.mark.service, pytest.mark.long]


def test_metrics_benchmark_measures_the_stored_series(
    own_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a database of its own: one with deleted rows has free space, and may shrink at any time."""
    monkeypatch.setattr(bench, "N_POINTS", 20_000)
    monkeypatch.setattr(bench, "N_RUNS", 3)
    with opened(own_database_url) as engine:
        result = bench.bench(engine)
        with reading(engine) as session:
            ids = session.scalars(select(Run.id)).all()
            stored = [s.n_points for s in repository.list_series(session, ids, [bench.METRIC])]
    assert set(result) == {
        "append_points_per_s",
        "bytes_per_point",
        "chart_5_ms",
        "chart_20_ms",
        "chart_20_smoothed_ms",
        "live_append_ms",
    }
    assert all(value > 0 for value in result.values())
    assert 2 < result["bytes_per_point"] < 100
    assert stored == [20_000] * 3
