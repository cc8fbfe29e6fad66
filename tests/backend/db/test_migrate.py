import json
from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy import Engine, inspect, select, text
from sqlalchemy.exc import IntegrityError

from backend.auth import repository as auth_rows
from backend.auth import service as auth
from backend.auth.roles import Role
from backend.db import Attempt, Base, Checkpoint, Evaluation, Host, LogLine, Run, Series, Token
from backend.db.engine import make_engine, reading, writing
from backend.db.migrate import check, downgrade, is_current, upgrade
from backend.hosts.repository import record_heartbeat
from backend.specs.run import parse_run_spec
from backend.specs.states import RunState
from tests.backend.metrics.oracle import METRICS, RecordedRun
from tests.support.rows import evaluation_row, make_checkpoint, make_run


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


def test_failed_upgrade_is_rolled_back(tmp_path_factory: pytest.TempPathFactory) -> None:
    url = f"sqlite:///{tmp_path_factory.mktemp('db') / 'half.sqlite3'}"
    engine = make_engine(url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE transitions (id INTEGER)"))
    with pytest.raises(Exception, match="already exists"):
        upgrade(url)
    assert inspect(engine).get_table_names() == ["transitions"]
    engine.dispose()


def test_rows_survive_downgrade_and_upgrade(own_database_url: str, own_engine: Engine) -> None:
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


def test_names_of_version_0_1_0_in_rows_become_the_current_ones_and_back(
    own_database_url: str, own_engine: Engine
) -> None:
    line = {
        "id": "Custom/Line-v0",
        "title": "A line",
        "observation": "vector",
        "actions": "discrete",
        "action_names": ["left", "right"],
    }
    notes = 'Not a key: "own": "Own/Line-v0", {"picture_size": 1}, "id": "Own/'
    custom = make_run(own_engine, environment="Custom/Line-v0", custom=line, notes=notes)
    pong = make_run(own_engine, environment="ALE/Pong-v5")
    facts = {
        "queues": ["cpu"],
        "slots": 1,
        "cpu_count": 1,
        "memory_bytes": 2**30,
        "devices": ["cpu"],
        "environments": ["ALE/Pong-v5", "Custom/Line-v0"],
        "custom_environments": [line],
        "versions": {},
        "load": {},
    }
    with writing(own_engine) as session:
        record_heartbeat(session, "attic", **facts)
    downgrade(own_database_url, "0009")
    with own_engine.connect() as connection:
        specs = {
            environment: spec if isinstance(spec, dict) else json.loads(spec)
            for environment, spec in connection.execute(text("SELECT environment, spec FROM runs"))
        }
        hosts = connection.execute(text("SELECT environments, own_environments FROM hosts")).one()
    assert sorted(specs) == ["ALE/Pong-v5", "Own/Line-v0"]
    assert specs["ALE/Pong-v5"]["environment_config"]["picture_size"] == "84x84"
    assert specs["ALE/Pong-v5"]["own"] is None
    assert specs["Own/Line-v0"]["environment"] == specs["Own/Line-v0"]["own"]["id"] == "Own/Line-v0"
    assert specs["Own/Line-v0"]["notes"] == notes
    assert parse_run_spec(specs["Own/Line-v0"]) == parse_run_spec(custom.spec)
    assert ["Own/Line-v0" in str(column) for column in hosts] == [True, True]
    upgrade(own_database_url)
    with reading(own_engine) as session:
        for run in (custom, pong):
            found = session.get_one(Run, run.id)
            assert (found.spec, found.environment) == (run.spec, run.environment)
        host = session.get_one(Host, "attic")
        assert (host.environments, host.custom_environments) == (facts["environments"], [line])


def test_every_score_of_version_0_1_0_gets_the_name_of_what_was_done(
    own_database_url: str, own_engine: Engine
) -> None:
    """That version called every evaluation on Atari `noop_starts`, whatever its cap."""
    wanted = {
        ("dqn", "ALE/Pong-v5", 18_000): "noop_starts_5min",
        ("gorila_dqn", "ALE/Breakout-v5", 18_000): "noop_starts_5min",
        ("dqn", "ALE/Pong-v5", 108_000): "noop_starts",
        ("dqn", "ALE/Pong-v5", 9_000): "noop_starts_9000_frames",
        ("paac", "ALE/Pong-v5", None): "noop_starts",
        ("dqn", "CartPole-v1", 18_000): "plain",
    }
    named = {}
    metrics = ("mean_return", "best_kept_return")
    for (algorithm, environment, cap), current in wanted.items():
        run = make_run(own_engine, algorithm=algorithm, environment=environment)
        former = "plain" if current == "plain" else "noop_starts"
        named[run.id] = (former, current)
        with writing(own_engine) as session:
            stored = session.get_one(Run, run.id)
            if cap is not None:
                config = stored.spec["config"] | {"evaluation_max_frames": cap}
                stored.spec = stored.spec | {"config": config}
            session.add_all(
                evaluation_row(run.id, steps, score, protocol=former)
                for steps, score in ((1, 2.0), (2, None))
            )
            session.add_all(Series(run_id=run.id, metric=f"eval/{former}/{name}") for name in metrics)
            session.add(Series(run_id=run.id, metric="rollout/episode_return"))

    def names() -> dict[str, tuple[set[str], set[str]]]:
        with reading(own_engine) as session:
            return {
                run: (
                    set(session.scalars(select(Evaluation.protocol).where(Evaluation.run_id == run))),
                    set(session.scalars(select(Series.metric).where(Series.run_id == run))),
                )
                for run in named
            }

    def as_named(which: int) -> dict[str, tuple[set[str], set[str]]]:
        return {
            run: (
                {both[which]},
                {f"eval/{both[which]}/{name}" for name in metrics} | {"rollout/episode_return"},
            )
            for run, both in named.items()
        }

    downgrade(own_database_url, "0012")
    with own_engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0011'"))
    upgrade(own_database_url, "0012")
    assert names() == as_named(1)
    downgrade(own_database_url, "0011")
    assert names() == as_named(0)
    upgrade(own_database_url, "0012")
    assert names() == as_named(1)


def test_recorded_series_get_their_statistics(own_database_url: str, own_engine: Engine) -> None:
    recorded = RecordedRun(own_engine, 1)
    recorded.append({METRICS[0]: 5000, METRICS[1]: 3})
    recorded.cut(0.5)

    def statistics() -> list[tuple[int, float | None, float | None, float | None]]:
        with reading(own_engine) as session:
            return [
                (row.n_finite, row.mean_value, row.min_value, row.max_value)
                for row in session.scalars(select(Series).order_by(Series.id))
            ]

    before = statistics()
    downgrade(own_database_url, "0012")
    upgrade(own_database_url)
    assert before[0][0] > 0
    for one, other in zip(statistics(), before, strict=True):
        assert one == pytest.approx(other)


def test_sessions_and_tokens_of_an_earlier_version_stay_valid_and_plain_passwords_do_not(
    own_database_url: str, own_engine: Engine
) -> None:
    with writing(own_engine) as session:
        user = auth_rows.add_user(session, "Anna", Role.VIEWER, "$argon2id$a hash")
        auth_rows.add_user(session, "Berta", Role.VIEWER, "a plain password")
        token, token_secret = auth.create_token(session, user, "script", Role.VIEWER, None)
        _, secret = auth.open_session(session, user, "link", auth.Browser("192.0.2.1", "Firefox"))
        _, other = auth.open_session(session, user, "link", auth.Browser("", ""))
    downgrade(own_database_url, "0015")
    upgrade(own_database_url)
    with reading(own_engine) as session:
        found = [auth.find_principal(session, each, timedelta(days=7)) for each in (secret, other)]
        assert [actor.name for actor in found if actor is not None] == ["Anna", "Anna"]
        assert len({actor.credential.id for actor in found if actor is not None}) == 2
        assert auth.find_token_principal(session, token_secret) is not None
        assert session.get_one(Token, token.id).created_with is None
        hashes = [auth_rows.user_by_name(session, name) for name in ("Anna", "Berta")]
        assert [user.password_hash for user in hashes if user] == ["$argon2id$a hash", None]
