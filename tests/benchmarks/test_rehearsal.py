"""The benchmark on a stand-in for a GPU host: its packages without ours, no GPU and no network.

`make test-long` sets it up in `.venv-gpu-host`. Unlike a real host, it has the versions of
constraints.txt, and the Python that the tests run with unless `GPU_HOST_PYTHON` names another.
"""

import json
import os
import re
import shutil
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu import bundle
from benchmarks.gpu.__main__ import STAGES
from benchmarks.gpu.packages import normalize, read_host_packages

HOST = bundle.ROOT / ".venv-gpu-host"
LATE = re.compile(r"killed (at|after) |not reached")
"""Errors of rows that a slow machine causes."""

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not (HOST / ".ready").exists(), reason="needs .venv-gpu-host, of `make test-long`"),
]


def without_network() -> list[str]:
    """The beginning of a command that has no network, empty if this machine allows none."""
    for command in (["unshare", "--net"], ["unshare", "--net", "--map-root-user"]):
        try:
            if subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0:
                return command
        except FileNotFoundError:
            break
    return []


def test_host_has_no_package_that_a_real_one_lacks() -> None:
    [packages] = HOST.glob("lib/python3*/site-packages")
    names = {normalize(distribution.name) for distribution in metadata.distributions(path=[str(packages)])}
    assert "torch" in names
    assert names - read_host_packages() == set()


def test_every_stage_runs_from_the_bundle_without_a_network(tmp_path: Path) -> None:
    folder, out = tmp_path / "bundle", tmp_path / "out"
    shutil.copytree(HOST / "bundle/wheels", folder / "wheels")
    bundle.copy_source(folder)  # as it is now
    assert bundle.measure_mib(folder) < bundle.MAX_MIB
    environment = {
        "PATH": os.pathsep.join([str((HOST / "bin").absolute()), "/usr/bin", "/bin"]),
        "HOME": str(tmp_path),
        "PIP_NO_INDEX": "1",
        **dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9"),
    }
    done = subprocess.run(
        [*without_network(), folder / "run", "--device", "cpu", "--short", "--out", out],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    results = json.loads((out / "results.json").read_text())
    assert {stage["stage"]: stage["error"] for stage in results["stages"]} == {
        stage.name: None for stage in STAGES
    }
    rows: list[dict[str, Any]] = results["rows"]
    errors = {f"{row['stage']}: {row['row']}": row["error"] for row in rows if "error" in row}
    assert {row: error for row, error in errors.items() if not LATE.match(error)} == {}
    assert {row["stage"] for row in rows if "error" not in row} == {stage.name for stage in STAGES}
    [tests] = [row for row in rows if row["stage"] == "tests"]
    assert tests["failures"] == []
    assert tests["passed"] > 0
