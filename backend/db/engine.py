"""Engines and sessions with the same transaction rules on SQLite and PostgreSQL."""

import math
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from backend.db import deadline
from backend.db.deadline import Deadline
from backend.db.write_lock import WriteLock, WriteTurn
from backend.platform.caching import Caches

BUSY_TIMEOUT_S = 20.0
"""How long SQLite waits for another writer before it raises an error."""

CONNECT_TIMEOUT_S = 10
"""Timeout for a new connection to a PostgreSQL server."""

SILENCE_S = 30
"""Timeout for a server that has become unreachable. The system's default is 15 minutes, in which no lease
could be renewed."""

MAX_CONNECTIONS = 50
"""More than the web process has threads, so that no request waits for a connection."""

LOCK_TIMEOUT_S = 4.0
"""How long a transaction of a process that answers requests waits for a lock, or for a free connection."""

QUERY_TIMEOUT_S = 10.0
"""How long a query of such a process may take, unless its transaction writes."""

CANCEL_TIMEOUT_S = 2.0
"""How long a query's cancellation on PostgreSQL may take."""

_POOLED = "callboard_pooled"
"""In a connection's `info`: whether a pooler stands before the server."""

_WRITING = "callboard_writing"
_WAIT_S = "callboard_wait_s"
_CACHES = "callboard_caches"
"""In an engine's options: the `Caches` of what was read from its database."""
_LOCK = "callboard_lock"
"""In an engine's options: the `WriteLock` of SQLite."""
_TURN = "callboard_turn"
"""In a connection's options and a session's `info`: the transaction's turn at that lock."""

_QUERY_CANCELED = "57014"

_STEPS_PER_CHECK = 100_000
"""SQLite's instructions between two checks of the time: less than a millisecond."""


def make_engine(url: str, *, with_timeouts: bool = False) -> Engine:
    """Create an engine for `url`, which is SQLite or PostgreSQL (psycopg 3).

    SQLite: write-ahead log, foreign keys, a busy timeout; a missing folder is created. `dispose` closes the
    connections in use too, as soon as they are returned.

    Args:
        url: SQLAlchemy URL.
        with_timeouts: for a process that answers requests: with `LOCK_TIMEOUT_S` and `QUERY_TIMEOUT_S`, after
            which an `OperationalError` is raised.
    """
    parsed = make_url(url)
    pool: dict[str, Any] = {"max_overflow": MAX_CONNECTIONS}
    if with_timeouts:
        pool["pool_timeout"] = LOCK_TIMEOUT_S
    if parsed.get_backend_name() != "sqlite":
        engine = create_engine(
            parsed,
            pool_pre_ping=True,
            **pool,
            execution_options={_CACHES: Caches()},
            connect_args={
                "connect_timeout": CONNECT_TIMEOUT_S,
                "tcp_user_timeout": SILENCE_S * 1000,
                "keepalives_idle": SILENCE_S // 3,
                "keepalives_interval": SILENCE_S // 3,
                "keepalives_count": 2,
            },
        )
        _close_after_dispose(engine)
        event.listen(engine, "connect", _find_pooler)
        if with_timeouts:
            event.listen(engine, "connect", _set_timeouts)
            event.listen(engine, "begin", _begin_postgres)
            event.listen(engine, "before_cursor_execute", _cancel_at_deadline)
            event.listen(engine, "after_cursor_execute", _forget_deadline)
            event.listen(engine, "handle_error", _forget_deadline_on_error)
        return engine
    if parsed.database:
        Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(
        parsed,
        **pool,
        execution_options={_CACHES: Caches(), _LOCK: WriteLock()}
        | ({_WAIT_S: LOCK_TIMEOUT_S} if with_timeouts else {}),
        connect_args={"timeout": BUSY_TIMEOUT_S, "isolation_level": None},
    )
    _close_after_dispose(engine)
    event.listen(engine, "connect", _set_pragmas)
    event.listen(engine, "begin", _begin_sqlite)
    if with_timeouts:
        event.listen(engine, "connect", _interrupt_long_queries)
        event.listen(engine, "before_cursor_execute", _note_start)
    return engine


