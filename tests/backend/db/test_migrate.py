import pytest
from sqlalchemy import Engine, inspect, text

from backend.db import Base
from backend.db.engine import make_engine
from backend.db.migrate import check, downgrade, is_current, upgrade


def test_tables_and_migrations_agree(database_url: str) -> None:
    check(database_url)


def test_upgrade_is_harmless_twice_and_goes_all_the_way_back(database_url: str, engine: Engine) -> None:
    assert is_current(engine)
    upgrade(database_url)
    assert set(Base.metadata.tables) <= set(inspect(engine).get_table_names())
    downgrade(database_url, "base")
    assert inspect(engine).get_table_names() == ["alembic_version"]
    assert not is_current(engine)
    upgrade(database_url)
    check(database_url)


def test_check_sees_a_difference(database_url: str, engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE hosts ADD COLUMN surplus INTEGER"))
    with pytest.raises(Exception, match="surplus"):
        check(database_url)


def test_a_failed_upgrade_leaves_nothing(tmp_path_factory: pytest.TempPathFactory) -> None:
    url = f"sqlite:///{tmp_path_factory.mktemp('db') / 'half.sqlite3'}"
    engine = make_engine(url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE transitions (id INTEGER)"))
    with pytest.raises(Exception, match="already exists"):
        upgrade(url)
    assert inspect(engine).get_table_names() == ["transitions"]
    engine.dispose()
