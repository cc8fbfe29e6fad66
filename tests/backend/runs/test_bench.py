import pytest
from sqlalchemy import Engine

from backend.db.engine import reading
from backend.runs import bench, filters, repository

pytestmark = pytest.mark.service


def test_measures_a_list_of_which_the_filter_leaves_a_part(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "N_RUNS", 240)
    assert {name for name, ms in bench.bench(engine).items() if ms > 0} == {"list_ms", "list_all_ms"}
    with reading(engine) as session:
        rows, _, total = repository.page(
            session, filters.parse(bench.FILTER), sort="score", descending=True, limit=1000, cursor=None
        )
        assert sum(repository.count_by_state(session).values()) == 240
    assert 10 < total < 120
    scores = [run.score for run in rows]
    assert scores == sorted(scores, reverse=True)
    assert {run.environment for run in rows} == {"ALE/Pong-v5"}
