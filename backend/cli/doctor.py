"""`callboard doctor`: is everything there that this machine needs, and does it work?"""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from backend.cli.terminal import fail
from backend.settings import Settings

MIN_FREE_BYTES = 2**30


@dataclass(frozen=True)
class Finding:
    """What a check found."""

    check: str
    ok: bool
    told: str
    """What is there, or what to do about it."""


class Trouble(Exception):
    """What is wrong, and what to do about it."""


def doctor(
    check: Annotated[
        list[str] | None, typer.Option(help="Only these checks; may be given more than once.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check this machine's installation; exit code 1 where something is wrong."""
    unknown = set(check or []) - set(CHECKS)
    if unknown:
        raise fail(f"check: there is no {', '.join(sorted(unknown))}; there are {', '.join(CHECKS)}")
    settings = Settings()
    findings = [_find(name, settings) for name in check or CHECKS]
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in findings]))
    else:
        for finding in findings:
            typer.echo(f"{'ok   ' if finding.ok else 'WRONG'}  {finding.check:12} {finding.told}")
    if not all(finding.ok for finding in findings):
        raise typer.Exit(1)


def _find(name: str, settings: Settings) -> Finding:
    try:
        return Finding(name, True, CHECKS[name](settings))
    except Trouble as trouble:
        return Finding(name, False, str(trouble))


def _python(settings: Settings) -> str:
    version = ".".join(map(str, sys.version_info[:3]))
    if not (3, 11) <= sys.version_info[:2] <= (3, 13):
        raise Trouble(f"Python {version}: 3.11 to 3.13 is needed")
    return f"Python {version}"


def _home(settings: Settings) -> str:
    home = settings.home_dir
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=home):
            pass
    except OSError as error:
        raise Trouble(f"{home}: {error.strerror}; CALLBOARD_HOME names another folder") from None
    free_bytes = shutil.disk_usage(home).free
    if free_bytes < MIN_FREE_BYTES:
        raise Trouble(f"{home}: only {free_bytes / 2**20:.0f} MiB free")
    return f"{home}, {free_bytes / 2**30:.0f} GiB free"


def _database(settings: Settings) -> str:
    from sqlalchemy.exc import SQLAlchemyError

    from backend.db.engine import make_engine
    from backend.db.migrate import is_current

    engine = make_engine(settings.database)
    where = engine.url.render_as_string(hide_password=True)
    try:
        current = is_current(engine)
    except SQLAlchemyError as error:
        raise Trouble(f"{where}: {str(error).splitlines()[0]}") from None
    finally:
        engine.dispose()
    if not current:
        raise Trouble(f"{where}: not at the newest schema; run `callboard db upgrade`")
    return where


def _redis(settings: Settings) -> str:
    from backend.cli.embedded_redis import answers

    if not answers(settings.redis):
        hint = "set CALLBOARD_REDIS_URL right" if settings.redis_url else "`callboard up` starts it"
        raise Trouble(f"{settings.redis}: no answer; {hint}")
    return settings.redis


def _artifacts(settings: Settings) -> str:
    from backend.artifacts import ArtifactStore
    from backend.db.ids import new_id

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
            raise Trouble(f"{settings.artifacts}: {error}") from None
    if not intact:
        raise Trouble(f"{settings.artifacts}: gives back something else than was put there")
    return settings.artifacts


def _pages(settings: Settings) -> str:
    folder = settings.frontend_dir or Path(__file__).resolve().parents[2] / "frontend" / "dist"
    if not (folder / "index.html").is_file():
        raise Trouble(f"{folder}: not built; `make up` builds it")
    return str(folder)


def _engine(settings: Settings) -> str:
    """Trains for a moment, in a process of its own as a worker would."""
    from backend.specs.events import Ended
    from backend.specs.run import parse_run_spec
    from workers.engine.event_log import read_frames
    from workers.engine_process import ENGINE

    config = {"n_e": 2, "evaluation_episodes": 0}
    request = {"algorithm": "paac", "environment": "CartPole-v1", "config": config}
    spec = parse_run_spec(request | {"stop": {"agent_steps": 100}})
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "spec.json").write_text(spec.model_dump_json())
        command = [*ENGINE, "train", folder]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        said = [e for frame, _ in read_frames(Path(folder) / "attempts/1/events.log") for e in frame]
    if done.returncode != 0:
        last_word = next((e.reason for e in said if isinstance(e, Ended)), None)
        why = last_word or (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise Trouble(f"cannot train: {why}; `pip install callboard[worker]` brings what it needs")
    return "trained PAAC on CartPole for a moment"


def _worker(settings: Settings) -> str:
    from sqlalchemy.exc import SQLAlchemyError

    from backend.db import Host
    from backend.db.clock import database_now
    from backend.db.engine import make_engine, reading
    from backend.hosts.service import ALIVE_LEASES

    engine = make_engine(settings.database)
    try:
        with reading(engine) as session:
            host = session.get(Host, settings.host_name)
            now = database_now(session)
    except SQLAlchemyError as error:
        raise Trouble(str(error).splitlines()[0]) from None
    finally:
        engine.dispose()
    if host is None or now - host.last_seen_at > timedelta(seconds=ALIVE_LEASES * settings.lease_s):
        seen = f"last heard of {host.last_seen_at:%Y-%m-%d %H:%M:%S} UTC" if host else "never heard of"
        raise Trouble(f"{settings.host_name}: {seen}; `callboard worker` starts one")
    return f"{settings.host_name}, {host.slots} slots, queues {', '.join(host.queues)}"


CHECKS: dict[str, Callable[[Settings], str]] = {
    "python": _python,
    "home": _home,
    "database": _database,
    "redis": _redis,
    "artifacts": _artifacts,
    "pages": _pages,
    "engine": _engine,
    "worker": _worker,
}
"""Every check by name, in the order in which things stand on each other."""
