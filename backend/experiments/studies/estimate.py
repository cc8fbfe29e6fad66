"""What a study costs: before it starts, and what is left of it."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from backend.db import Run, deadline
from backend.experiments.cells.rows import CellRow, PlannedCell
from backend.experiments.cells.sampling import random_settings
from backend.experiments.experiments import repository, service
from backend.experiments.experiments.study import prepare
from backend.experiments.specs.study import StudySpec
from backend.fleet.hosts import repository as hosts
from backend.fleet.hosts.service import active_hosts
from backend.fleet.hosts.service import warnings as host_warnings
from backend.specs.algorithms import ALGORITHMS
from backend.specs.run import RunSpec
from backend.specs.run_fields import RunOptions
from backend.specs.states import RunState

START_S = 5.0
"""Time of a run's start and end, in addition to its training."""
RUN_BYTES = 3 * 2**20
"""Assumed disk space of a run, if no run of its kind has finished here."""

Kind = tuple[str, str]
"""Algorithm and environment."""


@dataclass(frozen=True)
class CostEstimate:
    """The cost of some runs."""

    n_runs: int
    n_reused: int
    """Runs that exist already."""
    agent_steps: int | None
    """None if a run's are not known: it is limited by score alone, or by time at an unmeasured rate."""
    time_s: float | None
    """On this installation's hosts; None if a run's is not known: it is limited by score alone, or by agent
    steps at an unmeasured rate."""
    memory_bytes: int
    """Upper estimate, of the run that needs the most."""
    processes: int
    """Processes that act, learn or hold parameters, of the run that has the most."""
    disk_bytes: int
    warnings: list[str]
    """Why no host can run some of them well."""
    unmeasured: list[Kind]
    """Kinds of runs whose rate was not measured here."""
    slots: int
    """Runs that this installation's hosts train at the same time."""


def estimate(session: Session, spec: StudySpec, lease_s: float) -> CostEstimate:
    """The cost of a study; nothing is stored. It ends with its request: 10,000 cells take seconds.

    Raises:
        Invalid: with one problem per invalid field.
    """
    spec, planned, _ = prepare(session, spec, deadline.check)
    equal = repository.finished_runs(session, service.kinds_of(planned))
    return of_cells(session, planned, equal, concurrency=spec.concurrency, lease_s=lease_s)


def of_cells(
    session: Session,
    planned: Sequence[PlannedCell],
    equal: Mapping[str, Sequence[str]],
    *,
    concurrency: int,
    lease_s: float,
) -> CostEstimate:
    """The cost of cells, given the finished runs that can fill them by their keys."""
    free = Counter({key: len(run_ids) for key, run_ids in equal.items()})
    wanted = Counter(cell.key for cell in planned)
    n_reused = sum((free & wanted).values())
    to_start = _without(planned, free)
    kinds = {(cell.spec.algorithm, cell.environment) for cell in planned}
    rates = hosts.recent_rates(session, kinds)
    sizes = repository.recent_sizes(session, kinds)
    first = planned[0].spec
    slots = _slots(session, first.host, first.queue, concurrency, lease_s)
    seconds = [_seconds(cell.spec, rates) for cell in to_start]
    known = [time_s for time_s in seconds if time_s is not None]
    steps = [_agent_steps(cell.spec, rates) for cell in to_start]
    different = [*{(cell.arm, cell.environment): cell.spec for cell in planned}.values()]
    return CostEstimate(
        n_runs=len(planned),
        n_reused=n_reused,
        agent_steps=None if None in steps else sum(n for n in steps if n is not None),
        time_s=_total_s(known, slots) if len(known) == len(seconds) else None,
        memory_bytes=max(spec.memory_estimate_bytes for spec in different),
        processes=max(max(spec.config.env_processes, spec.config.ray_processes) for spec in different),
        warnings=_warnings(session, planned),
        disk_bytes=sum(sizes.get((cell.spec.algorithm, cell.environment), RUN_BYTES) for cell in to_start),
        unmeasured=sorted(
            {
                (cell.spec.algorithm, cell.environment)
                for cell, time_s in zip(to_start, seconds, strict=True)
                if time_s is None and (cell.spec.algorithm, cell.environment) not in rates
            }
        ),
        slots=slots,
    )


