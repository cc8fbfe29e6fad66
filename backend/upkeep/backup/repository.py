"""The rows of a backup. Its database is always a SQLite file, so that a backup fits both kinds of database.

SQLite is copied by its own backup, which reads one snapshot and delays no writer. PostgreSQL is copied row by
row in one read-only transaction of isolation level REPEATABLE READ, which is a snapshot too: it needs none of
PostgreSQL's programs, which must not be older than the server and which a web host need not have. A restore
inserts the rows in one transaction, into either.
"""

import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

from alembic.migration import MigrationContext
from sqlalchemy import (
    JSON,
    Connection,
    Engine,
    MetaData,
    Table,
    bindparam,
    delete,
    func,
    inspect,
    literal,
    or_,
    select,
    update,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session
from sqlalchemy.types import TypeDecorator

from backend.db import (
    Base,
    Checkpoint,
    CleanUp,
    Episode,
    Experiment,
    LoginLink,
    LoginSession,
    Media,
    Run,
    Share,
    Token,
    Video,
    migrate,
)
from backend.db.base import storable
from backend.db.checked_json import CheckedJson
from backend.db.clock import utc_now
from backend.db.engine import opened
from backend.db.experiment import ExperimentState
from backend.db.run import WITH_DELETED, is_whole
from backend.platform.artifacts import (
    ArtifactKind,
    check_file_name,
    observations_file,
    states_file,
    thumbnail_file,
)
from backend.platform.settings import sqlite_url
from backend.specs.problems import quoted
from backend.specs.states import RunState

RowChecks = Mapping[str, Callable[[Mapping[str, Any]], bool]]
"""By table, whether the specification of a row has what pages show."""

_ROWS = 500
"""Rows in memory at a time; those of a series hold up to some 100 kB each."""


class DamagedRows(ValueError):
    """A database with rows that no page can show; the message names the first one."""


def schema_revision(db_engine: Engine) -> str | None:
    """The database's schema; None for a database without one."""
    with db_engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def snapshot(db_engine: Engine, target: Path) -> None:
    """Copy all rows of a migrated database, as of one moment, into a new SQLite file."""
    if db_engine.dialect.name == "sqlite":
        database = db_engine.url.database
        assert database is not None
        with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(target)) as copy:
            source.backup(copy)
            _finish(copy)
        return
    migrate.upgrade(sqlite_url(target))
    bind = db_engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    with opened(sqlite_url(target)) as copied, bind.connect() as source, copied.begin() as connection:
        copy_rows(source, connection)
    with closing(sqlite3.connect(target)) as connection:
        _finish(connection)


def _finish(copy: sqlite3.Connection) -> None:
    """Make a copy one file without the addresses of alerts' targets, which are secrets."""
    copy.execute("PRAGMA journal_mode=DELETE")
    copy.execute("PRAGMA secure_delete=ON")
    copy.execute("UPDATE alert_targets SET secret_url = ''")
    copy.commit()


def restore(source: Path, db_engine: Engine, *, keep_tokens: bool = False) -> list[str]:
    """Copy all rows of a SQLite file with the newest schema into an empty, migrated database, or none.

    Sessions, login links and links to pages end, and tokens expire unless `keep_tokens`: they may have been
    revoked since the backup. Returns the names of the tokens that have expired by this.
    """
    with (
        opened(sqlite_url(source)) as copied,
        copied.connect() as connection,
        db_engine.execution_options(callboard_writing=True).begin() as target,
    ):
        copy_rows(connection, target)
        target.execute(delete(LoginSession))
        target.execute(delete(LoginLink))
        target.execute(delete(Share))
        if keep_tokens:
            return []
        unexpired = or_(Token.expires_at.is_(None), Token.expires_at > utc_now())
        names = list(target.scalars(select(Token.name).where(unexpired).order_by(Token.name)))
        target.execute(update(Token).where(unexpired).values(expires_at=utc_now()))
        return names


def refuse_active_schema(path: Path) -> None:
    """Refuse a SQLite file with views or triggers: ours have none, and reading them may never end.

    Raises:
        DamagedRows: the file has some.
    """
    try:
        with closing(sqlite3.connect(path)) as connection:
            rows = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('view', 'trigger')")
            names = [name for (name,) in rows]
    except sqlite3.DatabaseError as error:
        raise DamagedRows(f"it cannot be read ({error})") from None
    if names:
        raise DamagedRows(f"it has the view or trigger {names[0]!r:.80}")


