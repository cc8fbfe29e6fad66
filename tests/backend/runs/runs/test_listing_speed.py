"""A list of many runs takes one page query and one count, whatever matches."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Engine, event, insert

from backend.db import Run
from backend.db.base import new_id
from backend.db.engine import reading, writing
from backend.runs.runs import filters, repository
from backend.runs.runs.schemas import RunOut
from tests.support.rows import make_run

N_RUNS = 2_000
LIMIT = 100
FILTER = "algorithm:paac environment:CartPole score>10 tag:baseline or tag:new"


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


@contextmanager
def statements(engine: Engine) -> Iterator[list[str]]:
    """Yield the list of SELECT statements sent in the context."""
    sent: list[str] = []

    def note(conn: Any, cursor: Any, statement: str, *rest: Any) -> None:
        if statement.startswith("SELECT"):
            sent.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(engine, "before_cursor_execute", note)


def test_page_of_many_runs_takes_two_statements_and_loads_one_page(many_runs: Engine) -> None:
    loaded: list[object] = []
    event.listen(Run, "load", note := lambda target, context: loaded.append(target))
    try:
        with statements(many_runs) as sent, reading(many_runs) as session:
            rows, _, total = repository.page(
                session, filters.parse(FILTER), sort="best_return", descending=True, limit=LIMIT, cursor=None
            )
            shown = [RunOut.of(row) for row in rows]
    finally:
        event.remove(Run, "load", note)
    best = [run.best_return for run in shown if run.best_return is not None]
    assert best == sorted(best, reverse=True)
    assert len(shown) == LIMIT
    assert N_RUNS / 10 < total < 4 * N_RUNS / 10
    page, count = sorted(sent, key=lambda statement: "count(" in statement)
    assert "LIMIT" in page
    assert "count(" in count
    assert len(loaded) <= LIMIT + 1  # one more shows whether there is a next page