def _warnings(session: Session, planned: Sequence[PlannedCell]) -> list[str]:
    """Why no host can run some of the cells well; one cell stands for all of its arm."""
    of_arms = {cell.arm: cell.spec for cell in planned}.values()
    by_algorithm: dict[str, list[Run]] = {}
    for spec in of_arms:
        row = Run(
            environment=spec.environment,
            queue=spec.queue,
            wanted_host=spec.host,
            spec=spec.model_dump(mode="json"),
            memory_estimate_bytes=spec.memory_estimate_bytes,
        )
        by_algorithm.setdefault(spec.algorithm, []).append(row)
    return [
        f"{ALGORITHMS[algorithm].title}: {warning}"
        for algorithm, rows in by_algorithm.items()
        for warning in host_warnings(session, rows)
    ]


def time_left_s(session: Session, spec: StudySpec, cells: Sequence[CellRow], lease_s: float) -> float | None:
    """Time until the runs of a study have ended; None if it is not known."""
    kinds = {(arm.algorithm, environment) for arm in spec.arms for environment in spec.environments}
    rates = hosts.recent_rates(session, kinds)
    limits_of = _drawn_limits(spec)
    left: list[float] = []
    for cell in cells:
        if cell.error is not None or (cell.started and (cell.state is None or cell.state in _AT_REST)):
            continue
        arm = spec.arms[cell.arm]
        stop = arm.stop or spec.run.get("stop")
        stop = {**(stop if isinstance(stop, dict) else {}), **limits_of(cell.draw)}
        steps, time_s = stop.get("agent_steps"), stop.get("wall_time_s")
        rate = rates.get((arm.algorithm, cell.environment))
        limits = []
        if isinstance(steps, int) and rate is not None:
            limits.append(max(0, steps - cell.agent_steps) / rate)
        if isinstance(time_s, int | float):
            limits.append(max(0.0, time_s - cell.wall_time_s))
        if not limits:
            return None
        left.append(min(limits) + START_S)
    options = RunOptions.model_validate(
        {name: spec.run[name] for name in ("host", "queue") if name in spec.run}
    )
    return _total_s(left, _slots(session, options.host, options.queue, spec.concurrency, lease_s))


def _drawn_limits(spec: StudySpec) -> Callable[[int], Mapping[str, Any]]:
    """The limits that a draw has at random, by its number."""
    prefix = "stop."
    if not any(path.startswith(prefix) for path in spec.draws.space):
        return lambda _: {}
    drawn = random_settings(spec.draws.space, spec.draws.n, spec.draws.sampler_seed)

    def limits_of(draw: int) -> Mapping[str, Any]:
        settings = drawn[draw] if draw < len(drawn) else {}
        return {
            path.removeprefix(prefix): value for path, value in settings.items() if path.startswith(prefix)
        }

    return limits_of


_AT_REST = frozenset({RunState.FINISHED, RunState.STOPPED, RunState.FAILED})


def _without(planned: Sequence[PlannedCell], free: Counter[str]) -> list[PlannedCell]:
    """The cells that no run which exists can fill."""
    left, to_start = Counter(free), []
    for cell in planned:
        if left[cell.key] > 0:
            left[cell.key] -= 1
        else:
            to_start.append(cell)
    return to_start


def _slots(session: Session, wanted: str | None, queue: str, concurrency: int, lease_s: float) -> int:
    """Runs of a queue, or of the host that is wanted, that are trained at the same time."""
    slots = sum(
        active.host.slots
        for active in active_hosts(session, lease_s)
        if active.alive
        and not active.host.draining
        and (queue in active.host.queues if wanted is None else active.host.id == wanted)
    )
    return max(1, min(slots, concurrency))


def _seconds(spec: RunSpec, rates: Mapping[Kind, float]) -> float | None:
    """Time of a run on a slot; None if it is not known."""
    rate = rates.get((spec.algorithm, spec.environment))
    limits = []
    if spec.stop.wall_time_s is not None:
        limits.append(spec.stop.wall_time_s)
    if spec.stop.agent_steps is not None and rate is not None:
        limits.append(spec.stop.agent_steps / rate)
    return min(limits) + START_S if limits else None


def _agent_steps(spec: RunSpec, rates: Mapping[Kind, float]) -> int | None:
    """Agent steps of a run; None if they are not known."""
    rate = rates.get((spec.algorithm, spec.environment))
    limits = [] if spec.stop.agent_steps is None else [spec.stop.agent_steps]
    if spec.stop.wall_time_s is not None and rate is not None:
        limits.append(round(spec.stop.wall_time_s * rate))
    return min(limits, default=None)


def _total_s(seconds: Sequence[float], slots: int) -> float:
    """Time of several runs, of which `slots` train at the same time."""
    return max([sum(seconds) / slots, *seconds], default=0.0)