def damaged_values(path: Path, checks: RowChecks) -> Iterator[str]:
    """Read every row of a SQLite file with the newest schema, as pages will.

    Args:
        path: the file.
        checks: those of tables whose specifications the parts above know.

    Yields:
        Table, key and column of each value that pages show as damaged.

    Raises:
        DamagedRows: a row breaks pages, or names a file that is none of this service.
    """
    with opened(sqlite_url(path)) as copied, copied.connect() as connection:
        checks = {Run.__tablename__: _is_whole_run, **checks}
        for table in _tables().values():
            rows = connection.execution_options(yield_per=_ROWS).execute(select(table))
            try:
                for values in rows.mappings():
                    row = dict(values)
                    key = ", ".join(f"{row[column.name]!s:.100}" for column in table.primary_key.columns)
                    _check_files(key, row)
                    for name in _damaged_columns(table.name, row, checks):
                        yield f"{table.name} {quoted(key)}: {name}"
            except (ValueError, TypeError, KeyError, OverflowError, SQLAlchemyError) as error:
                raise DamagedRows(f"a row of its table {table.name} is damaged: {error!s:.200}") from None


_STATES: Mapping[str, Collection[str]] = {
    Run.__tablename__: [*RunState],
    Experiment.__tablename__: get_args(ExperimentState),
}


def _is_whole_run(row: Mapping[str, Any]) -> bool:
    return is_whole(row["spec"])


def _damaged_columns(table: str, row: Mapping[str, Any], checks: RowChecks) -> Iterator[str]:
    """Names of the columns whose values this service has not written."""
    if table in _STATES and row["state"] not in _STATES[table]:
        yield "state"
    for column in Base.metadata.tables[table].columns:
        value = row[column.name]
        if not isinstance(column.type, CheckedJson) or (value is None and column.nullable):
            continue
        is_spec = column.name == "spec" and table in checks
        if column.type.is_damaged(value) or (is_spec and not checks[table](row)):
            yield column.name


def _check_files(key: str, row: Mapping[str, Any]) -> None:
    for name in ("file", "replay", "video", "sent"):
        if isinstance(value := row.get(name), str) and value:
            try:
                check_file_name(value)
            except ValueError as error:
                raise ValueError(f"{name} of {key}: {error}") from None


def copy_rows(source: Connection, target: Connection) -> None:
    """Copy the rows of every table into a database without any.

    Foreign keys hold after each statement: tables come in the order of their dependencies, and a reference to
    the same table is added once all of its rows are there.
    """
    tables = _tables()
    target.execute(tables["clean_up"].delete())
    for table in (tables[declared.name] for declared in Base.metadata.sorted_tables):
        own = {key.parent.name for key in table.foreign_keys if key.column.table is table}
        (row_id, *_) = table.primary_key.columns
        rows = source.execution_options(yield_per=_ROWS).execute(select(table))
        later: list[dict[str, Any]] = []
        for part in rows.mappings().partitions():
            content = [dict(row) for row in part]
            for row in content:
                if any(row[name] is not None for name in own):
                    later.append({"row_id": row[row_id.name], **{f"own_{name}": row[name] for name in own}})
                    row.update(dict.fromkeys(own))
            target.execute(table.insert(), content)
        if later:
            values: dict[str, Any] = {name: bindparam(f"own_{name}") for name in own}
            target.execute(table.update().where(row_id == bindparam("row_id")).values(values), later)
        if target.dialect.name == "postgresql":
            _continue_sequence(target, table)


def is_empty(db_engine: Engine) -> bool:
    """Whether a database has no tables, or all of ours without rows."""
    ours = {name: table for name, table in Base.metadata.tables.items() if name != CleanUp.__tablename__}
    with db_engine.connect() as connection:
        names = set(inspect(connection).get_table_names())
        if not names <= {*ours, CleanUp.__tablename__, "alembic_version"}:
            return False
        rows = (select(literal(1)).select_from(ours[name]).limit(1) for name in names & set(ours))
        return all(connection.scalar(row) is None for row in rows)


