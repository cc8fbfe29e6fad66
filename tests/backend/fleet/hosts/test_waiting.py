from datetime import UTC, datetime
from typing import Any

import pytest

from backend.db import Host, Run
from backend.fleet.hosts.waiting import ActiveHost, capacity_warnings, expected_wait_s, why_waiting
from backend.specs.run import parse_run_spec
from backend.specs.states import RunState
from tests.support.rows import CARTPOLE, host_row

GIB = 2**30
NOW = datetime(2026, 11, 25, tzinfo=UTC)


def _run(state: RunState = RunState.QUEUED, **changes: Any) -> Run:
    """A run that has trained for 100 s of 1,000."""
    asked = {
        key: changes.pop(key) for key in ("host", "queue", "device", "stop", "package") if key in changes
    }
    custom = changes.pop("custom", None)
    spec = parse_run_spec(CARTPOLE | {"stop": {"wall_time_s": 1000}} | asked)
    columns: dict[str, Any] = {
        "algorithm": spec.algorithm, "environment": spec.environment,
        "spec": spec.model_dump(mode="json") | {"custom": custom},
        "queue": spec.queue, "wanted_host": spec.host, "memory_estimate_bytes": GIB, "state": state,
        "agent_steps": 1000, "wall_time_s": 100.0, "agent_steps_per_s": None,
    }  # fmt: skip
    return Run(**(columns | changes))


def _host(name: str = "a", *, alive: bool = True, runs: tuple[Run, ...] = (), **changes: Any) -> ActiveHost:
    row: Host = host_row(name, **({"slots": 1, "draining": False} | changes))
    return ActiveHost(row, alive=alive, runs=runs)


def test_reason_names_the_presets_that_fit_the_largest_host() -> None:
    spec = parse_run_spec(
        {"algorithm": "gorila_dqn", "environment": "ALE/Pong-v5", "stop": {"agent_steps": 1}}
    )
    run = _run(
        algorithm=spec.algorithm,
        environment=spec.environment,
        spec=spec.model_dump(mode="json"),
        memory_estimate_bytes=spec.memory_estimate_bytes,
    )
    host = _host(environments=["ALE/Pong-v5"])
    assert spec.memory_estimate_bytes > host.host.memory_bytes
    advice = "the preset 15 minutes (quarter-hour) or 2 CPU cores (two-cpu-cores) fits"
    assert why_waiting(run, [host]).endswith(f"has 8.0 GiB: {advice}")


