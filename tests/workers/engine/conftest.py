"""What every test of the engine wants."""

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.engine_fixtures import one_thread as one_thread
from tests.support.engine_fixtures import seeded as seeded

if TYPE_CHECKING:
    from tests.support.scripted_environment import Script

# As runs set them. Ray reads them when it is first imported, which a unit may do before a run.
os.environ["RAY_AUTH_MODE"] = "token"
os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))

# Ray would end this process a minute after it lost its first server, amid other tests.
os.environ["RAY_gcs_rpc_server_reconnect_timeout_s"] = str(24 * 3600)  # noqa: SIM112 - Ray reads this name


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Script":
    """A function that loads a script into `Scripted` and returns its part of a run's request."""
    from backend.specs.environments.custom import FILE_VARIABLE
    from tests.support import scripted_environment

    def start(outcomes: Any, *, continuous: bool = False) -> dict[str, Any]:
        file, request = scripted_environment.load(tmp_path, outcomes, continuous=continuous)
        monkeypatch.setenv(FILE_VARIABLE, str(file))
        return request

    return start


@pytest.fixture(scope="module")
def fork_server() -> None:
    """One with PyTorch for all algorithms; an engine has its own. Without PyTorch each actor imports it."""
    from tests.workers.engine.contract_runs import nothing
    from workers.engine.processes.child import Child, preload

    preload("workers.engine.methods.registry", "workers.engine.nn.kernels")
    Child(nothing, name="the first child").join()
