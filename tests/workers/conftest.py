import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.settings import Settings
from tests.support.installation import CALLBOARD, environment
from tests.workers.support import Start, processes_with, until
from workers.context import Context


@pytest.fixture
def settings(database_url: str, redis_url: str, tmp_path: Path) -> Settings:
    """A worker's settings: a home of its own, quick leases."""
    return Settings(
        home=tmp_path / "home",
        database_url=database_url,
        redis_url=redis_url,
        host_name="a",
        lease_s=3.0,
        reconcile_interval_s=0.2,
    )


@pytest.fixture
def context(settings: Settings) -> Iterator[Context]:
    """A worker's connections."""
    context = Context.of(settings)
    yield context
    context.close()


@pytest.fixture
def start(settings: Settings, tmp_path: Path) -> Iterator[Start]:
    """Starts workers; ends them afterwards and sees that no engine is left."""
    started: list[subprocess.Popen[bytes]] = []

    def start(**changes: object) -> subprocess.Popen[bytes]:
        given = {
            "database_url": settings.database_url,
            "redis_url": settings.redis_url,
            "host_name": "a",
            "lease_s": 3,
            "reconcile_interval_s": 0.3,
        }
        with (tmp_path / f"worker-{len(started)}.log").open("wb") as output:
            process = subprocess.Popen(
                [*CALLBOARD, "worker"],
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
    until(lambda: not processes_with(str(settings.runs_dir)))
