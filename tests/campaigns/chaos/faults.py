"""The faults of chaos campaigns."""

import random
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

import psutil
import redis

from tests.campaigns.chaos.stack import WORKER_STOP_LIMIT_S, Stack


@dataclass(frozen=True)
class Fault:
    """A fault that has not happened yet."""

    title: str
    happen: Callable[[], str | None]
    """Causes the fault, returns when it is over, with the violation that it found, if any."""


def kill_engine(stack: Stack, rng: random.Random) -> Fault:
    """Send SIGKILL to an engine or to one of its processes."""
    worker = rng.choice(stack.workers)
    pick, part = rng.random(), rng.random() < 0.3

    def happen() -> None:
        engines = sorted(worker.engines(), key=lambda process: process.pid)
        if not engines:
            return
        victim = engines[int(pick * len(engines))]
        with suppress(psutil.Error):
            family = victim.children(recursive=True) if part else []
            (family[int(pick * len(family))] if family else victim).kill()

    return Fault(f"kill {'a part of ' if part else ''}an engine of {worker.name}", happen)


def freeze_engine(stack: Stack, rng: random.Random) -> Fault:
    """Stop an engine with SIGSTOP for up to 5 s."""
    worker, frozen_s = rng.choice(stack.workers), rng.uniform(0.5, 5.0)

    def happen() -> None:
        for process in worker.engines()[:1]:
            with suppress(psutil.Error):
                process.suspend()
                threading.Event().wait(frozen_s)
                process.resume()

    return Fault(f"freeze an engine of {worker.name} for {frozen_s:.1f} s", happen)


def kill_worker(stack: Stack, rng: random.Random) -> Fault:
    """Send SIGKILL to a worker, with its supervisors and recorders."""
    worker = rng.choice(stack.workers)
    return Fault(f"kill {worker.name}", worker.process.kill)


def freeze_worker(stack: Stack, rng: random.Random) -> Fault:
    """Stop a worker with SIGSTOP, at times longer than its leases last, while its engines train on."""
    worker, frozen_s = rng.choice(stack.workers), rng.uniform(0.5, 10.0)

    def happen() -> None:
        with worker.paused, suppress(psutil.Error):
            process = psutil.Process(worker.process.pid)
            process.suspend()
            threading.Event().wait(frozen_s)
            process.resume()

    return Fault(f"freeze {worker.name} for {frozen_s:.1f} s", happen)


def end_worker(stack: Stack, rng: random.Random) -> Fault:
    """Send SIGTERM to a worker, as in a deployment."""
    worker = rng.choice(stack.workers)

    def happen() -> str | None:
        with worker.paused:
            in_time = worker.end()
        return None if in_time else f"{worker.name} did not end within {WORKER_STOP_LIMIT_S} s of SIGTERM"

    return Fault(f"end {worker.name}", happen)


def kill_web(stack: Stack, rng: random.Random) -> Fault:
    """Send SIGKILL to the web process."""
    return Fault("kill web", stack.web.process.kill)


def kill_redis(stack: Stack, rng: random.Random) -> Fault:
    """Send SIGKILL to Redis, which restarts empty."""
    down_s = rng.uniform(0.1, 4.0)

    def happen() -> None:
        with stack.disturbed:
            stack.redis.stop()
            threading.Event().wait(down_s)
            stack.redis.start()

    return Fault(f"kill Redis for {down_s:.1f} s", happen)


def flush_redis(stack: Stack, rng: random.Random) -> Fault:
    """Delete everything in Redis."""

    def happen() -> None:
        with suppress(redis.RedisError):
            stack.redis.flush()

    return Fault("flush Redis", happen)


def disturb_database(stack: Stack, rng: random.Random) -> Fault:
    """Disturb the database by a restart, a crash or a lock."""
    title, disturb = stack.database.disturb(rng)

    def happen() -> None:
        with stack.disturbed:
            disturb()

    return Fault(title, happen)


Kind = Callable[[Stack, random.Random], Fault]
"""Draws the details of a fault."""

FAULTS: dict[Kind, int] = {
    kill_engine: 5,
    freeze_engine: 2,
    kill_worker: 2,
    freeze_worker: 2,
    end_worker: 1,
    kill_web: 1,
    kill_redis: 1,
    flush_redis: 1,
    disturb_database: 2,
}
"""Faults with their relative frequency. What a test's seed draws depends on them, so that others are in
`more_faults`."""


def draw(stack: Stack, rng: random.Random, kinds: Mapping[Kind, int]) -> Fault:
    """Draw the next fault."""
    return rng.choices(list(kinds), list(kinds.values()))[0](stack, rng)