def count_runs(session: Session) -> int:
    """Number of runs, deleted ones that can be restored among them."""
    count = select(func.count()).select_from(Run)
    return session.scalars(count, execution_options=WITH_DELETED).one()


def named_files(session: Session) -> Iterator[tuple[str, ArtifactKind, str, str | None]]:
    """The files that rows name: run, kind, file name, and SHA-256 if it is known.

    Videos of recorded games are left out: they are rendered again on request.
    """
    checkpoints = select(Checkpoint.run_id, Checkpoint.file, Checkpoint.sha256)
    for run_id, file, sha256 in session.execute(checkpoints.where(Checkpoint.removed.is_(False))):
        yield run_id, "checkpoints", file, sha256
    episodes = select(
        Episode.run_id,
        Episode.id,
        Episode.replay,
        Episode.replay_sha256,
        Episode.video,
        Episode.video_sha256,
        Episode.observations_sha256,
        Episode.states_sha256,
        Episode.thumbnail_bytes,
        Episode.thumbnail_sha256,
    ).execution_options(yield_per=_ROWS)
    for episode in session.execute(episodes.where(Episode.removed.is_(False))):
        yield episode.run_id, "replays", episode.replay, episode.replay_sha256
        if episode.video is not None:
            yield episode.run_id, "videos", episode.video, episode.video_sha256
        if episode.observations_sha256 is not None:
            yield episode.run_id, "videos", observations_file(episode.id), episode.observations_sha256
        if episode.states_sha256 is not None:
            yield episode.run_id, "videos", states_file(episode.id), episode.states_sha256
        if episode.thumbnail_bytes is not None:
            yield episode.run_id, "videos", thumbnail_file(episode.id), episode.thumbnail_sha256
    videos = select(
        Video.run_id,
        Video.id,
        Video.video,
        Video.video_sha256,
        Video.sent,
        Video.sent_sha256,
        Video.thumbnail_bytes,
        Video.thumbnail_sha256,
    ).execution_options(yield_per=_ROWS)
    for video in session.execute(videos):
        if video.video is not None:
            yield video.run_id, "videos", video.video, video.video_sha256
        if video.sent is not None:
            yield video.run_id, "videos", video.sent, video.sent_sha256
        if video.thumbnail_bytes is not None:
            yield video.run_id, "videos", thumbnail_file(video.id), video.thumbnail_sha256
    media = select(Media.run_id, Media.file, Media.sha256).where(Media.file.is_not(None))
    for item in session.execute(media.execution_options(yield_per=_ROWS)):
        yield item.run_id, "media", item.file or "", item.sha256


class _StoredJson(TypeDecorator[Any]):
    """JSON of any form. A text that is no JSON, which only damage leaves, is read as that text.

    Args:
        none_as_null: whether None is stored as NULL, so that a value that is absent stays absent, or as the
            JSON value null.
    """

    impl = JSON
    cache_ok = True

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        """Read a stored value: the JSON as it is, or its text."""
        parse = self.impl_instance.result_processor(dialect, coltype)

        def read(stored: Any) -> Any:
            if stored is None or parse is None:
                return stored
            try:
                return parse(stored)
            except (ValueError, RecursionError):
                raw = stored.decode("utf-8", "backslashreplace") if isinstance(stored, bytes) else stored
                return storable(raw)

        return read


def _tables() -> dict[str, Any]:
    """The tables, with JSON columns whose values stay as they are."""
    metadata = MetaData()
    tables = {name: table.to_metadata(metadata) for name, table in Base.metadata.tables.items()}
    for table in tables.values():
        for column in table.columns:
            if isinstance(column.type, CheckedJson):
                column.type = _StoredJson(none_as_null=column.nullable)
    return tables


def _continue_sequence(connection: Connection, table: Table) -> None:
    """Have a table's automatic ids continue after those of the inserted rows."""
    (row_id, *others) = table.primary_key.columns
    if others or not row_id.autoincrement or row_id.type.python_type is not int:
        return
    name = connection.scalar(select(func.pg_get_serial_sequence(table.name, row_id.name)))
    highest = connection.scalar(select(func.max(row_id)))
    if name is not None and highest is not None:
        connection.execute(select(func.setval(name, highest)))
