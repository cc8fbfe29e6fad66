"""Backup of a running installation, and restore into an empty one."""

import os
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from backend import __version__
from backend.db import migrate
from backend.db.engine import make_engine, opened, reading, writing
from backend.fleet.storage import service as storage
from backend.platform.artifacts import ArtifactStore, check_file_name
from backend.platform.settings import Settings, sqlite_url
from backend.upkeep.backup import archive, repository
from backend.upkeep.backup.archive import Artifact, BackupError, BackupManifest

HOLD_S = 600.0
"""How long no file is deleted after the latest renewal, so that a killed backup does not stop clean-up."""
RENEWAL_INTERVAL_S = HOLD_S / 4

NO_CHECKS: repository.RowChecks = {}

_MARKER = "restore.json"
_NAMED_VALUES = 1_000
"""Maximum number of damaged values that a manifest names."""


def create(settings: Settings, path: Path, checks: repository.RowChecks = NO_CHECKS) -> BackupManifest:
    """Write a backup of the database and the artifacts to a new file, while the installation runs.

    All rows are of one moment. No file is deleted from the store until all are copied, so each row has its
    file. The manifest names damaged rows, also those that `checks` finds.

    Raises:
        BackupError: it is not possible; no file is written.
    """
    path = path.expanduser().absolute()
    store = ArtifactStore(settings.artifacts)
    with (
        _db_engine(settings) as db_engine,
        archive.creating(path) as writer,
        tempfile.TemporaryDirectory(prefix=".callboard-backup-", dir=path.parent) as folder,
        ExitStack() as stack,
    ):
        if _is_missing_sqlite(db_engine):
            raise BackupError(f"there is no database at {db_engine.url.database}: check CALLBOARD_HOME")
        _refuse_unknown_schema(db_engine)
        if not migrate.is_current(db_engine):
            raise BackupError("the database has an older schema: run `callboard db upgrade` first")
        stack.enter_context(_holding(db_engine))
        copy = Path(folder) / archive.DATABASE
        created_at = datetime.now(UTC)
        try:
            repository.snapshot(db_engine, copy)
        except (sqlite3.Error, SQLAlchemyError) as error:
            if not _is_of_sqlite(error):
                raise
            raise BackupError(f"the database cannot be copied to {path.parent}: {error}") from error
        with copy.open("rb") as file:
            writer.add(archive.DATABASE, file, copy.stat().st_size)
        manifest = BackupManifest(
            format=archive.FORMAT,
            version=__version__,
            schema_revision=repository.schema_revision(db_engine) or "",
            created_at=created_at.isoformat(timespec="seconds"),
            n_runs=0,
            n_files=0,
            damaged=[],
        )
        _check_values(copy, manifest, checks)
        with opened(sqlite_url(copy)) as copied, reading(copied) as session:
            manifest.n_runs = repository.count_runs(session)
            for run_id, kind, name, sha256 in repository.named_files(session):
                try:
                    artifact = Artifact(run_id=run_id, kind=kind, file=check_file_name(name))
                except ValueError:
                    continue  # a damaged row, which is reported
                digest = _add(writer, store, artifact)
                manifest.n_files += digest is not None
                if digest is None or sha256 not in (None, digest):
                    manifest.damaged.append(artifact.member)
        stack.close()
        writer.finish(manifest)
    return manifest


def _is_of_sqlite(error: Exception) -> bool:
    return isinstance(error, sqlite3.Error) or isinstance(getattr(error, "orig", None), sqlite3.Error)


def _is_fault_of_disk(error: Exception) -> bool:
    name = getattr(getattr(error, "orig", None), "sqlite_errorname", "")
    return name.startswith(("SQLITE_FULL", "SQLITE_IOERR"))


def _check_values(database: Path, manifest: BackupManifest, checks: repository.RowChecks) -> None:
    """Set what the manifest says of damaged values."""
    manifest.damaged_values, manifest.n_damaged_values, manifest.unrestorable = [], 0, None
    try:
        for name in repository.damaged_values(database, checks):
            manifest.n_damaged_values += 1
            if manifest.n_damaged_values <= _NAMED_VALUES:
                manifest.damaged_values.append(name)
    except repository.DamagedRows as error:
        manifest.unrestorable = str(error).splitlines()[0]


@dataclass(frozen=True)
class Restored:
    """What a restore has done."""

    manifest: BackupManifest
    """That of the backup, with the damaged values that were found now."""
    expired_tokens: list[str]
    """Names of the tokens that were valid at the time of the backup, and have expired by the restore."""


