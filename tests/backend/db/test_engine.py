import socket
from datetime import UTC, datetime, timedelta
from threading import Barrier, Thread
from time import monotonic
from typing import Any

import pytest
from sqlalchemy import Engine, select
from sqlalchemy.exc import IntegrityError, OperationalError, StatementError

from backend.db import Host, LogLine
from backend.db import engine as database
from backend.db.clock import database_now, utc_now
from backend.db.engine import make_engine, reading, writing
from tests.support.databases import PostgresServer


def _host(name: str, slots: int = 0) -> Host:
    now = datetime.now(UTC)
    return Host(
        id=name, first_seen_at=now, last_seen_at=now, queues=[], slots=slots, cpu_count=1, memory_bytes=1,
        devices=[], environments=[], versions={}, load={},
    )  # fmt: skip


def test_writing_commits_or_changes_nothing(engine: Engine) -> None:
    with writing(engine) as session:
        session.add(_host("kept"))

    def fail() -> None:
        with writing(engine) as session:
            session.add(_host("lost"))
            session.flush()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with reading(engine) as session:
        assert session.scalars(select(Host.id)).all() == ["kept"]


def test_concurrent_read_then_write_waits_and_loses_no_update(engine: Engine) -> None:
    with writing(engine) as session:
        session.add(_host("h"))
    threads, rounds = 4, 10
    barrier = Barrier(threads)

    def work() -> None:
        barrier.wait()
        for _ in range(rounds):
            with writing(engine) as session:
                host = session.get(Host, "h", with_for_update=True)
                assert host is not None
                host.slots += 1

    running = [Thread(target=work) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    with reading(engine) as session:
        assert session.scalars(select(Host.slots)).one() == threads * rounds


def test_reading_sees_one_snapshot(engine: Engine) -> None:
    with reading(engine) as reader:
        assert reader.scalars(select(Host.id)).all() == []
        with writing(engine) as writer:
            writer.add(_host("h"))
        assert reader.scalars(select(Host.id)).all() == []


def test_foreign_keys_hold(engine: Engine) -> None:
    line = LogLine(run_id="none", attempt=1, time=datetime.now(UTC), level="info", message="")
    with pytest.raises(IntegrityError), writing(engine) as session:
        session.add(line)


def test_the_database_clock_is_utc_and_runs_within_a_transaction(engine: Engine) -> None:
    with writing(engine) as session:
        first = database_now(session)
        assert abs(first - datetime.now(UTC)) < timedelta(seconds=5)
        assert first.utcoffset() == timedelta(0)
        while database_now(session) == first:
            pass


def test_stored_times_compare_with_the_database_clock(engine: Engine) -> None:
    with writing(engine) as session:
        now = database_now(session)
        for name, offset_s in (("past", -1), ("future", 60)):
            host = _host(name)
            host.last_seen_at = now + timedelta(seconds=offset_s)
            session.add(host)
        session.flush()
        assert session.scalars(select(Host.id).where(Host.last_seen_at < utc_now())).all() == ["past"]


def test_naive_times_are_refused(engine: Engine) -> None:
    naive = datetime(2020, 1, 1)
    with reading(engine) as session, pytest.raises(StatementError, match="naive"):
        session.execute(select(Host).where(Host.last_seen_at < naive))


def test_a_server_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "CONNECT_TIMEOUT_S", 2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        engine = make_engine(f"postgresql+psycopg://x@127.0.0.1:{silent.getsockname()[1]}/x")
        begun = monotonic()
        with pytest.raises(OperationalError, match="timeout"), engine.connect():
            pass
        assert monotonic() - begun < 10


def test_a_server_out_of_reach_is_given_up(postgres: PostgresServer) -> None:
    # To cut a connection on its way takes a network of one's own: this sees that the system is told to.
    engine = make_engine(postgres.url("postgres"))
    with engine.connect() as connection:
        driver: Any = connection.connection.driver_connection
        given = driver.info.get_parameters()
    engine.dispose()
    assert given["tcp_user_timeout"] == "30000"
    idle, interval, count = (int(given[f"keepalives_{name}"]) for name in ("idle", "interval", "count"))
    assert idle + interval * count <= database.SILENCE_S
