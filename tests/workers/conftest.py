from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.settings import Settings
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