def caches_of(session: Session) -> Caches:
    """The caches of what was read from the session's database; they live as long as its engine."""
    caches: Caches = session.get_bind().get_execution_options()[_CACHES]
    return caches


def is_query_timeout(error: Exception) -> bool:
    """Whether an `OperationalError` means that a query took longer than `QUERY_TIMEOUT_S`."""
    cause = getattr(error, "orig", None)
    return bool(getattr(cause, "sqlstate", None) == _QUERY_CANCELED) or (
        isinstance(cause, sqlite3.OperationalError) and str(cause) == "interrupted"
    )


def _find_pooler(connection: Any, record: Any) -> None:
    """Record whether a pooler such as PgBouncer is in between: its process id differs from the server's.

    In its transaction mode each transaction may have another session of the server, so that nothing may
    outlive a transaction: no prepared statement, and no setting.
    """
    [pid] = connection.execute("SELECT pg_backend_pid()").fetchone()
    connection.commit()
    record.info[_POOLED] = pid != connection.info.backend_pid
    if record.info[_POOLED]:
        connection.prepare_threshold = None


def _timeouts_ms() -> dict[str, int]:
    """Settings of PostgreSQL for a transaction that asks for no other ones."""
    return {"lock_timeout": round(LOCK_TIMEOUT_S * 1000), "statement_timeout": round(QUERY_TIMEOUT_S * 1000)}


def _set_timeouts(connection: Any, record: Any) -> None:
    if not record.info[_POOLED]:
        connection.execute("; ".join(f"SET {name} = {value}" for name, value in _timeouts_ms().items()))
        connection.commit()


def _begin_postgres(connection: Connection) -> None:
    options = connection.get_execution_options()
    timeouts_ms = _timeouts_ms() if connection.info[_POOLED] else {}
    if options.get(_WRITING, False):
        timeouts_ms["statement_timeout"] = 0
        if _WAIT_S in options:
            timeouts_ms["lock_timeout"] = max(1, round(options[_WAIT_S] * 1000))  # 0 would be without end
    if timeouts_ms:
        connection.exec_driver_sql("; ".join(f"SET LOCAL {name} = {ms}" for name, ms in timeouts_ms.items()))


_ENDS_AT = "callboard_ends_at"
"""In a connection's `info`: when its query is interrupted."""
_DEADLINE = "callboard_deadline"
"""In a connection's `info`: the deadline of the request that it reads for; on PostgreSQL with what cancels
its query."""


def _interrupt_long_queries(connection: sqlite3.Connection, record: Any) -> None:
    def is_late() -> bool:
        request: Deadline | None = record.info.get(_DEADLINE)
        return (request is not None and request.is_over) or monotonic() > record.info.get(_ENDS_AT, math.inf)

    connection.set_progress_handler(is_late, _STEPS_PER_CHECK)


def _note_start(
    connection: Connection, cursor: Any, statement: str, parameters: Any, context: Any, executemany: bool
) -> None:
    writing = connection.get_execution_options().get(_WRITING, False)
    connection.info[_ENDS_AT] = math.inf if writing else monotonic() + QUERY_TIMEOUT_S
    connection.info[_DEADLINE] = request = None if writing else deadline.current()
    if request is not None:
        request.check()


def _cancel_at_deadline(
    connection: Connection, cursor: Any, statement: str, parameters: Any, context: Any, executemany: bool
) -> None:
    request = deadline.current()
    if request is None or connection.get_execution_options().get(_WRITING, False):
        return
    driver: Any = connection.connection.driver_connection

    def cancel() -> None:
        # A message over the network, from the thread of the event loop.
        Thread(target=partial(driver.cancel_safe, timeout=CANCEL_TIMEOUT_S), daemon=True).start()

    request.subscribe(cancel)
    connection.info[_DEADLINE] = request, cancel


def _forget_deadline(connection: Connection, *details: Any) -> None:
    request, cancel = connection.info.pop(_DEADLINE, (None, None))
    if request is not None:
        request.unsubscribe(cancel)