@pytest.mark.parametrize(
    ("run", "hosts", "reason"),
    [
        (_run(), [_host()], "a host is about to claim it"),
        (_run(), [], "no host serves this queue"),
        (_run(queue="gpu"), [_host()], "no host serves this queue"),
        (_run(host="b"), [_host()], "the requested host b is unknown"),
        (_run(host="a"), [_host(alive=False)], "a is offline"),
        (_run(), [_host(alive=False)], "every host that can run it is offline"),
        (_run(host="a"), [_host(alive=False, stopped_at=NOW)], "a is stopped"),
        (
            _run(),
            [_host(alive=False, stopped_at=NOW), _host("b", alive=False)],
            "every host that can run it is offline",
        ),
        (
            _run(device="cuda"),
            [_host(), _host("b", alive=False, devices=["cuda:0"])],
            "every host that can run it is offline",
        ),
        (
            _run(device="cuda"),
            [_host(), _host("b", draining=True, devices=["cuda:0"])],
            "every host that can run it is draining",
        ),
        (_run(), [_host(draining=True)], "every host that can run it is draining"),
        (
            _run(),
            [_host(draining=True, load={"disk_problem": "No space left on device"})],
            "every host that can run it has a disk problem (a: No space left on device)",
        ),
        (_run(), [_host(runs=(_run(),))], "all slots are in use"),
        (
            _run(),
            [_host(environments=[])],
            "no host that may claim it provides the environment CartPole-v1",
        ),
        (
            _run(environment="Racing-Slow-v0"),
            [_host(environments=[])],
            "no host that may claim it provides the environment Racing-Slow-v0: on a host, pip install "
            "'callboard[racing]'",
        ),
        (
            _run(algorithm="gorila_dqn"),
            [_host(versions={"torch": "2"}), _host("b", queues=["gpu"], versions={"ray": "2"})],
            "no host that may claim it has ray, which gorila_dqn needs: on a host, pip install "
            "'callboard[gorila]'",
        ),
        (
            _run(package="mine==1.0"),
            [_host(versions={"mine": "2.0"}), _host("b", queues=["gpu"], versions={"mine": "1.0"})],
            "no host that may claim it has mine==1.0, which paac is of; a has 2.0: on a host, pip install "
            "'mine==1.0'",
        ),
        (_run(package="mine==1.0"), [_host(versions={"mine": "1.0"})], "a host is about to claim it"),
        (
            _run(package="mine==1.0", custom={"package": "lines==1.0"}),
            [_host(versions={"mine": "1.0"})],
            "no host that may claim it has lines==1.0, which CartPole-v1 is of: on a host, pip install "
            "'lines==1.0'",
        ),
        (
            _run(package="mine==1.0", custom={"package": "lines==1.0"}),
            [_host(versions={"mine": "1.0"}), _host("b", versions={"lines": "1.0"})],
            "no host that may claim it has both mine==1.0 and lines==1.0",
        ),
        (_run(device="cuda"), [_host()], "it requires a GPU, and no host that may claim it has one"),
        (
            _run(memory_estimate_bytes=16 * GIB),
            [_host()],
            "it may need 16.0 GiB of memory, and the largest host that may claim it has 8.0 GiB: reduce the "
            "numbers of processes and the replay memory",
        ),
        (
            _run(memory_estimate_bytes=4 * GIB),
            [_host(load={"memory_used_bytes": 6.0 * GIB})],
            "no host has the 4.0 GiB of free memory that it may need",
        ),
        (
            _run(memory_estimate_bytes=4 * GIB),
            [_host(load={"memory_used_bytes": 1.0 * GIB, "claimable_memory_bytes": 3 * GIB})],
            "no host has the 4.0 GiB of free memory that it may need",
        ),
    ],
)
def test_reason_is_the_first_condition_that_no_host_meets(
    run: Run, hosts: list[ActiveHost], reason: str
) -> None:
    assert why_waiting(run, hosts) == reason


def test_capacity_warning_is_of_the_hosts_that_have_the_packages() -> None:
    run = _run(algorithm="gorila_dqn", memory_estimate_bytes=16 * GIB)
    large = host_row("a", memory_bytes=64 * GIB, versions={"torch": "2"})
    hosts = [large, host_row("b", versions={"ray": "2"})]
    (warning,) = capacity_warnings([run], hosts)
    assert "the largest host that may claim it has 8.0 GiB" in warning


RATES = {("paac", "CartPole-v1"): 10.0}


@pytest.mark.parametrize(
    ("ahead", "hosts", "expected"),
    [
        # A free slot.
        ([], [_host()], 0),
        # The active run has 900 s left; that of the other host 400.
        ([], [_host(runs=(_run(RunState.RUNNING),))], 900),
        ([], [_host(), _host("b", runs=(_run(RunState.RUNNING),))], 0),
        (
            [_run()],
            [
                _host(runs=(_run(RunState.RUNNING),)),
                _host("b", runs=(_run(RunState.RUNNING, wall_time_s=600.0),)),
            ],
            900,
        ),
        # Slots have become fewer than the runs: 900 and 400 s left, then 100.
        ([], [_host(runs=(_run(RunState.RUNNING), _run(RunState.RUNNING, wall_time_s=600.0)))], 900),
        (
            [_run()],
            [
                _host(
                    runs=tuple(_run(RunState.RUNNING, wall_time_s=at) for at in (900.0, 100.0, 600.0)),
                    slots=2,
                )
            ],
            900,
        ),
        # The run ahead takes the free slot for 900 s, or by its rate for 500.
        ([_run()], [_host()], 900),
        ([_run(stop={"agent_steps": 6000})], [_host()], 500),
        # Runs that no host can run delay nobody.
        ([_run(queue="gpu")], [_host()], 0),
        # A run that only a score ends.
        ([], [_host(runs=(_run(RunState.RUNNING, stop={"score": 1.0}),))], None),
        ([], [_host(runs=(_run(RunState.STOPPING, stop={"score": 1.0}),))], 0),
        ([], [_host(draining=True), _host("b", alive=False)], None),
    ],
)
def test_expected_wait_assigns_slots_in_the_order_of_the_queue(
    ahead: list[Run], hosts: list[ActiveHost], expected: float | None
) -> None:
    assert expected_wait_s(_run(), ahead, hosts, RATES) == expected
