import os
import random
from time import perf_counter

import pytest
from sqlalchemy import Engine, insert, text

from backend.cli.children import processor_waits_s
from backend.db import Run
from backend.db.engine import reading, writing
from backend.db.ids import new_id
from backend.runs import filters, repository
from backend.runs.schemas import RunOut
from tests.support.runs import make_run

N_RUNS = 10_000
FILTER = "algorithm:paac environment:CartPole score>10 tag:baseline or tag:new"
GOAL_S = 0.1


@pytest.fixture
def many_runs(engine: Engine) -> Engine:
    run = make_run(engine)
    chance = random.Random(1)
    columns = {column.key: getattr(run, column.key) for column in Run.__mapper__.columns}
    rows = [
        columns
        | {
            "id": new_id(),
            "name": f"run {i}",
            "tags": chance.sample(["baseline", "new", "other", "odd"], 2),
            "score": chance.uniform(-21, 21),
            "best_return": chance.uniform(-21, 21),
        }
        for i in range(N_RUNS - 1)
    ]
    with writing(engine) as session:
        session.execute(insert(Run), rows)
    return engine


def test_ten_thousand_runs_sorted_and_filtered_in_a_tenth_of_a_second(many_runs: Engine) -> None:
    pids = [os.getpid()]
    if many_runs.dialect.name == "postgresql":
        with reading(many_runs) as session:
            pids.append(session.scalars(text("SELECT pg_backend_pid()")).one())
    times_s = []
    for _ in range(8):
        waits_s, begun = {pid: _waited_s(pid) for pid in pids}, perf_counter()
        with reading(many_runs) as session:
            rows, _, total = repository.page(
                session, filters.parse(FILTER), sort="best_return", descending=True, limit=100, cursor=None
            )
            shown = [RunOut.of(row) for row in rows]
        took_s = perf_counter() - begun
        # Where both wait at once, that is one wait.
        times_s.append(took_s - max(_waited_s(pid) - waits_s[pid] for pid in pids))
    best = [run.best_return for run in shown if run.best_return is not None]
    assert best == sorted(best, reverse=True)
    assert len(shown) == 100
    assert 1_000 < total < 4_000
    # The quickest: a busy machine only ever adds to it.
    assert min(times_s) < GOAL_S


def _waited_s(pid: int) -> float:
    """For how long a process has waited for a processor."""
    return max(processor_waits_s(pid).values(), default=0.0)
