"""Fixtures of the client's tests: where its spool is, and a real service to log to."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.platform.principals import Role
from tests.client.support import Intermittent, Proxy, Target
from tests.support.service import RunningService


@pytest.fixture(autouse=True)
def spools(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the client's spools, below a home of its own."""
    for name in ("CALLBOARD_URL", "CALLBOARD_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("callboard.starting.RECORDS", False)  # tests of it turn it on
    home = tmp_path_factory.mktemp("client")
    monkeypatch.setenv("CALLBOARD_HOME", str(home))
    return home / "spool"


@pytest.fixture
def target(sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch) -> Iterator[Target]:
    """A real service to which `callboard.init` and `callboard.connect` lead without arguments."""
    with sqlite_service.client_as(Role.OPERATOR) as client:
        monkeypatch.setenv("CALLBOARD_URL", sqlite_service.url)
        monkeypatch.setenv("CALLBOARD_TOKEN", client.headers["Authorization"].removeprefix("Bearer "))
        yield Target(sqlite_service, client)


@pytest.fixture
def intermittent(target: Target, monkeypatch: pytest.MonkeyPatch) -> Iterator[Intermittent]:
    """A server to which `callboard.init` leads, and which does not run yet; `target` reads what it stores."""
    server = Intermittent(target.service)
    monkeypatch.setenv("CALLBOARD_URL", server.url)
    yield server
    server.close()


@pytest.fixture
def proxy(target: Target, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """A proxy before the service, to which `callboard.init` leads; `target` reads what the service stores."""
    server = Proxy(target.service.url)
    monkeypatch.setenv("CALLBOARD_URL", server.url)
    yield server
    server.close()
