"""`callboard backup` and `callboard restore`."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from backend.platform.settings import Settings
from callboard_cli import fail
from callboard_cli.home import make_home
from callboard_cli.installation import Installation

if TYPE_CHECKING:
    from backend.upkeep.backup.archive import BackupManifest

_SHOWN_TOKENS = 20
_SHOWN_VALUES = 10


def backup(
    file: Annotated[Path, typer.Argument(help="File to write; it must not exist.")],
) -> None:
    """Write the database and the artifacts to one file, while the installation runs."""
    from backend.experiments.experiments.stored import CHECKS
    from backend.upkeep.backup import service
    from callboard.display import counted

    with _errors():
        manifest = service.create(Settings(), file, CHECKS)
    typer.echo(f"{file}: {_contents(manifest)}, as of {manifest.created_at}")
    if manifest.damaged:
        n = len(manifest.damaged)
        files = f"{counted(n, 'file')} listed in the database {'is' if n == 1 else 'are'} missing or damaged"
        typer.echo(
            f"callboard: {files} in the artifact store, such as {manifest.damaged[0]}; the backup's "
            "manifest.json lists them",
            err=True,
        )
    _report_damaged_values(
        manifest, "a restore keeps them as they are; the backup's manifest.json lists them"
    )
    if manifest.unrestorable is not None:
        typer.echo(
            f"callboard: a restore will refuse this backup: {manifest.unrestorable}; repair or delete "
            "the row, and back up again",
            err=True,
        )
        raise typer.Exit(1)


def _report_damaged_values(manifest: "BackupManifest", consequence: str) -> None:
    from callboard.display import counted

    if manifest.n_damaged_values:
        values = counted(manifest.n_damaged_values, "damaged value")
        names = "; ".join(manifest.damaged_values[:_SHOWN_VALUES])
        more = manifest.n_damaged_values - _SHOWN_VALUES
        rest = f"; and {more:,} more" if more > 0 else ""
        typer.echo(f"callboard: {values} in the database ({names}{rest}): {consequence}", err=True)


def _contents(manifest: "BackupManifest") -> str:
    from callboard.display import counted

    return f"{counted(manifest.n_runs, 'run')} and {counted(manifest.n_files, 'file')}"


def restore(
    file: Annotated[Path, typer.Argument(help="A file written by `callboard backup`.")],
    keep_tokens: Annotated[
        bool,
        typer.Option(
            "--keep-tokens", help="Keep API tokens valid, also those that were revoked after the backup."
        ),
    ] = False,
) -> None:
    """Restore a backup into an empty installation, on SQLite or PostgreSQL. Sessions and tokens end."""
    from backend.access.audit import service as audit
    from backend.db.engine import opened, writing
    from backend.experiments.experiments.stored import CHECKS
    from backend.upkeep.backup import service
    from callboard.display import counted

    settings = Settings()
    make_home(settings.home_dir)
    installation = Installation(settings)
    try:
        is_free = installation.acquire()
    except OSError as error:
        raise fail(f"{settings.home_dir}: {error.strerror}", 1) from None
    if not is_free:
        raise fail(f"`callboard up` or a restore is running in {settings.home_dir}: stop it and try again", 1)
    try:
        with _errors():
            restored = service.restore(
                settings,
                file,
                lambda step: typer.echo(f"{step} ..."),
                keep_tokens=keep_tokens,
                checks=CHECKS,
            )
            with opened(settings.database) as db_engine, writing(db_engine) as session:
                details = {"file": file.name, "created_at": restored.manifest.created_at}
                audit.record_command(session, "callboard restore", "restore_backup", details)
    finally:
        installation.release()
    manifest, expired = restored.manifest, restored.expired_tokens
    typer.echo(f"restored {_contents(manifest)} into {settings.home_dir}")
    _report_damaged_values(manifest, "kept as in the backup, and shown as damaged")
    if expired:
        names = ", ".join(expired[:_SHOWN_TOKENS]) + (", …" if len(expired) > _SHOWN_TOKENS else "")
        tokens = counted(len(expired), "API token")
        typer.echo(f"the restore has ended {tokens} (see --keep-tokens): {names}")


@contextmanager
def _errors() -> Iterator[None]:
    """Report an expected error in one line. A request to end removes what is half written."""
    from backend.upkeep.backup.archive import BackupError

    former = {number: signal.signal(number, _exit) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    except BackupError as error:
        raise fail(str(error), 1) from None
    except OSError as error:
        raise fail(f"a file or the artifact store is not available: {error}", 1) from None
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _exit(number: int, frame: object) -> None:
    raise SystemExit(128 + number)
