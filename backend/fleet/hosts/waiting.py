"""Why queued runs wait, and when one is expected to start: pure functions of hosts and runs."""

import heapq
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from backend.db import Host, Run
from backend.specs.algorithms import ALGORITHMS
from backend.specs.environments import ENVIRONMENTS
from backend.specs.extras import PACKAGES, install_command, missing_extras
from backend.specs.fit import memory_advice, process_warning
from backend.specs.problems import InvalidSpec, quoted
from backend.specs.run import parse_run_spec
from backend.specs.states import RunState

GIB = 2**30


@dataclass(frozen=True)
class ActiveHost:
    """A host's row, whether it is alive, and the runs that it holds."""

    host: Host
    alive: bool
    runs: Sequence[Run]

    @property
    def accepts(self) -> bool:
        """Whether it claims runs when it has a free slot."""
        return self.alive and self.disk_problem is None and not self.host.draining

    @property
    def disk_problem(self) -> str | None:
        """Why its disk keeps it from claiming runs, as its worker has reported it."""
        problem: str | None = self.host.load.get("disk_problem")
        return problem


def serves(host: Host, run: Run) -> bool:
    """Whether this host is the one that the run requests; for a run that requests none, whether it serves its
    queue."""
    return run.wanted_host == host.id if run.wanted_host is not None else run.queue in host.queues


def can_run(host: Host, run: Run) -> bool:
    """Whether this host may claim the run once it has a free slot and free memory."""
    return serves(host, run) and all(test(host, run) for test, _ in _NEEDS)


def why_waiting(run: Run, hosts: Sequence[ActiveHost]) -> str:
    """Why no host has claimed a queued run. Conditions are checked in order, each on the hosts that meet the
    earlier ones; the reason is the first that none of these meets."""
    allowed = [candidate for candidate in hosts if serves(candidate.host, run)]
    if not allowed:
        return (
            "no host serves this queue"
            if run.wanted_host is None
            else f"the requested host {run.wanted_host} is unknown"
        )
    subject = run.wanted_host or "every host that can run it"
    for test, problem in _NEEDS:
        able = [candidate for candidate in allowed if test(candidate.host, run)]
        if not able:
            return problem(run, [candidate.host for candidate in allowed])
        allowed = able
    if not (alive := [candidate for candidate in allowed if candidate.alive]):
        stopped = all(candidate.host.stopped_at is not None for candidate in allowed)
        return f"{subject} is {'stopped' if stopped else 'offline'}"
    if not (sound := [candidate for candidate in alive if candidate.disk_problem is None]):
        problems = "; ".join(f"{candidate.host.id}: {candidate.disk_problem}" for candidate in alive)
        return f"{subject} has a disk problem ({problems})"
    if not (accepting := [candidate for candidate in sound if candidate.accepts]):
        return f"{subject} is draining"
    free = [candidate for candidate in accepting if len(candidate.runs) < candidate.host.slots]
    if not free:
        return "all slots are in use"
    if all(_free_memory_bytes(candidate.host) < run.memory_estimate_bytes for candidate in free):
        return f"no host has the {run.memory_estimate_bytes / GIB:.1f} GiB of free memory that it may need"
    return "a host is about to claim it"


def capacity_warnings(runs: Sequence[Run], hosts: Sequence[Host]) -> list[str]:
    """Why no host that can run these runs can run them well, and which presets fit.

    What no host provides, such as the environment or a GPU, is not among the warnings: `why_waiting` says so
    once the runs wait. A requested host that does not exist is reported.

    Args:
        runs: runs of one request, at least one: they differ in config and seed alone. The largest memory
            estimate is used.
        hosts: every host.
    """
    largest = max(runs, key=lambda run: run.memory_estimate_bytes)
    if largest.wanted_host is not None and all(host.id != largest.wanted_host for host in hosts):
        return [f"there is no host {quoted(largest.wanted_host)}: the run waits until there is one"]
    tests = (serves, _provides, _has_packages, _has_device)
    able = [host for host in hosts if all(test(host, largest) for test in tests)]
    if not able:
        return []
    memory_bytes = max(host.memory_bytes for host in able)
    problems = [_too_large(largest, memory_bytes)] if largest.memory_estimate_bytes > memory_bytes else []
    configs = {json.dumps(run.spec["config"], sort_keys=True): run.spec for run in runs}
    busiest = max(map(parse_run_spec, configs.values()), key=lambda spec: spec.config.ray_processes)
    warning = process_warning(busiest, max(host.cpu_count for host in able))
    return problems + ([warning] if warning else [])


def expected_wait_s(
    run: Run, ahead: Sequence[Run], hosts: Sequence[ActiveHost], rates: Mapping[tuple[str, str], float]
) -> float | None:
    """Seconds until a slot is free for a run, if every run before it trains to its limits; None if unknown.

    Slots are assigned as workers do: in the order of the queue, each run to the first slot that is free on a
    host that can run it. Time for evaluations and for starting is not included.

    Args:
        run: a queued run.
        ahead: the runs that are claimed before it, in this order.
        hosts: every host.
        rates: agent steps/s by algorithm and environment, for runs that do not train yet.
    """
    slots = {
        candidate.host.id: _slots(candidate, partial(_left_s, rates=rates))
        for candidate in hosts
        if candidate.accepts
    }
    by_id = {candidate.host.id: candidate.host for candidate in hosts}

    def earliest(wanted: Run) -> list[float] | None:
        able = [heap for name, heap in slots.items() if heap and can_run(by_id[name], wanted)]
        return min(able, key=lambda heap: heap[0], default=None)

    for earlier in ahead:
        heap = earliest(earlier)
        if heap is not None:  # otherwise it waits for a host that does not exist, and delays no other run
            heapq.heapreplace(heap, heap[0] + _left_s(earlier, rates))
    heap = earliest(run)
    return heap[0] if heap is not None and math.isfinite(heap[0]) else None


