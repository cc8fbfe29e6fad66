"""`callboard doctor`: checks that everything this installation needs is there and works."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from backend.platform import files
from backend.platform.settings import Settings
from callboard_cli import fail, variables
from callboard_cli.database import NO_DATABASE, missing_file

MIN_FREE_BYTES = 2**30
REDIS_TIMEOUT_S = 30.0
"""Timeout of Redis: it works even if it answers late."""


@dataclass(frozen=True)
class CheckResult:
    """The result of one check."""

    check: str
    ok: bool
    message: str
    """What was found, or what is wrong and what to do."""


class CheckFailed(Exception):
    """A check failed; the message states what is wrong and what to do."""


def doctor(
    check: Annotated[list[str] | None, typer.Option(help="Only this check; repeatable.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check this machine's installation; exit code 1 if a check fails."""
    if "variables" not in (check or CHECKS):
        variables.warn()
    unknown = set(check or []) - set(CHECKS)
    if unknown:
        raise fail(f"check: unknown check {', '.join(sorted(unknown))}; choose from {', '.join(CHECKS)}")
    settings = Settings()
    results = [_check(name, settings) for name in check or CHECKS]
    if as_json:
        typer.echo(json.dumps([asdict(result) for result in results]))
    else:
        for result in results:
            typer.echo(f"{'ok   ' if result.ok else 'FAIL '}  {result.check:12} {result.message}")
    if not all(result.ok for result in results):
        raise typer.Exit(1)


def _check(name: str, settings: Settings) -> CheckResult:
    try:
        return CheckResult(name, True, CHECKS[name](settings))
    except CheckFailed as error:
        return CheckResult(name, False, str(error))


def _python(settings: Settings) -> str:
    version = ".".join(map(str, sys.version_info[:3]))
    if not (3, 11) <= sys.version_info[:2] <= (3, 13):
        raise CheckFailed(f"Python {version}: install Python 3.11 to 3.13")
    return f"Python {version}"


def _variables(settings: Settings) -> str:
    if wrong := variables.find_misspelt():
        raise CheckFailed("; ".join(wrong))
    n = len(variables.read_names())
    return f"{n} of CALLBOARD_* set" if n else "none of CALLBOARD_* set: the defaults apply"


def _home(settings: Settings) -> str:
    home = settings.home_dir
    _require_home(settings)
    try:
        with tempfile.TemporaryFile(dir=home):
            pass
    except OSError as error:
        raise CheckFailed(f"{home}: {error.strerror}; set CALLBOARD_HOME to another folder") from None
    free_bytes = shutil.disk_usage(home).free
    if free_bytes < MIN_FREE_BYTES:
        raise CheckFailed(
            f"{home}: only {free_bytes / 2**20:.0f} MiB free; delete files or set CALLBOARD_HOME"
        )
    return f"{home}, {free_bytes / 2**30:.0f} GiB free"


def _require_home(settings: Settings) -> None:
    # A check must not create the folder of a mistyped name.
    if not settings.home_dir.is_dir():
        raise CheckFailed(
            f"{settings.home_dir} does not exist: correct CALLBOARD_HOME, or start `callboard up` or "
            "`callboard worker`, which create it"
        )


def _database(settings: Settings) -> str:
    from sqlalchemy.exc import SQLAlchemyError

    from backend.db.engine import make_engine
    from backend.db.migrate import UnknownSchemaError, is_current, refuse_unknown_schema

    if missing := missing_file(settings):
        raise CheckFailed(f"there is no database {missing}: {NO_DATABASE}")
    engine = make_engine(settings.database)
    where = engine.url.render_as_string(hide_password=True)
    try:
        refuse_unknown_schema(engine)
        current = is_current(engine)
    except UnknownSchemaError as error:
        raise CheckFailed(str(error)) from None
    except SQLAlchemyError as error:
        raise CheckFailed(f"{where}: {str(error).splitlines()[0]}") from None
    finally:
        engine.dispose()
    if not current:
        raise CheckFailed(f"{where}: not the latest schema; run `callboard db upgrade`")
    return where


def _redis(settings: Settings) -> str:
    from callboard_cli.servers import redis_answers

    where = _without_password(settings.redis)
    if not redis_answers(settings.redis, REDIS_TIMEOUT_S):
        hint = "check CALLBOARD_REDIS_URL" if settings.redis_url else "`callboard up` starts it"
        raise CheckFailed(f"{where}: no answer; {hint}")
    return where


