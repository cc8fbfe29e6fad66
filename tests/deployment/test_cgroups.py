"""`callboard up` in a control group of 2 GB and one core."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import sleep

import pytest

from tests.support.installation import Installation
from tests.support.rows import CARTPOLE
from tests.support.service import created_run
from tests.support.waiting import until

LIMIT_BYTES = 2 * 10**9
PERIOD_US = 100_000
ENTER = "import os, sys; [open(f'{folder}/cgroup.procs', 'w').write(str(os.getpid())) for folder in sys.argv[1].split(':')]; os.execvp(sys.argv[2], sys.argv[2:])"  # noqa: E501
"""Moves itself into the groups, then becomes the command."""

pytestmark = [pytest.mark.service, pytest.mark.long]


def _mounted(kind: str, option: str) -> Path | None:
    """Where a hierarchy of control groups is mounted, by its type and one of its options."""
    for line in Path("/proc/mounts").read_text().splitlines():
        _, place, mounted, options, *_ = line.split()
        if mounted == kind and option in options.split(","):
            return Path(place)
    return None


def _make(name: str) -> list[Path]:
    """Groups with the limits, of the first version of control groups or of the second.

    Raises:
        OSError: this machine allows none.
    """
    memory, cpu = _mounted("cgroup", "memory"), _mounted("cgroup", "cpu")
    if memory is not None and cpu is not None:
        folders = [memory / name, cpu / name]
        for folder in folders:
            folder.mkdir()
        (folders[0] / "memory.limit_in_bytes").write_text(str(LIMIT_BYTES))
        (folders[1] / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (folders[1] / "cpu.cfs_quota_us").write_text(str(PERIOD_US))
        return folders
    root = _mounted("cgroup2", "rw")
    if root is None:
        raise FileNotFoundError("no control groups are mounted")
    folder = root / name
    folder.mkdir()
    (folder / "memory.max").write_text(str(LIMIT_BYTES))
    (folder / "cpu.max").write_text(f"{PERIOD_US} {PERIOD_US}")
    return [folder]


@pytest.fixture
def groups() -> Iterator[list[Path]]:
    try:
        folders = _make(f"callboard-test-{os.getpid()}")
    except OSError as error:
        pytest.skip(f"this machine allows no control group: {error}")
    yield folders
    for folder in folders:
        for _ in range(100):
            with suppress(OSError):
                folder.rmdir()
                break
            sleep(0.1)


def test_installation_knows_its_limits_and_trains_within_them(groups: list[Path], short_tmp: Path) -> None:
    prefix = (sys.executable, "-c", ENTER, ":".join(map(str, groups)))
    running = Installation(short_tmp / "home", prefix=prefix)
    try:
        client = running.log_in()
        [host] = until(lambda: client.get("/api/v1/hosts").json()["items"], every_s=0.2)
        assert (host["cpu_count"], host["slots"]) == (1, 1)
        assert 0.99 * LIMIT_BYTES < host["memory_bytes"] <= LIMIT_BYTES
        inside = set((groups[0] / "cgroup.procs").read_text().split())
        assert {str(child.pid) for child in running.children().values()} <= inside
        large = {"algorithm": "gorila_dqn", "environment": "ALE/Pong-v5", "stop": {"agent_steps": 1_000}}
        [reason, *_] = client.post("/api/v1/runs/estimate", json=large).json()["warnings"]
        assert re.search(r"the largest host that may claim it has 1\.9 GiB", reason)
        run = created_run(client.post("/api/v1/runs", json=CARTPOLE | {"stop": {"agent_steps": 20_000}}))
        path = f"/api/v1/runs/{run['id']}"
        ended = until(
            lambda: (now := client.get(path).json())["state"] in ("finished", "failed") and now, every_s=0.5
        )
        assert (ended["state"], ended["attempt"]) == ("finished", 1), ended
        assert _killed(groups[0]) == 0
    finally:
        running.stop()


def _killed(memory: Path) -> int:
    """How many processes the kernel has killed because of the limit."""
    for name in ("memory.oom_control", "memory.events"):
        if (memory / name).exists():
            counts = dict(line.split() for line in (memory / name).read_text().splitlines())
            return int(counts.get("oom_kill", 0))
    return 0
