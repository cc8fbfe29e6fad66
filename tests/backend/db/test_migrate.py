from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Dialect, Engine, create_mock_engine, inspect, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError

from backend.db import Attempt, Base, Run
from backend.db.engine import make_engine, opened, reading, writing
from backend.db.migrate import (
    UnknownSchemaError,
    check,
    is_current,
    known_revisions,
    refuse_unknown_schema,
    upgrade,
)
from tests.support.rows import make_run


@pytest.fixture
def own_engine(own_database_url: str) -> Iterator[Engine]:
    engine = make_engine(own_database_url)
    yield engine
    engine.dispose()


def test_upgrade_creates_the_tables_of_the_models_once(own_database_url: str, own_engine: Engine) -> None:
    assert is_current(own_engine)
    upgrade(own_database_url)
    assert set(inspect(own_engine).get_table_names()) == {*Base.metadata.tables, "alembic_version"}
    check(own_database_url)


def test_revision_is_the_digest_of_the_tables() -> None:
    """If it is not, set `revision` of `alembic/versions/tables.py` to the digest: a database with the former
    tables is then refused."""
    statements: list[str] = []
    dialects: list[Dialect] = [sqlite.dialect(), postgresql.dialect()]  # type: ignore[no-untyped-call]
    for dialect in dialects:

        def note(sql: Any, *_: Any, dialect: Dialect = dialect) -> None:
            statements.append(str(sql.compile(dialect=dialect)))

        Base.metadata.create_all(create_mock_engine(f"{dialect.name}://", note), checkfirst=False)
    statements.sort()
    digest = sha256("\n".join(statements).encode()).hexdigest()[:12]
    assert known_revisions() == {digest}


def test_check_raises_on_schema_difference(own_database_url: str, own_engine: Engine) -> None:
    with own_engine.begin() as connection:
        connection.execute(text("ALTER TABLE hosts ADD COLUMN surplus INTEGER"))
    with pytest.raises(Exception, match="surplus"):
        check(own_database_url)


def test_failed_upgrade_is_rolled_back(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'half.sqlite3'}"
    with opened(url) as engine:
        with engine.begin() as connection:
            connection.execute(text("CREATE TABLE other (id INTEGER)"))
            connection.execute(text("CREATE INDEX ix_runs_state_queue_priority_id ON other (id)"))
        with pytest.raises(Exception, match="already exists"):
            upgrade(url)
        assert inspect(engine).get_table_names() == ["other"]


def test_foreign_keys_hold(own_engine: Engine) -> None:
    run = make_run(own_engine)
    with pytest.raises(IntegrityError), writing(own_engine) as session:
        session.add(Attempt(run_id="none", number=1, host="h", claimed_at=run.created_at))


@pytest.mark.parametrize(
    ("statement", "tables"),
    [
        ("UPDATE alembic_version SET version_num = '0023'", "the schema 0023"),
        ("DROP TABLE alembic_version", "tables without a schema version"),
    ],
)
def test_schema_of_another_version_is_refused_and_left_as_it_is(
    own_database_url: str, own_engine: Engine, statement: str, tables: str
) -> None:
    run = make_run(own_engine)
    with own_engine.begin() as connection:
        connection.execute(text(statement))
    names = inspect(own_engine).get_table_names()
    with pytest.raises(UnknownSchemaError, match=f" has {tables}, of another version of Callboard"):
        upgrade(own_database_url)
    with pytest.raises(UnknownSchemaError):
        refuse_unknown_schema(own_engine)
    assert inspect(own_engine).get_table_names() == names
    with reading(own_engine) as session:
        assert session.get_one(Run, run.id).spec == run.spec


def test_empty_database_and_tables_of_others_are_not_refused(tmp_path: Path) -> None:
    with opened(f"sqlite:///{tmp_path / 'shared.sqlite3'}") as engine:
        refuse_unknown_schema(engine)
        with engine.begin() as connection:
            connection.execute(text("CREATE TABLE other (id INTEGER)"))
        refuse_unknown_schema(engine)
