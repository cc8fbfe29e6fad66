from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, inspect, select, text
from sqlalchemy.exc import IntegrityError

from backend.db import Attempt, Base, Checkpoint, LogLine, Run
from backend.db.engine import make_engine, reading, writing
from backend.db.migrate import check, downgrade, is_current, upgrade
from backend.specs.states import RunState
from tests.support.artifacts import make_checkpoint
from tests.support.runs import make_run


@pytest.fixture
def own_engine(own_database_url: str) -> Iterator[Engine]:
    engine = make_engine(own_database_url)
    yield engine
    engine.dispose()


def test_tables_and_migrations_agree(own_database_url: str) -> None:
    check(own_database_url)


def test_upgrade_is_harmless_twice_and_goes_all_the_way_back(
    own_database_url: str, own_engine: Engine
) -> None:
    assert is_current(own_engine)
    upgrade(own_database_url)
    assert set(Base.metadata.tables) <= set(inspect(own_engine).get_table_names())
    downgrade(own_database_url, "base")
    assert inspect(own_engine).get_table_names() == ["alembic_version"]
    assert not is_current(own_engine)
    upgrade(own_database_url)
    check(own_database_url)


def test_check_sees_a_difference(own_database_url: str, own_engine: Engine) -> None:
    with own_engine.begin() as connection:
        connection.execute(text("ALTER TABLE hosts ADD COLUMN surplus INTEGER"))
    with pytest.raises(Exception, match="surplus"):
        check(own_database_url)


def test_a_failed_upgrade_leaves_nothing(tmp_path_factory: pytest.TempPathFactory) -> None:
    url = f"sqlite:///{tmp_path_factory.mktemp('db') / 'half.sqlite3'}"
    engine = make_engine(url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE transitions (id INTEGER)"))
    with pytest.raises(Exception, match="already exists"):
        upgrade(url)
    assert inspect(engine).get_table_names() == ["transitions"]
    engine.dispose()


def test_rows_live_through_every_migration(own_database_url: str, own_engine: Engine) -> None:
    run = make_run(own_engine, RunState.FINISHED)
    make_checkpoint(own_engine, run)
    downgrade(own_database_url, "0001")
    upgrade(own_database_url)
    with reading(own_engine) as session:
        found = session.get(Run, run.id)
        assert found is not None
        assert (found.spec, found.state) == (run.spec, "finished")
        assert len(session.scalars(select(LogLine)).all()) == 4
        assert len(session.scalars(select(Checkpoint)).all()) == 1
    with pytest.raises(IntegrityError), writing(own_engine) as session:
        session.add(Attempt(run_id="none", number=1, host="h", claimed_at=run.created_at))
