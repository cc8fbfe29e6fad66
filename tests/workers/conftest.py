"""Fixtures of the worker's tests. They import the worker lazily, because the engine's tests are below too."""

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from backend.coordination.context import Context
    from backend.platform.settings import Settings
    from tests.workers.support import Start


@pytest.fixture
def settings(
    database_url: str, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> "Settings":
    """A worker's settings, with a temporary home. No lease runs out but by `expire_lease` and `lose`."""
    from backend.platform.settings import Settings
    from backend.pubsub import bus
    from tests.support.waiting import PATIENCE_S

    # No message of this process is lost because Redis is slow to answer.
    monkeypatch.setattr(bus, "TIMEOUT_S", PATIENCE_S)
    return Settings(
        home=tmp_path / "home",
        database_url=database_url,
        redis_url=redis_url,
        host_name="a",
        lease_s=60.0,
        reconcile_interval_s=0.2,
    )


@pytest.fixture
def context(settings: "Settings") -> "Iterator[Context]":
    """A worker's connections."""
    from backend.coordination.context import Context
    from tests.support.waiting import await_worker_threads

    context = Context.from_settings(settings)
    yield context
    await_worker_threads()
    context.close()


@pytest.fixture
def start(settings: "Settings", tmp_path: Path) -> "Iterator[Start]":
    """Return a function that starts workers; kill them afterwards and check that no engine is left."""
    from tests.support.installation import CALLBOARD, environment
    from tests.support.waiting import until
    from tests.workers.support import engines_of

    started: list[subprocess.Popen[bytes]] = []

    def start(command: Sequence[str] = (*CALLBOARD, "worker"), **changes: object) -> subprocess.Popen[bytes]:
        given = {
            "database_url": settings.database_url,
            "redis_url": settings.redis_url,
            "host_name": "a",
            "lease_s": 3,
            "reconcile_interval_s": 0.3,
        }
        with (tmp_path / f"worker-{len(started)}.log").open("wb") as output:
            process = subprocess.Popen(
                command,
                env=environment(settings.home_dir, **(given | changes)),
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
    until(lambda: not engines_of(settings.runs_dir))
