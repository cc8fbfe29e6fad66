"""Statements do not find deleted runs, however often they are executed."""

import gc
from datetime import UTC, datetime
from weakref import ref

from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from backend.db import Run
from backend.db.engine import writing
from backend.db.run import WITH_DELETED
from tests.support.rows import make_run

NAMES = select(Run.name).order_by(Run.id)


def test_repeated_statement_hides_deleted_runs_unless_its_options_include_them(engine: Engine) -> None:
    make_run(engine, name="kept")
    deleted = make_run(engine, name="deleted")
    with Session(engine) as session:
        assert session.scalars(NAMES).all() == ["kept", "deleted"]
    with writing(engine) as session:
        session.get_one(Run, deleted.id).deleted_at = datetime.now(UTC)
    for _ in range(2):
        with Session(engine) as session:
            assert session.scalars(NAMES).all() == ["kept"]
            assert session.scalars(NAMES, execution_options=WITH_DELETED).all() == ["kept", "deleted"]


def test_statement_of_a_request_is_not_kept(engine: Engine) -> None:
    statement = select(Run).where(Run.name == "a")
    kept = ref(statement)
    with Session(engine) as session:
        session.scalars(statement).all()
    del statement
    gc.collect()
    assert kept() is None
