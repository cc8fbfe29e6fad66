from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, inspect, select, text
from sqlalchemy.exc import IntegrityError

from backend.db import Attempt, Base, Evaluation, Run, Series, Sweep, SweepConfiguration
from backend.db.engine import make_engine, opened, reading, writing
from backend.db.migrate import (
    UnknownSchemaError,
    check,
    downgrade,
    is_current,
    refuse_unknown_schema,
    upgrade,
)
from tests.support.rows import evaluation_row, make_run


@pytest.fixture
def own_engine(own_database_url: str) -> Iterator[Engine]:
    engine = make_engine(own_database_url)
    yield engine
    engine.dispose()


def test_models_match_migrations(own_database_url: str) -> None:
    check(own_database_url)


def test_upgrade_is_idempotent_and_downgrade_reaches_base(own_database_url: str, own_engine: Engine) -> None:
    assert is_current(own_engine)
    upgrade(own_database_url)
    assert set(Base.metadata.tables) <= set(inspect(own_engine).get_table_names())
    downgrade(own_database_url, "base")
    assert inspect(own_engine).get_table_names() == ["alembic_version"]
    assert not is_current(own_engine)
    upgrade(own_database_url)
    check(own_database_url)


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


def test_upgrade_renames_the_protocol_of_sticky_actions_where_it_is_stored(
    own_database_url: str, own_engine: Engine
) -> None:
    chosen = {"evaluation_protocol": "sticky_actions_5min_greedy"}
    sticky: dict[str, Any] = {"environment": "ALE/Pong-v5", "environment_config": {"sticky_actions": 0.25}}
    run = make_run(own_engine, config=chosen, **sticky)
    other = make_run(own_engine, **sticky)
    metrics = [
        "eval/sticky_actions_5min/mean_return",
        "eval/noop_starts/mean_return",
        "rollout/episode_return",
    ]
    spec = {
        "protocol": "sticky_actions_5min",
        "run": {"config": chosen, "environment_config": {"sticky_actions": 0.25}},
        "space": {"config.evaluation_protocol": {"values": ["noop_starts", "sticky_actions_5min"]}},
    }
    with writing(own_engine) as session:
        session.add_all(Series(run_id=run.id, metric=metric) for metric in metrics)
        session.add(evaluation_row(run.id, 100, 1.0, protocol="sticky_actions_5min"))
        session.add(
            Sweep(
                id="s",
                created_at=run.created_at,
                created_by=None,
                name="s",
                spec=spec,
                state="finished",
                ended_at=None,
            )
        )
        session.flush()
        settings = {"config.evaluation_protocol": "sticky_actions_5min"}
        session.add(SweepConfiguration(sweep_id="s", number=0, settings=settings, eliminated=None))

    def stored() -> list[Any]:
        with reading(own_engine) as session:
            return [
                session.get_one(Run, run.id).spec,
                session.get_one(Run, other.id).spec,
                sorted(session.scalars(select(Series.metric))),
                session.scalars(select(Evaluation.protocol)).all(),
                session.get_one(Sweep, "s").spec,
                session.get_one(SweepConfiguration, ("s", 0)).settings,
            ]

    after = stored()
    downgrade(own_database_url, "0103")
    with own_engine.begin() as connection:
        assert connection.scalar(text("SELECT protocol FROM evaluations")) == "sticky_actions"
        specs = connection.scalars(
            text("SELECT CAST(spec AS TEXT) FROM runs UNION SELECT CAST(spec AS TEXT) FROM sweeps")
        )
        assert not any("sticky_actions_5min" in spec for spec in specs)
        names = connection.scalars(text("SELECT metric FROM series ORDER BY metric")).all()
        assert "eval/sticky_actions/mean_return" in names
        settings_now = connection.scalar(text("SELECT CAST(settings AS TEXT) FROM sweep_configurations"))
        assert settings_now is not None
        assert "sticky_actions_5min" not in settings_now
        assert len(names) == 3
    upgrade(own_database_url)
    assert stored() == after