def _forget_deadline_on_error(context: ExceptionContext) -> None:
    if context.connection is not None and not context.connection.invalidated:
        _forget_deadline(context.connection)


@contextmanager
def opened(url: str) -> Iterator[Engine]:
    """An engine for `url` within the block."""
    engine = make_engine(url)
    try:
        yield engine
    finally:
        engine.dispose()


def _close_after_dispose(engine: Engine) -> None:
    """Close connections that are returned after `dispose`, such as those of threads that have not ended.

    SQLAlchemy would keep them open in a pool that is no longer used, until the garbage collector finds them.
    """
    first_pool, disposed = engine.pool, Event()

    def close(connection: Any, record: Any) -> None:
        if disposed.is_set():
            record.invalidate()

    def on_dispose(engine: Engine) -> None:
        disposed.set()
        first_pool.dispose()  # what was returned just before

    event.listen(engine, "checkin", close)
    event.listen(engine, "engine_disposed", on_dispose)


def _set_pragmas(connection: sqlite3.Connection, record: Any) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA foreign_keys=ON")


def _begin_sqlite(connection: Connection) -> None:
    # A deferred transaction that reads and then writes fails immediately if another has written in between,
    # whatever the busy timeout. Transactions that may write therefore take the lock first.
    options = connection.get_execution_options()
    driver: Any = connection.connection.driver_connection
    # The limits of the connection's previous query do not apply to what begins here.
    connection.info[_ENDS_AT] = math.inf
    connection.info.pop(_DEADLINE, None)
    if _WAIT_S in options:
        driver.execute(f"PRAGMA busy_timeout = {options[_WAIT_S] * 1000:.0f}")
    turn: WriteTurn | None = options.get(_TURN)
    if turn is None:
        if options.get(_WRITING, False):
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        else:  # `BEGIN` neither waits nor fails; through SQLAlchemy it would take as long as a query
            driver.execute("BEGIN")
        return
    try:
        turn.begin(driver, options.get(_WAIT_S, BUSY_TIMEOUT_S))
    except sqlite3.OperationalError as error:
        raise OperationalError("BEGIN IMMEDIATE", None, error) from error


def read_session(engine: Engine) -> Session:
    """A read-only session that sees one snapshot of the database; close it. It connects with its first
    query."""
    bind = engine
    if engine.dialect.name == "postgresql":
        bind = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    return Session(bind, expire_on_commit=False)


@contextmanager
def reading(engine: Engine) -> Iterator[Session]:
    """A read-only session that sees one snapshot of the database."""
    with read_session(engine) as session:
        yield session


@contextmanager
def writing(engine: Engine, *, wait_s: float | None = None) -> Iterator[Session]:
    """A session in one transaction: committed at the end of the block, rolled back if it raises.

    SQLite's write lock is taken with the first statement (`BEGIN IMMEDIATE`): keep what follows short, or
    `commit` before the end of the block. `wait_s` is how long to wait for it; by default the engine's
    timeout.
    """
    options: dict[str, Any] = {_WRITING: True}
    if wait_s is not None:
        options[_WAIT_S] = wait_s
    lock = engine.get_execution_options().get(_LOCK)
    turn = options[_TURN] = WriteTurn(lock) if lock is not None else None
    bind = engine.execution_options(**options)
    try:
        with Session(bind, expire_on_commit=False, info={_TURN: turn}) as session, session.begin():
            yield session
    finally:
        if turn is not None:
            turn.end()


@dataclass(frozen=True)
class UnitOfWork:
    """What a service reads before it writes, and the one transaction of its changes."""

    read: Session
    """A read-only session: what takes long to read or validate holds no lock."""
    write: Session
    """A session of `writing`, whose lock is taken with its first statement."""


def commit(session: Session) -> None:
    """Commit the transaction of `writing` before the end of its block, in which nothing more is read or
    written."""
    session.commit()
    if session.info[_TURN] is not None:
        session.info[_TURN].end()
