"""Faults of disks, locks and second processes; with those of `faults`, the faults of `make chaos`."""

import random
import resource
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import psutil
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from backend.db import Episode
from backend.db.engine import reading
from tests.campaigns.chaos import faults
from tests.campaigns.chaos.faults import Fault
from tests.campaigns.chaos.stack import WORKER_STOP_LIMIT_S, Service, Stack
from tests.support.waiting import rounds
from tests.workers.fake_engine import flip_bit

TAIL_BYTES = 8192
"""A log is damaged near its end, where it is being read."""


def freeze_web(stack: Stack, rng: random.Random) -> Fault:
    """Stop the web process with SIGSTOP, at times longer than leases last."""
    frozen_s = rng.uniform(0.5, 8.0)

    def happen() -> None:
        with suppress(psutil.Error):
            process = psutil.Process(stack.web.process.pid)
            process.suspend()
            threading.Event().wait(frozen_s)
            process.resume()

    return Fault(f"freeze web for {frozen_s:.1f} s", happen)


def kill_engine_server(stack: Stack, rng: random.Random) -> Fault:
    """Send SIGKILL to the process that forks a worker's engines."""
    worker = rng.choice(stack.workers)

    def happen() -> None:
        for process in worker.engine_servers():
            with suppress(psutil.Error):
                process.kill()

    return Fault(f"kill the engine server of {worker.name}", happen)


def fill_disk(stack: Stack, rng: random.Random) -> Fault:
    """Let no file of a host, or of its engines alone, grow, as if its disk were full.

    The limit of a file's size is the only limit that a test may set on other processes without root.
    """
    worker, full_s = rng.choice(stack.workers), rng.uniform(0.5, 4.0)
    engines_only, room_bytes = rng.random() < 0.5, rng.randrange(2000)

    def happen() -> None:
        with worker.paused:
            logs = _event_logs(worker)[-2:]
            written = max((path.stat().st_size for path in logs), default=0) if engines_only else 0
            _limit_files(worker, written + room_bytes, with_worker=not engines_only)
            threading.Event().wait(full_s)
            _limit_files(worker, resource.RLIM_INFINITY, with_worker=True)

    whose = f"{worker.name}'s engines" if engines_only else worker.name
    return Fault(f"fill the disk of {whose} for {full_s:.1f} s", happen)


def damage_log(stack: Stack, rng: random.Random) -> Fault:
    """Flip a bit near the end of an event log that is being written."""
    worker, pick = rng.choice(stack.workers), rng.random()

    def happen() -> None:
        for path in _event_logs(worker)[-1:]:
            size = path.stat().st_size
            if size:
                place = size - 1 - int(pick * min(size, TAIL_BYTES))
                flip_bit(path, place)
                stack.damage.setdefault(path, []).append(place)

    return Fault(f"flip a bit of an event log of {worker.name}", happen)


def damage_checkpoint(stack: Stack, rng: random.Random) -> Fault:
    """Flip a bit of the newest checkpoint, of a host or of the artifact store."""
    homes = [worker.home for worker in stack.workers]
    folder, pick = rng.choice([stack.folder / "artifact-files", *homes]), rng.random()

    def happen() -> None:
        for path in _newest(folder.glob("runs/*/checkpoints/*.pt"))[-1:]:
            _flip_somewhere(path, pick)

    return Fault(f"flip a bit of a checkpoint in {folder.name}", happen)


def damage_replay(stack: Stack, rng: random.Random) -> Fault:
    """Flip a bit of a stored replay, which must not be shown then."""
    pick = rng.random()

    def happen() -> str | None:
        for path in _newest((stack.folder / "artifact-files").glob("runs/*/replays/*.npz"))[-1:]:
            _flip_somewhere(path, pick)
            episode = _episode_of(stack, path)
            if episode is not None:
                answer = stack.ask("GET", f"/episodes/{episode}/trace")
                if answer is not None and answer.status_code not in (410, 503):
                    return f"the trace of a damaged replay: {answer.status_code} {answer.text:.300}"
        return None

    return Fault("flip a bit of a replay", happen)