def _without_password(url: str) -> str:
    """A URL without its user and password, even if they contain characters that should be quoted."""
    url = re.sub(r"(?<=[?&]password=)[^&]*", "***", url)
    return re.sub(r"(?<=://)(?!/).*(?=@)", "***", url)


def _artifacts(settings: Settings) -> str:
    from backend.db.base import new_id
    from backend.platform.artifacts import ArtifactStore

    where = _without_password(settings.artifacts)
    if settings.artifacts_url is None:
        _require_home(settings)
    run_id = new_id()
    with tempfile.TemporaryDirectory() as folder:
        probe = Path(folder) / "probe"
        probe.write_bytes(b"probe")
        try:
            store = ArtifactStore(settings.artifacts)
            store.put(probe, run_id, "replays")
            with store.open(run_id, "replays", probe.name) as file:
                intact = file.read() == b"probe"
            store.delete_run(run_id)
        except (OSError, ValueError, ImportError) as error:
            raise CheckFailed(f"{where}: {error}") from None
    if not intact:
        raise CheckFailed(f"{where}: returned other data than was stored; check CALLBOARD_ARTIFACTS_URL")
    return where


def _pages(settings: Settings) -> str:
    folder = settings.frontend_dir or files.pages()
    if not (folder / "index.html").is_file():
        raise CheckFailed(f"{folder}: the frontend is not built; run `make up`")
    return str(folder)


def _engine(settings: Settings) -> str:
    """Train briefly in a child process, as a worker would."""
    from backend.specs.events import EndedEvent
    from backend.specs.run import parse_run_spec
    from workers.engine.training.event_log import read_frames
    from workers.engine_process import ENGINE_COMMAND

    config = {"n_e": 2, "evaluation_episodes": 0}
    request = {"algorithm": "paac", "environment": "CartPole-v1", "config": config}
    spec = parse_run_spec(request | {"stop": {"agent_steps": 100}})
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "spec.json").write_text(spec.model_dump_json())
        command = [*ENGINE_COMMAND, "train", folder]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        events = [e for frame, _ in read_frames(Path(folder) / "attempts/1/events.log") for e in frame]
    if done.returncode != 0:
        final_reason = next((e.reason for e in events if isinstance(e, EndedEvent)), None)
        why = final_reason or (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise CheckFailed(f"cannot train: {why}; install Callboard with [worker]")
    return "trained PAAC on CartPole briefly"


def _worker(settings: Settings) -> str:
    from sqlalchemy.exc import SQLAlchemyError

    from backend.db.clock import database_now
    from backend.db.engine import make_engine, reading
    from backend.fleet.hosts import service as hosts
    from workers.host_facts import known_worker_id

    _database(settings)  # the query needs the latest schema
    engine = make_engine(settings.database)
    try:
        with reading(engine) as session:
            host = hosts.find(session, settings.host_name)
            now = database_now(session)
    except SQLAlchemyError as error:
        raise CheckFailed(str(error).splitlines()[0]) from None
    finally:
        engine.dispose()
    if host is None:
        raise CheckFailed(f"{settings.host_name}: no heartbeat yet; start one with `callboard worker`")
    try:
        own = known_worker_id(settings.home_dir)
    except OSError as error:
        raise CheckFailed(f"{error.filename}: {error.strerror}") from None
    if hosts.is_taken(host, own, now, settings.lease_s):
        raise CheckFailed(
            f"{settings.host_name}: a worker of another home runs under this name; set CALLBOARD_HOST_NAME"
        )
    if not hosts.is_online(host, now, settings.lease_s):
        seen = (
            f"stopped {host.stopped_at:%Y-%m-%d %H:%M:%S} UTC"
            if host.stopped_at
            else f"last heartbeat {host.last_seen_at:%Y-%m-%d %H:%M:%S} UTC"
        )
        raise CheckFailed(f"{settings.host_name}: {seen}; start one with `callboard worker`")
    return f"{host.id}; slots: {host.slots}; queues: {', '.join(host.queues)}"


CHECKS: dict[str, Callable[[Settings], str]] = {
    "python": _python,
    "variables": _variables,
    "home": _home,
    "database": _database,
    "redis": _redis,
    "artifacts": _artifacts,
    "pages": _pages,
    "engine": _engine,
    "worker": _worker,
}
"""Every check by name; later ones depend on earlier ones."""
