"""Engines and sessions: the same rules of reading and writing on SQLite and on PostgreSQL."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.orm import Session

BUSY_TIMEOUT_S = 20.0
"""How long SQLite waits for another writer before it gives up."""

CONNECT_TIMEOUT_S = 10
"""How long a PostgreSQL server may take to answer a new connection."""

SILENCE_S = 30
"""A server that has been out of reach for this long is given up; the system's own patience is a quarter of
an hour, in which nobody would renew a lease."""

MAX_CONNECTIONS = 50
"""More than the web process has threads, so that no request waits for a connection."""

_WRITING = "callboard_writing"


def make_engine(url: str) -> Engine:
    """An engine for `url`, which is SQLite or PostgreSQL (psycopg 3).

    SQLite: write-ahead log, foreign keys, a busy timeout; the folder is made where it is missing.
    """
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        return create_engine(
            parsed,
            pool_pre_ping=True,
            max_overflow=MAX_CONNECTIONS,
            connect_args={
                "connect_timeout": CONNECT_TIMEOUT_S,
                "tcp_user_timeout": SILENCE_S * 1000,
                "keepalives_idle": SILENCE_S // 3,
                "keepalives_interval": SILENCE_S // 3,
                "keepalives_count": 2,
            },
        )
    if parsed.database:
        Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(
        parsed,
        max_overflow=MAX_CONNECTIONS,
        connect_args={"timeout": BUSY_TIMEOUT_S, "isolation_level": None},
    )
    event.listen(engine, "connect", _set_pragmas)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _set_pragmas(connection: sqlite3.Connection, record: Any) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA foreign_keys=ON")


def _begin_sqlite(connection: Connection) -> None:
    # A deferred transaction that reads and then writes fails at once when another has written meanwhile,
    # whatever the busy timeout: those that may write take the lock first.
    writing = connection.get_execution_options().get(_WRITING, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


@contextmanager
def reading(engine: Engine) -> Iterator[Session]:
    """A session that sees one snapshot of the database and changes nothing."""
    bind = engine
    if engine.dialect.name == "postgresql":
        bind = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    with Session(bind, expire_on_commit=False) as session:
        yield session


@contextmanager
def writing(engine: Engine) -> Iterator[Session]:
    """A session in one transaction: committed when the block ends, rolled back when it raises.

    SQLite takes the write lock at the start (`BEGIN IMMEDIATE`): keep the block short.
    """
    bind = engine.execution_options(**{_WRITING: True})
    with Session(bind, expire_on_commit=False) as session, session.begin():
        yield session