def remove_artifacts(stack: Stack, rng: random.Random) -> Fault:
    """Make the artifact store unavailable: nothing can be read from it or written to it."""
    away_s = rng.uniform(0.5, 5.0)

    def happen() -> str | None:
        with stack.disturbed, stack.without_artifacts():
            answer = None
            for path in _newest((stack.folder / "artifact-files").glob("runs/*/replays/*.npz"))[-1:]:
                if (episode := _episode_of(stack, path)) is not None:
                    answer = stack.ask("GET", f"/episodes/{episode}/trace")
            threading.Event().wait(away_s)
        if answer is not None and answer.status_code != 503:
            return f"a replay in an unavailable store: {answer.status_code} {answer.text:.300}"
        return None

    return Fault(f"make the artifacts unavailable for {away_s:.1f} s", happen)


def lock_database(stack: Stack, rng: random.Random) -> Fault:
    """Hold a lock of the database in another process, at times longer than leases last."""
    hold_s = rng.uniform(0.5, 6.0)

    def happen() -> None:
        with stack.disturbed:
            stack.database.lock(hold_s)

    return Fault(f"hold a lock of the database for {hold_s:.1f} s", happen)


def second_worker(stack: Stack, rng: random.Random) -> Fault:
    """Run a second worker of a host's name in another home for a while, then end or kill it."""
    host, runs_s, kill = rng.choice(stack.workers), rng.uniform(3.0, 10.0), rng.random() < 0.5

    def happen() -> str | None:
        second = stack.start_worker(host.home.name, f"{host.home.name}-second")
        try:
            threading.Event().wait(runs_s)
            if not kill and not second.end():
                return f"the second worker of {host.home.name} did not end within {WORKER_STOP_LIMIT_S} s"
        finally:
            second.process.kill()
            second.process.wait()
        return None

    return Fault(f"a second {host.name} for {runs_s:.1f} s, {'killed' if kill else 'ended'}", happen)


def kill_web_during_export(stack: Stack, rng: random.Random) -> Fault:
    """Kill the web process while it sends an export; a later one must be complete."""
    ending = rng.choice(["csv", "parquet", "tensorboard"])

    def happen() -> str | None:
        listed = stack.ask("GET", "/runs")
        if listed is None or listed.status_code != 200 or not listed.json()["items"]:
            return None
        path = f"/runs/{listed.json()['items'][-1]['id']}/export?format={ending}"
        with suppress(httpx.HTTPError), stack.stream(path) as export:
            parts = export.iter_raw()
            next(parts, b"")
            stack.web.process.kill()
            deque(parts, maxlen=0)
        for _ in rounds():
            answer = stack.ask("GET", path)
            if answer is not None and answer.status_code not in (429, 503):  # other exports are being sent
                return None if answer.status_code == 200 else f"a later export: {answer.status_code}"
            threading.Event().wait(0.5)
        return None

    return Fault(f"kill web during an export as {ending}", happen)


def _event_logs(worker: Service) -> list[Path]:
    return _newest((worker.home / "runs").glob("*/attempts/*/events.log"))


def _newest(paths: Iterator[Path]) -> list[Path]:
    """The existing ones, the newest last."""
    dated = []
    for path in paths:
        with suppress(FileNotFoundError):
            dated.append((path.stat().st_mtime, path))
    return [path for _, path in sorted(dated)]


def _flip_somewhere(path: Path, pick: float) -> None:
    with suppress(FileNotFoundError):  # it has been removed
        flip_bit(path, int(pick * path.stat().st_size))


def _episode_of(stack: Stack, replay: Path) -> str | None:
    run_id, name = replay.parts[-3], replay.name
    try:
        with reading(stack.engine) as session:
            return session.scalar(select(Episode.id).where(Episode.run_id == run_id, Episode.replay == name))
    except SQLAlchemyError:
        return None


def _limit_files(worker: Service, n_bytes: int, *, with_worker: bool) -> None:
    """Set the limit of a file's size for a worker and the engines that it has now."""
    processes = worker.engines()
    with suppress(psutil.Error):
        processes += [psutil.Process(worker.process.pid)] if with_worker else []
    for process in processes:
        with suppress(psutil.Error, ProcessLookupError):
            _, hard = process.rlimit(resource.RLIMIT_FSIZE)
            process.rlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))


FAULTS: dict[faults.Kind, int] = {
    **faults.FAULTS,
    freeze_web: 1,
    kill_engine_server: 2,
    fill_disk: 1,
    damage_log: 2,
    damage_checkpoint: 1,
    damage_replay: 1,
    remove_artifacts: 1,
    lock_database: 1,
    second_worker: 1,
    kill_web_during_export: 1,
}
"""Every fault of a campaign with its relative frequency."""
