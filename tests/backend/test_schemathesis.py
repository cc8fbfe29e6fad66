"""Made-up requests, thousands of them, over the whole OpenAPI document: no crash, no undocumented answer."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from backend.auth.roles import Role
from backend.specs.states import RunState
from tests.support.artifacts import make_checkpoint, make_episode
from tests.support.databases import ON_SQLITE_FIRST
from tests.support.runs import make_run
from tests.support.service import RunningService

pytestmark = [pytest.mark.service, pytest.mark.timeout(1800)]

CONFIG = Path(__file__).parent / "schemathesis.toml"
OWN_ACCOUNT = "^/api/v1/(users|tokens)/"
"""Routes by which a made-up request may delete the very user who makes it."""


def _run(service: RunningService, *options: str, token: str | None) -> int:
    """Try requests. Gives how many were tried; fails with the report when any check failed."""
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIG), "run"]
    command += [f"{service.url}/openapi.json", "--continue-on-failure", "--no-color"]
    command += ["--warnings", "off", "--seed", "1", *options]
    # An id with a slash is hard to make up.
    command += ["--suppress-health-check", "filter_too_much"]
    if token is not None:
        command += ["--header", f"Authorization: {token}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    tried = re.search(r"(\d+) generated", done.stdout)
    assert tried is not None, done.stdout
    return int(tried[1])


@pytest.fixture
def token(service: RunningService, tmp_path: Path) -> str:
    """Of an admin of a service with something of everything in it."""
    run = make_run(service.engine, RunState.STOPPED)
    make_episode(service.engine, run, service.artifacts, tmp_path)
    make_checkpoint(service.engine, run)
    with service.client_as(Role.ADMIN) as client:
        authorization: str = client.headers["Authorization"]
    return authorization


@ON_SQLITE_FIRST
def test_a_few_hundred_requests(service: RunningService, token: str) -> None:
    few = ("--phases", "fuzzing", "--max-examples", "5")
    tried = _run(service, *few, "--exclude-path-regex", OWN_ACCOUNT, token=token)
    tried += _run(service, *few, "--include-path-regex", OWN_ACCOUNT, token=token)
    tried += _run(service, "--phases", "fuzzing", "--max-examples", "1", token=None)
    assert tried >= 300


@pytest.mark.long
def test_thousands_of_requests(service: RunningService, token: str) -> None:
    many = ("--phases", "examples,coverage,fuzzing", "--max-examples", "20")
    tried = _run(service, *many, "--exclude-path-regex", OWN_ACCOUNT, token=token)
    tried += _run(service, *many, "--include-path-regex", OWN_ACCOUNT, token=token)
    tried += _run(service, "--phases", "coverage,fuzzing", "--max-examples", "2", token=None)
    assert tried >= 3_000
