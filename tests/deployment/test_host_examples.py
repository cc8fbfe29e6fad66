"""The examples for systemd and Slurm: units that systemd accepts, and a job that is a worker."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from backend.platform.principals import Role
from tests.support.installation import environment
from tests.support.rows import CARTPOLE
from tests.support.service import RunningService, created_run
from tests.support.waiting import PATIENCE_S, until

pytestmark = pytest.mark.long

EXAMPLES = Path(__file__).parents[2] / "examples" / "deploy"
UNITS = ("callboard.service", "callboard-worker.service")


def test_units_start_commands_that_there_are_and_read_settings_that_there_are() -> None:
    from backend.platform.settings import Settings

    fields = {f"CALLBOARD_{name.upper()}" for name in Settings.model_fields}
    named = re.findall(r"^(?:# )?(CALLBOARD_\w+)=", (EXAMPLES / "callboard.env").read_text(), re.M)
    assert len(named) > 3
    assert set(named) <= fields
    for name in ("nginx.conf", "Caddyfile", "pgbouncer.ini", "worker.sbatch", *UNITS):
        assert set(re.findall(r"CALLBOARD_\w+", (EXAMPLES / name).read_text())) - fields <= {"CALLBOARD_VENV"}


@pytest.mark.service
@pytest.mark.parametrize("name", UNITS)
def test_systemd_accepts_the_unit(name: str, tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze could not be got: install the package 'systemd'")
    unit = (EXAMPLES / name).read_text()
    command = Path(sys.executable).with_name("callboard")
    assert command.is_file()
    for old, new in {"/opt/callboard/bin/callboard ": f"{command} ", "User=callboard": "User=root"}.items():
        assert old in unit, old
        unit = unit.replace(old, new)
    (tmp_path / name).write_text(unit)
    done = subprocess.run(
        [program, "verify", "--man=no", str(tmp_path / name)], capture_output=True, text=True, check=False
    )
    complaints = [line for line in done.stderr.splitlines() if str(tmp_path) in line or name in line]
    assert (done.returncode, complaints) == (0, []), done.stderr
    [(_, subcommand)] = re.findall(r"^ExecStart=(\S+) (\w+)$", unit, re.M)
    assert subprocess.run([command, subcommand, "--help"], capture_output=True, check=False).returncode == 0


def _options(script: str) -> dict[str, str]:
    lines = re.findall(r"^#SBATCH (--.+)$", script, re.M)
    return dict(line.removeprefix("--").partition("=")[::2] for line in lines)


def test_slurm_signals_the_job_before_its_end() -> None:
    script = (EXAMPLES / "worker.sbatch").read_text()
    options = _options(script)
    kind, _, seconds = options["signal"].partition("@")
    assert (kind, int(seconds) >= 60) == ("B:TERM", True)
    first_command = next(n for n, line in enumerate(script.splitlines()) if line and line[0] != "#")
    last_option = max(n for n, line in enumerate(script.splitlines()) if line.startswith("#SBATCH"))
    assert last_option < first_command, "Slurm reads no option after the first command"


@pytest.mark.service
def test_job_trains_and_gives_its_runs_back_at_its_end(
    sqlite_service: RunningService, short_tmp: Path
) -> None:
    script = EXAMPLES / "worker.sbatch"
    (short_tmp / "bin").mkdir()
    (short_tmp / "bin" / "callboard").write_text(
        f'#!/bin/sh\nexec {shlex.join([sys.executable, "-m", "callboard_cli.main"])} "$@"\n'
    )
    (short_tmp / "bin" / "callboard").chmod(0o755)
    settings = sqlite_service.settings
    variables = environment(
        short_tmp, database_url=settings.database, redis_url=settings.redis, artifacts_url=settings.artifacts
    ) | {"SLURM_JOB_ID": "42", "TMPDIR": str(short_tmp), "CALLBOARD_VENV": str(short_tmp)}
    variables["CALLBOARD_QUEUES"] = '["cpu"]'
    missing = variables | {"CALLBOARD_REDIS_URL": ""}
    refused = subprocess.run(["bash", script], env=missing, capture_output=True, text=True, check=False)
    assert (refused.returncode != 0, "CALLBOARD_REDIS_URL" in refused.stderr) == (True, True)
    with sqlite_service.client_as(Role.OPERATOR) as client:
        run = created_run(client.post("/api/v1/runs", json=CARTPOLE | {"stop": {"agent_steps": 10**9}}))
        path = f"/api/v1/runs/{run['id']}"
        with (short_tmp / "job.log").open("wb") as output:
            job = subprocess.Popen(["bash", script], env=variables, stdout=output, stderr=output)
        try:
            until(
                lambda: client.get(path).json()["agent_steps"],
                every_s=0.2,
                detail=(short_tmp / "job.log").read_text,
            )
            host = client.get(path).json()["host"]
            assert host == f"{os.uname().nodename.partition('.')[0]}-42"
            job.send_signal(signal.SIGTERM)
            assert job.wait(PATIENCE_S) == 0, (short_tmp / "job.log").read_text()
        finally:
            job.kill()
            job.wait()
        assert client.get(path).json()["state"] == "queued"
        assert client.get(f"{path}/checkpoints").json()["items"]
