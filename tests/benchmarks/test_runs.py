import pytest
from sqlalchemy import Engine

from backend.db.engine import reading
from backend.runs.runs import filters, repository
from benchmarks import runs as bench

pytestmark = [pytest.mark.service, pytest.mark.long]


def test_list_benchmark_measures_a_filter_that_matches_some_runs(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "N_RUNS", 240)
    measured = {"list_ms", "list_all_ms", "list_setting_ms", "list_metric_ms"}
    measured |= {"groups_first_ms", "groups_ms", "groups_p95_ms"}
    assert {name for name, ms in bench.bench(engine).items() if ms > 0} == measured
    with reading(engine) as session:
        rows, _, total = repository.page(
            session, filters.parse(bench.FILTER), sort="score", descending=True, limit=1000, cursor=None
        )
        assert sum(repository.count_by_state(session).values()) == 240
    assert 10 < total < 120
    scores = [run.score for run in rows if run.score is not None]
    assert len(scores) == len(rows)
    assert scores == sorted(scores, reverse=True)
    assert {run.environment for run in rows} == {"ALE/Pong-v5"}
