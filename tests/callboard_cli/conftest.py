from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner, Result

from backend.coordination.context import Context
from backend.platform.settings import Settings
from tests.support.waiting import await_worker_threads

if TYPE_CHECKING:
    # Imported by the fixtures that need them: units need neither the web service nor a worker.
    from tests.support.service import RunningService
    from workers.host_agent import HostAgent


@pytest.fixture
def context(database_url: str, redis_url: str, tmp_path: Path) -> Iterator[Context]:
    """A worker's connections."""
    settings = Settings(
        home=tmp_path / "worker", database_url=database_url, redis_url=redis_url, host_name="a"
    )
    context = Context.from_settings(settings)
    yield context
    await_worker_threads()
    context.close()


@pytest.fixture
def callboard(sqlite_service: "RunningService") -> Callable[..., Result]:
    """Return a function that runs a command against the local service."""
    from callboard_cli.main import app

    settings = sqlite_service.settings
    local = {
        "CALLBOARD_HOME": str(settings.home_dir),
        "CALLBOARD_DATABASE_URL": settings.database,
        "CALLBOARD_REDIS_URL": settings.redis,
        "CALLBOARD_PORT": sqlite_service.url.rpartition(":")[2],
    }

    def run(*arguments: str, **given: str | None) -> Result:
        return CliRunner().invoke(app, arguments, env=local | given)

    return run


@pytest.fixture
def worker(sqlite_service: "RunningService") -> Iterator["HostAgent"]:
    """A host agent with the fake engine."""
    from tests.workers.support import FAKE_ENGINE
    from workers.host_agent import HostAgent

    settings = sqlite_service.settings.model_copy(update={"reconcile_interval_s": 0.2, "host_name": "a"})
    context = Context.from_settings(settings)
    agent = HostAgent(context, command=FAKE_ENGINE)
    agent.start()
    yield agent
    agent.stop(8)
    await_worker_threads()
    context.close()
