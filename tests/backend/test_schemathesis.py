"""Generated requests over the whole OpenAPI document cause no crash and no undocumented response."""

import os
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from backend.platform.principals import Role
from backend.specs.states import RunState
from tests.support.artifacts import make_episode
from tests.support.rows import make_checkpoint, make_run
from tests.support.service import RunningService
from tests.support.waiting import PATIENCE_S

pytestmark = [pytest.mark.service, pytest.mark.timeout(3_600)]

CONFIG = Path(__file__).parent / "schemathesis.toml"
OWN_ACCOUNT = "^/api/v1/(users|tokens)/"
"""Routes by which a generated request may delete the user that sends it."""


def _run(service: RunningService, *options: str, token: str | None) -> int:
    """Send generated requests. Return their number; fail with the report when any check failed."""
    # The first document takes a busy machine longer than the 10 s that Schemathesis waits.
    httpx.get(f"{service.url}/openapi.json", timeout=PATIENCE_S).raise_for_status()
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIG), "run"]
    command += [f"{service.url}/openapi.json", "--continue-on-failure", "--no-color"]
    command += ["--warnings", "off", "--seed", "1", "--request-timeout", f"{PATIENCE_S:.0f}", *options]
    # Few generated ids contain a slash. A busy machine is slow, and the time of requests counts.
    command += ["--suppress-health-check", "filter_too_much,too_slow"]
    if token is not None:
        command += ["--header", f"Authorization: {token}"]
    # The order of sets is a part of what is generated: the same in each run, like the seed.
    environment = os.environ | {"PYTHONHASHSEED": "0"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    tried = re.search(r"(\d+) generated", done.stdout)
    assert tried is not None, done.stdout
    return int(tried[1])


@pytest.fixture
def token(service: RunningService, tmp_path: Path) -> str:
    """The token of an admin; the service has a run, an episode and a checkpoint."""
    run = make_run(service.engine, RunState.STOPPED)
    make_episode(service.engine, run, service.artifacts, tmp_path)
    make_checkpoint(service.engine, run)
    with service.client_as(Role.ADMIN) as client:
        authorization: str = client.headers["Authorization"]
    return authorization


@pytest.mark.long
@pytest.mark.parametrize(
    ("database_url", "phases", "examples", "least"),
    [
        ("sqlite", "fuzzing", 3, 200),
        ("postgresql", "examples,coverage,fuzzing", 3, 1_500),
        pytest.param("sqlite", "examples,coverage,fuzzing", 60, 5_000, marks=pytest.mark.benchmark),
        pytest.param("postgresql", "examples,coverage,fuzzing", 60, 5_000, marks=pytest.mark.benchmark),
    ],
    indirect=["database_url"],
)
def test_generated_requests_get_documented_responses(
    service: RunningService, token: str, phases: str, examples: int, least: int
) -> None:
    options = ("--phases", phases, "--max-examples", str(examples))
    tried = _run(service, *options, "--exclude-path-regex", OWN_ACCOUNT, token=token)
    tried += _run(service, *options, "--include-path-regex", OWN_ACCOUNT, token=token)
    tried += _run(service, "--phases", "fuzzing", "--max-examples", "1", token=None)
    print(f"\n{tried:,} generated requests")  # noqa: T201
    assert tried >= least