def restore(
    settings: Settings,
    path: Path,
    report: Callable[[str], None] = lambda step: None,
    *,
    keep_tokens: bool = False,
    checks: repository.RowChecks = NO_CHECKS,
) -> Restored:
    """Restore a backup into an empty installation.

    The whole backup is checked before anything changes. Files come before rows, which come in one
    transaction: after a crash the same restore can be repeated. Damaged values stay as they are. All sessions
    and login links end.

    Args:
        settings: settings of the installation.
        path: path of the backup.
        report: called with each step.
        keep_tokens: whether the tokens stay valid, also those that were revoked after the backup.
        checks: those of damaged rows.

    Raises:
        BackupError: the backup cannot be restored.
    """
    report("checking the backup")
    manifest, identity = archive.verify(path)
    if manifest.schema_revision not in migrate.known_revisions():
        raise BackupError(
            f"{path} was written by Callboard {manifest.version}, whose database this version "
            f"({__version__}) does not know: restore it with that version"
        )
    home, marker = settings.home_dir, settings.home_dir / _MARKER
    store = ArtifactStore(settings.artifacts)
    _check_target(settings, store, continues=marker.is_file() and marker.read_text() == identity)
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    marker.write_text(identity)
    with tempfile.TemporaryDirectory(prefix=".restore-", dir=home) as folder:
        copy = Path(folder) / archive.DATABASE
        archive.extract_database(path, copy)
        try:
            repository.refuse_active_schema(copy)
            migrate.upgrade(sqlite_url(copy))
            _check_values(copy, manifest, checks)
        except (repository.DamagedRows, SQLAlchemyError) as error:
            if _is_fault_of_disk(error):
                raise BackupError(f"the database cannot be copied to {home}: {error}") from error
            manifest.unrestorable = str(error).splitlines()[0]
        if manifest.unrestorable is not None:
            raise BackupError(f"{path} is damaged, or not a backup of Callboard: {manifest.unrestorable}")
        report("restoring files")
        for artifact, content in archive.artifacts(path):
            local = Path(folder) / check_file_name(artifact.file)
            with local.open("wb") as file:
                shutil.copyfileobj(content, file, 2**20)
                file.flush()
                os.fsync(file.fileno())
            store.put(local, artifact.run_id, artifact.kind)
            local.unlink()
        report("restoring rows")
        migrate.upgrade(settings.database)
        with _db_engine(settings) as db_engine:
            expired = repository.restore(copy, db_engine, keep_tokens=keep_tokens)
    marker.unlink()
    return Restored(manifest, expired)


def _check_target(settings: Settings, store: ArtifactStore, *, continues: bool) -> None:
    """Check that a restore would not mix with other data; if it `continues`, artifacts may be there."""
    hint = "restore into an empty installation: set CALLBOARD_HOME to a new folder"
    with _db_engine(settings) as db_engine:
        if not _is_missing_sqlite(db_engine):
            _refuse_unknown_schema(db_engine)
            if not repository.is_empty(db_engine):
                where = db_engine.url.render_as_string(hide_password=True)
                raise BackupError(f"the database {where} is not empty: {hint}, or CALLBOARD_DATABASE_URL")
    if not continues and not store.is_empty():
        raise BackupError(f"the artifacts at {settings.artifacts} are not empty: {hint}")
    if settings.runs_dir.is_dir() and any(settings.runs_dir.iterdir()):
        raise BackupError(f"{settings.runs_dir} has run directories of another installation: {hint}")


def _refuse_unknown_schema(db_engine: Engine) -> None:
    try:
        migrate.refuse_unknown_schema(db_engine)
    except migrate.UnknownSchemaError as error:
        raise BackupError(str(error)) from None


def _add(writer: archive.ArchiveWriter, store: ArtifactStore, artifact: Artifact) -> str | None:
    """Copy an artifact into the backup; return its SHA-256, or None if there is no such file."""
    place = artifact.run_id, artifact.kind, artifact.file
    try:
        size_bytes = store.size_bytes(*place)
        with store.open(*place) as file:
            return writer.add(artifact.member, file, size_bytes)
    except FileNotFoundError:
        return None


@contextmanager
def _holding(db_engine: Engine) -> Iterator[None]:
    """Have no file deleted meanwhile, however long it takes.

    Raises:
        BackupError: the hold could not be renewed in time, so that files may have been deleted.
    """
    ended, has_expired = threading.Event(), False
    until = monotonic() + HOLD_S
    _hold(db_engine)

    def renew() -> None:
        nonlocal until, has_expired
        while not ended.wait(RENEWAL_INTERVAL_S):
            started_at = monotonic()
            with suppress(SQLAlchemyError):
                _hold(db_engine)
                has_expired = has_expired or monotonic() > until
                until = started_at + HOLD_S

    thread = threading.Thread(target=renew, name="backup-hold", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    if has_expired or monotonic() > until:
        raise BackupError("the database was unavailable for too long: files may have been deleted; try again")


def _hold(db_engine: Engine) -> None:
    with writing(db_engine) as session:
        storage.hold(session, HOLD_S)


def _is_missing_sqlite(db_engine: Engine) -> bool:
    database = db_engine.url.database
    return db_engine.dialect.name == "sqlite" and database is not None and not Path(database).exists()


@contextmanager
def _db_engine(settings: Settings) -> Iterator[Engine]:
    """The installation's database.

    Raises:
        BackupError: the database is not available.
    """
    db_engine = make_engine(settings.database)
    try:
        yield db_engine
    except SQLAlchemyError as error:
        where = db_engine.url.render_as_string(hide_password=True)
        raise BackupError(f"the database {where}: {str(error).splitlines()[0]}") from error
    finally:
        db_engine.dispose()