def _slots(active: ActiveHost, left_s: Callable[[Run], float]) -> list[float]:
    """When each slot of a host is free, as a heap of seconds from now."""
    times = [left_s(run) for run in active.runs]
    times += [0.0] * (active.host.slots - len(times))
    # Of a host whose slots have become fewer than its runs, the first runs to end free none.
    return heapq.nlargest(active.host.slots, times)[::-1]


def _left_s(run: Run, rates: Mapping[tuple[str, str], float]) -> float:
    """Training time that is left: 0 while the run stops, the estimate of a run that trains, else the time to
    its nearest limit; infinite if unknown."""
    if run.state == RunState.STOPPING:
        return 0.0
    if run.state == RunState.RUNNING and (left_s := run.time_left_s) is not None:
        return left_s
    stop = run.spec["stop"]
    rate = rates.get((run.algorithm, run.environment))
    left = [math.inf]
    if stop["wall_time_s"]:
        left.append(stop["wall_time_s"] - run.wall_time_s)
    if stop["agent_steps"] and rate:
        left.append((stop["agent_steps"] - run.agent_steps) / rate)
    return max(0.0, min(left))


def _provides(host: Host, run: Run) -> bool:
    return run.command is not None or run.environment in host.environments


def _has_packages(host: Host, run: Run) -> bool:
    return _has_package(host, run) and _extra(run) not in missing_extras(host.versions)


def _has_package(host: Host, run: Run) -> bool:
    """Whether the host has the distributions, in their versions, that algorithm and environment are of."""
    return all(_has(host, package) for package in _packages(run).values())


def _packages(run: Run) -> dict[str, str]:
    """What is of another distribution -> which, as pip installs it."""
    custom = run.spec.get("custom") or {}
    packages = {run.algorithm: run.spec.get("package"), run.environment: custom.get("package")}
    return {what: package for what, package in packages.items() if package}


def _has(host: Host, package: str) -> bool:
    name, _, version = package.partition("==")
    return host.provided.get(name) == version


def _extra(run: Run) -> str | None:
    """The extra that the run's algorithm needs; None without one, or for an algorithm of another version."""
    return ALGORITHMS[run.algorithm].extra if run.algorithm in ALGORITHMS else None


def _no_environment(run: Run) -> str:
    environment = ENVIRONMENTS.get(run.environment)
    extra = environment.extra if environment else None
    hint = f": on a host, {install_command(extra)}" if extra else ""
    return f"no host that may claim it provides the environment {run.environment}{hint}"


def _no_packages(run: Run, hosts: Sequence[Host]) -> str:
    for what, package in _packages(run).items():
        if any(_has(host, package) for host in hosts):
            continue
        if run.command is not None:
            changed = [host.id for host in hosts if package.partition("==")[0] in host.provided]
            otherwise = f" ({', '.join(changed)} now: otherwise)" if changed else ""
            return (
                f"no host that may claim it has the command {run.command} as it was when the run was created"
                f"{otherwise}: start another run, or define it so again in a host's file"
            )
        name = package.partition("==")[0]
        others = "".join(f"; {host.id} has {host.versions[name]}" for host in hosts if name in host.versions)
        return (
            f"no host that may claim it has {package}, which {what} is of{others}: on a host, "
            f"pip install '{package}'"
        )
    extra = _extra(run)
    if extra is None:
        return f"no host that may claim it has both {' and '.join(_packages(run).values())}"
    return (
        f"no host that may claim it has {PACKAGES[extra]}, which {run.algorithm} needs: on a host, "
        f"{install_command(extra)}"
    )


def _has_device(host: Host, run: Run) -> bool:
    return run.spec["device"] != "cuda" or any(device.startswith("cuda") for device in host.devices)


def _free_memory_bytes(host: Host) -> float:
    claimable_bytes: int | None = host.load.get("claimable_memory_bytes")
    if claimable_bytes is not None:
        return claimable_bytes
    return host.memory_bytes - float(host.load.get("memory_used_bytes") or 0.0)


def _too_large(run: Run, memory_bytes: int) -> str:
    reason = (
        f"it may need {run.memory_estimate_bytes / GIB:.1f} GiB of memory, and the largest host that may "
        f"claim it has {memory_bytes / GIB:.1f} GiB"
    )
    try:
        return f"{reason}: {memory_advice(parse_run_spec(run.spec), memory_bytes)}"
    except InvalidSpec:  # stored by a version with other config fields
        return reason


_NEEDS: list[tuple[Callable[[Host, Run], bool], Callable[[Run, Sequence[Host]], str]]] = [
    (
        _provides,
        lambda run, _: _no_environment(run),
    ),
    (
        _has_packages,
        _no_packages,
    ),
    (
        _has_device,
        lambda *_: "it requires a GPU, and no host that may claim it has one",
    ),
    (
        lambda host, run: run.memory_estimate_bytes <= host.memory_bytes,
        lambda run, hosts: _too_large(run, max(host.memory_bytes for host in hosts)),
    ),
]
"""Conditions on the hosts that serve a run, in order, each with the reason if none meets it."""
