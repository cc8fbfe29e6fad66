"""What a container may use, from folders as Docker, Kubernetes and systemd show them."""

from pathlib import Path

import pytest

from workers import cgroups, host_facts

GIB = 2**30
NO_LIMIT = "9223372036854771712"

V2 = {"cgroup.procs": "", "memory.max": "max", "memory.current": "0", "cpu.max": "max 100000"}

CASES = [
    ("0::/", {}, None, None, None),
    ("0::/", {"": V2}, None, None, None),
    ("0::/", {"": V2 | {"memory.max": f"{2 * GIB}", "memory.current": f"{GIB}"}}, 2 * GIB, GIB, None),
    (
        "0::/",
        {
            "": V2
            | {
                "memory.max": f"{GIB}",
                "memory.current": f"{GIB}",
                "memory.stat": f"anon 5\ninactive_file {GIB}",
            }
        },
        GIB,
        GIB,
        None,
    ),
    ("0::/", {"": V2 | {"cpu.max": "50000 100000"}}, None, None, 0.5),
    # A pod's limit is that of its parent; a service of systemd on a host.
    (
        "0::/kubepods/pod/one",
        {
            "": {"cgroup.procs": ""},
            "kubepods/pod": V2 | {"memory.max": f"{GIB}", "cpu.max": "250000 100000"},
            "kubepods/pod/one": V2 | {"memory.max": f"{3 * GIB}"},
        },
        GIB,
        GIB,
        2.5,
    ),
    # The host's path, which is not shown in the container.
    ("0::/system.slice/docker-1.scope", {"": V2 | {"memory.max": f"{GIB}"}}, GIB, GIB, None),
    (
        "5:memory:/docker/1\n4:cpu,cpuacct:/docker/1\n0::/docker/1",
        {
            "memory": {
                "cgroup.procs": "",
                "memory.limit_in_bytes": f"{GIB}",
                "memory.usage_in_bytes": f"{GIB // 2}",
            },
            "cpu,cpuacct": {"cgroup.procs": "", "cpu.cfs_quota_us": "150000", "cpu.cfs_period_us": "100000"},
            "unified": {"cgroup.procs": ""},
        },
        GIB,
        GIB // 2,
        1.5,
    ),
    (
        "2:cpu:/\n1:memory:/a",
        {
            "memory": {"cgroup.procs": "", "memory.limit_in_bytes": NO_LIMIT},
            "memory/a": {"cgroup.procs": "", "memory.limit_in_bytes": NO_LIMIT},
            "cpu": {"cgroup.procs": "", "cpu.cfs_quota_us": "-1", "cpu.cfs_period_us": "100000"},
        },
        None,
        None,
        None,
    ),
]
"""Lines of `/proc/self/cgroup`, files of the folders; limit of memory, what is free of it, limit of cores."""


@pytest.mark.parametrize(("own", "folders", "memory", "free", "cpus"), CASES, ids=range(len(CASES)))
def test_limits_are_the_least_of_a_group_and_its_parents(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    own: str,
    folders: dict[str, dict[str, str]],
    memory: int | None,
    free: int | None,
    cpus: float | None,
) -> None:
    monkeypatch.setattr(cgroups, "GROUPS", tmp_path / "groups")
    monkeypatch.setattr(cgroups, "OWN_GROUPS", tmp_path / "own")
    without = host_facts.memory_bytes(), host_facts.cpu_count()
    (tmp_path / "own").write_text(own)
    for folder, files in folders.items():
        (tmp_path / "groups" / folder).mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (tmp_path / "groups" / folder / name).write_text(f"{text}\n")
    limits = cgroups.memory_limit_bytes(), cgroups.free_memory_bytes(), cgroups.cpu_limit()
    assert limits == (memory, free, cpus)
    assert host_facts.memory_bytes() == min(without[0], memory or without[0])
    assert host_facts.cpu_count() == min(without[1], max(1, int(cpus or without[1])))
