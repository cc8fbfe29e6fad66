import pytest
from sqlalchemy import Engine, select

from backend.db import Run
from backend.db.engine import reading
from backend.metrics import bench, repository

pytestmark = pytest.mark.service


def test_measures_what_it_stores(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "N_POINTS", 20_000)
    monkeypatch.setattr(bench, "N_RUNS", 3)
    result = bench.bench(engine)
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
    with reading(engine) as session:
        ids = session.scalars(select(Run.id)).all()
        stored = [s.n_points for s in repository.list_series(session, ids, [bench.METRIC])]
    assert stored == [20_000] * 3
