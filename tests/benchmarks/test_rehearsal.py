"""The benchmark on a stand-in for a GPU host: its packages without ours, no GPU and no network.

`make test-long` sets it up in `.venv-gpu-host`. It differs from a real host:

- no GPU, and PyTorch for CPUs where the package index has it;
- the Python that the tests run with, unless `GPU_HOST_PYTHON` names another, and wheels for it;
- the versions of constraints.txt;
- of `host_packages.txt` only `packages.NEEDED`, `packages.LOADED` and what these require.

`benchmarks.gpu.packages` checks the first three on a real host before anything is installed.
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

pytestmark = pytest.mark.long

HOST = bundle.ROOT / ".venv-gpu-host"
LATE = re.compile(r"killed (at|after) |not reached$")
"""Errors of rows that a slow machine causes."""
WITHOUT_EARLIER = re.compile(r"no PAAC row was measured$|FileNotFoundError: the training left no checkpoint$")
"""Errors of rows that need one that was late."""


def needs_host(function: Any) -> Any:
    """Mark a test that needs the stand-in."""
    has_host = (HOST / ".ready").exists()
    skip = pytest.mark.skipif(not has_host, reason="needs .venv-gpu-host, of `make test-long`")
    return skip(function)


def without_network() -> list[str]:
    """The beginning of a command that has no network, empty if this machine allows none."""
    for command in (["unshare", "--net"], ["unshare", "--net", "--map-root-user"]):
        try:
            if subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0:
                return command
        except FileNotFoundError:
            break
    return []


def list_late(results: dict[str, Any]) -> list[str]:
    """The rows that a slow machine did not finish in time, and those that needed them."""
    late = [row for row in results["rows"] if LATE.match(row.get("error", ""))]
    if late:
        late += [row for row in results["rows"] if WITHOUT_EARLIER.match(row.get("error", ""))]
    return [f"{row['stage']}: {row['row']}" for row in late]


def list_failures(results: dict[str, Any]) -> list[str]:
    """What a rehearsal must not have, however slow the machine is."""
    stages = [stage["stage"] for stage in results["stages"]]
    failures = [] if stages == [stage.name for stage in STAGES] else [f"the stages were {stages}"]
    failures += [
        f"{stage['stage']}: {stage['error']}" for stage in results["stages"] if stage["error"] is not None
    ]
    rows, late = results["rows"], list_late(results)
    failures += [f"{name}: no row" for name in stages if not any(row["stage"] == name for row in rows)]
    for row in rows:
        name = f"{row['stage']}: {row['row']}"
        if "error" in row and name not in late:
            failures.append(f"{name}: {row['error']}")
        if row.get("failed") or row.get("passed") is False:
            failures.append(f"{name}: {row.get('failures', 'did not pass')}")
    return failures


def rehearsed(*rows: dict[str, Any], error: str | None = None) -> dict[str, Any]:
    """Results of a rehearsal: a row of each stage that has none in `rows`."""
    names = {row["stage"] for row in rows}
    others = [{"stage": stage.name, "row": "a"} for stage in STAGES if stage.name not in names]
    stages = [{"stage": stage.name, "error": error if stage.name == "pong" else None} for stage in STAGES]
    return {"stages": stages, "rows": [*rows, *others]}


def test_only_late_rows_of_a_rehearsal_are_no_failure() -> None:
    late = {"stage": "tests", "row": "pytest", "error": "killed at the stage's deadline"}
    paac = {"stage": "throughput", "row": "paac", "error": "killed after 65 s: no output"}
    without = {"stage": "profile", "row": "profile", "error": "no PAAC row was measured"}
    assert list_failures(rehearsed(late, paac, without)) == []
    assert len(list_late(rehearsed(late, paac, without))) == 3
    assert list_failures(rehearsed(without)) == ["profile: profile: no PAAC row was measured"]
    broken = {"stage": "peers", "row": "b", "error": "ValueError: not reached"}
    assert list_failures(rehearsed(late, broken)) == ["peers: b: ValueError: not reached"]
    assert list_failures(rehearsed(late | {"passed": False})) == ["tests: pytest: did not pass"]
    failed = {"stage": "tests", "row": "pytest", "failed": 1, "failures": ["a::b"]}
    assert list_failures(rehearsed(failed)) == ["tests: pytest: ['a::b']"]
    assert list_failures(rehearsed(error="OSError: full")) == ["pong: OSError: full"]
    results = rehearsed()
    assert list_failures(results | {"rows": results["rows"][1:]}) == ["tests: no row"]
    assert list_failures(results | {"stages": []}) == ["the stages were []"]


@needs_host
def test_host_has_no_package_that_a_real_one_lacks() -> None:
    [packages] = HOST.glob("lib/python3*/site-packages")
    names = {normalize(distribution.name) for distribution in metadata.distributions(path=[str(packages)])}
    assert "torch" in names
    assert names - read_host_packages() == set()


@needs_host
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
    assert done.returncode in (0, 1), done.stderr
    results = json.loads((out / "results.json").read_text())
    assert list_failures(results) == []
    assert done.returncode == (1 if list_late(results) else 0), done.stderr
