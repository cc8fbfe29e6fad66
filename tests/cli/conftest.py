from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.settings import Settings
from workers.context import Context


@pytest.fixture
def context(database_url: str, redis_url: str, tmp_path: Path) -> Iterator[Context]:
    """A worker's connections."""
    settings = Settings(
        home=tmp_path / "worker", database_url=database_url, redis_url=redis_url, host_name="a"
    )
    context = Context.of(settings)
    yield context
    context.close()
