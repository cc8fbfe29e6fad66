import socket
import sqlite3
from datetime import UTC, datetime, timedelta
from threading import Barrier, Thread, Timer
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine, select, text
from sqlalchemy.exc import IntegrityError, OperationalError, StatementError

from backend.db import Host, LogLine, deadline
from backend.db import engine as database
from backend.db.clock import database_now, utc_now
from backend.db.deadline import Deadline, RequestEnded
from backend.db.engine import is_query_timeout, make_engine, reading, writing
from tests.support.databases import Databases
from tests.support.rows import host_row
from tests.support.waiting import until


def test_writing_commits_or_rolls_back(engine: Engine) -> None:
    with writing(engine) as session:
        session.add(host_row("kept"))

    def fail() -> None:
        with writing(engine) as session:
            session.add(host_row("lost"))
            session.flush()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with reading(engine) as session:
        assert session.scalars(select(Host.id)).all() == ["kept"]


def test_concurrent_read_then_write_loses_no_update(engine: Engine) -> None:
    with writing(engine) as session:
        session.add(host_row("h", slots=0))
    threads, rounds = 4, 10
    barrier = Barrier(threads)

    def work() -> None:
        barrier.wait()
        for _ in range(rounds):
            with writing(engine) as session:
                host = session.get(Host, "h", with_for_update=True)
                assert host is not None
                host.slots += 1

    running = [Thread(target=work, daemon=True) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    with reading(engine) as session:
        assert session.scalars(select(Host.slots)).one() == threads * rounds


def test_reading_sees_one_snapshot_during_concurrent_write(engine: Engine) -> None:
    with reading(engine) as reader:
        assert reader.scalars(select(Host.id)).all() == []
        with writing(engine) as writer:
            writer.add(host_row("h", slots=0))
        assert reader.scalars(select(Host.id)).all() == []


def test_foreign_keys_are_enforced(engine: Engine) -> None:
    line = LogLine(run_id="none", attempt=1, time=datetime.now(UTC), level="info", message="")
    with pytest.raises(IntegrityError), writing(engine) as session:
        session.add(line)


def test_database_clock_is_utc_and_advances_within_transaction(engine: Engine) -> None:
    with writing(engine) as session:
        first = database_now(session)
        assert abs(first - datetime.now(UTC)) < timedelta(minutes=5)
        assert first.utcoffset() == timedelta(0)
        until(lambda: database_now(session) > first, every_s=0)


def test_stored_times_compare_with_database_clock(engine: Engine) -> None:
    with writing(engine) as session:
        now = database_now(session)
        for name, offset_s in (("past", -1), ("future", 3600)):
            host = host_row(name)
            host.last_seen_at = now + timedelta(seconds=offset_s)
            session.add(host)
        session.flush()
        assert session.scalars(select(Host.id).where(Host.last_seen_at < utc_now())).all() == ["past"]


def test_naive_datetime_raises(engine: Engine) -> None:
    naive = datetime(2020, 1, 1)
    with reading(engine) as session, pytest.raises(StatementError, match="naive"):
        session.execute(select(Host).where(Host.last_seen_at < naive))


def test_connections_in_use_are_closed_after_dispose(database_url: str) -> None:
    engine = make_engine(database_url)
    with engine.connect() as before:
        in_use: Any = before.connection.driver_connection
        engine.dispose()
        assert before.scalar(select(1)) == 1
    with engine.connect() as after:
        later: Any = after.connection.driver_connection
    for connection in (in_use, later):
        with pytest.raises((sqlite3.ProgrammingError, psycopg.OperationalError), match="closed"):
            connection.execute("SELECT 1")


def test_connections_of_an_engine_that_is_not_disposed_are_reused(engine: Engine) -> None:
    used = set()
    for _ in range(3):
        with engine.connect() as connection:
            used.add(id(connection.connection.driver_connection))
    assert len(used) == 1


@pytest.mark.timeout(600)  # without a connection timeout it would wait for ever
def test_connect_times_out_when_server_never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "CONNECT_TIMEOUT_S", 2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        engine = make_engine(f"postgresql+psycopg://x@127.0.0.1:{silent.getsockname()[1]}/x")
        with pytest.raises(OperationalError, match="timeout"), engine.connect():
            pass


@pytest.mark.service
def test_postgresql_connection_sets_tcp_timeouts(postgres: Databases) -> None:
    # Cutting a live connection needs a private network: check the connection's parameters instead.
    engine = make_engine(postgres.url("postgres"))
    with engine.connect() as connection:
        driver: Any = connection.connection.driver_connection
        given = driver.info.get_parameters()
    engine.dispose()
    assert given["tcp_user_timeout"] == "30000"
    idle, interval, count = (int(given[f"keepalives_{name}"]) for name in ("idle", "interval", "count"))
    assert idle + interval * count <= database.SILENCE_S


ENDLESS = text("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT 1 FROM n) SELECT count(*) FROM n")


def test_long_query_is_cancelled_and_its_connection_stays_usable(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "QUERY_TIMEOUT_S", 0.5)
    engine = make_engine(database_url, with_timeouts=True)
    with reading(engine) as session:
        with pytest.raises(OperationalError) as caught:
            session.execute(ENDLESS)
        assert is_query_timeout(caught.value)
        session.rollback()
        assert session.scalar(select(1)) == 1
    engine.dispose()


def test_query_of_a_request_ends_with_it_and_its_connection_stays_usable(database_url: str) -> None:
    engine = make_engine(database_url, with_timeouts=True)
    request = Deadline()
    with deadline.applied(request), reading(engine) as session:
        assert session.scalar(select(1)) == 1
        timer = Timer(0.2, request.end)
        timer.start()
        with pytest.raises(OperationalError) as caught:
            session.execute(ENDLESS)
        assert is_query_timeout(caught.value)
        session.rollback()
        with pytest.raises(RequestEnded):
            session.scalar(select(1))
    with reading(engine) as session:
        assert session.scalar(select(1)) == 1
    with deadline.applied(request), writing(engine) as session:
        session.add(host_row("h"))
    timer.join()
    engine.dispose()


def test_long_query_of_a_transaction_that_writes_is_not_cancelled(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "QUERY_TIMEOUT_S", 0.2)
    engine = make_engine(database_url, with_timeouts=True)
    on_sqlite = engine.dialect.name == "sqlite"
    counted = "SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000"
    slow = (
        f"WITH RECURSIVE n(i) AS ({counted}) SELECT count(*) FROM n" if on_sqlite else "SELECT pg_sleep(0.6)"
    )
    with writing(engine) as session:
        session.execute(text(slow))
    engine.dispose()


def test_transaction_on_a_connection_that_was_long_idle_begins(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    times_s = [0.0]
    monkeypatch.setattr(database, "monotonic", lambda: times_s[-1])
    monkeypatch.setattr(database, "_STEPS_PER_CHECK", 1)
    engine = make_engine(database_url, with_timeouts=True)
    for _ in range(2):
        with reading(engine) as session:
            assert session.scalar(text("SELECT 1")) == 1
        times_s.append(10 * database.QUERY_TIMEOUT_S)
    engine.dispose()


def test_wait_for_the_write_lock_is_bounded(own_database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "LOCK_TIMEOUT_S", 0.2)
    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 10_000.0)  # as long it would wait without the limit
    engine = make_engine(own_database_url, with_timeouts=True)
    with writing(engine) as session:
        session.add(host_row("h"))
    other = make_engine(own_database_url)
    with writing(other) as holder:
        holder.get(Host, "h", with_for_update=True)
        for wait_s in (None, 0.1):
            with pytest.raises(OperationalError), writing(engine, wait_s=wait_s) as session:
                session.get(Host, "h", with_for_update=True)
    with writing(engine) as session:
        assert session.get(Host, "h", with_for_update=True) is not None
    other.dispose()
    engine.dispose()
