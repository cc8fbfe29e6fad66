from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, inspect, text

from backend.db import Base
from backend.db.engine import make_engine
from backend.db.migrate import check, downgrade, is_current, upgrade


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
