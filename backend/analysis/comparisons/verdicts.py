"""Which group is best, whether that is decided, and further seeds of groups."""

from collections.abc import Mapping, Sequence
from itertools import count, islice
from typing import Any

import numpy as np
from sqlalchemy.orm import Session

from backend.analysis.comparisons import repository
from backend.analysis.comparisons.schemas import (
    BestGroup,
    GroupStatistics,
    Improvement,
    MissingSeeds,
    MoreSeeds,
)
from backend.db import Run
from backend.db.engine import UnitOfWork
from backend.fleet.hosts import repository as hosts
from backend.platform.errors import Conflict
from backend.runs.runs import external
from backend.runs.runs import service as runs
from backend.runs.runs.grid import AnySpec
from backend.runs.runs.groups import Brief, GroupedRun, group_key, keys_of
from backend.runs.runs.repository import specs_of
from backend.specs.host_commands import CommandSpec, parse_command_spec
from backend.specs.names import ending_in
from backend.specs.run_fields import EXTERNAL
from backend.specs.states import ENDED
from backend.statistics.estimates import Scores
from backend.statistics.permutation import seeds_to_decide, seeds_to_differ


def scores_of(group: GroupStatistics) -> Scores:
    """The scores of its runs that count."""
    return np.array([run.score for run in group.runs if run.counted and run.score is not None])


def best_groups(
    groups: Sequence[GroupStatistics],
    members: Mapping[str, Sequence[Run]],
    others: Mapping[str, Sequence[Brief]],
    environments: Mapping[str, str],
    baselines: Mapping[str, str],
    improvements: Sequence[Improvement],
    n_comparisons: int,
) -> list[BestGroup]:
    """One for each environment with a score.

    Args:
        groups: the compared groups.
        members: the compared runs of each group.
        others: its further runs.
        environments: by group, what must be equal for scores to be compared.
        baselines: by environment, the group with which the others are compared; empty for all pairs.
        improvements: the comparisons.
        n_comparisons: for how many of them p-values are corrected.
    """
    by_environment: dict[str, list[GroupStatistics]] = {}
    for group in groups:
        if group.n:
            by_environment.setdefault(environments[group.id], []).append(group)
    return [
        _best(
            sorted(scored, key=rank),
            baselines.get(environment),
            improvements,
            n_comparisons,
            members,
            others,
        )
        for environment, scored in by_environment.items()
    ]


def rank(group: GroupStatistics) -> tuple[bool, float]:
    """Groups with runs that broke off stand below: their scores are those of the survivors."""
    value = group.iqm.value if group.iqm else None
    return group.n_broken_off > 0, np.inf if value is None else -value


def _best(
    ranked: Sequence[GroupStatistics],
    baseline: str | None,
    improvements: Sequence[Improvement],
    n_comparisons: int,
    members: Mapping[str, Sequence[Run]],
    others: Mapping[str, Sequence[Brief]],
) -> BestGroup:
    best, *rest = ranked
    rival = next((group for group in rest if group.id == baseline), rest[0] if rest else None)
    seeds, least = None, None
    if rival:
        pair = {best.id, rival.id}
        result = next((result for result in improvements if {result.a, result.b} == pair), None)
        if result is None or not result.better:
            n = n_comparisons or len(rest)
            least = seeds_to_differ(best.n, rival.n, n)
            likely = seeds_to_decide(scores_of(best), scores_of(rival), n)
            seeds = max(least or 0, likely or 0) or None
    return BestGroup(
        environment=best.environment,
        group=best.id,
        rival=rival.id if rival else None,
        seeds=seeds,
        are_fewest=least is not None,
        missing=[
            _missing(group, members[group.id], others[group.id], seeds)
            for group in (best, rival)
            if group and seeds
        ],
    )


def _missing(
    group: GroupStatistics, members: Sequence[Run], others: Sequence[Brief], seeds: int
) -> MissingSeeds:
    counted = {run.run for run in group.runs if run.counted and run.score is not None}
    every: list[GroupedRun] = [*members, *others]
    queued = [run.id for run in every if run.state not in ENDED and run.id not in counted]
    return MissingSeeds(
        group=group.id,
        n=max(0, seeds - group.n - len(queued)),
        n_queued=len(queued),
        run=next((run.id for run in members if _can_be_repeated(run)), None),
    )


def _can_be_repeated(run: Run) -> bool:
    """Whether a run of its specification is one of its group."""
    if run.departures:
        return False
    if run.origin == EXTERNAL:
        return _started(run).get("seed") is not None
    try:
        runs.spec_of(run)
    except Conflict:
        return False
    return True


def _started(run: Run) -> dict[str, Any]:
    """What a run of a host's command was started with; empty for any other run."""
    return run.spec.get("command") or {}


def _command_of(session: Session, run: Run) -> CommandSpec:
    """The specification of a run of a host's command that takes a seed.

    Raises:
        Conflict: no host has the command as it was then.
    """
    started = _started(run)
    offered = hosts.commands(session).get(started["name"])
    if offered is None or offered[0].requirement != run.spec.get("package"):
        raise Conflict(f"no host has the command {started['name']} as it was when {run.name} was started")
    stored = {name: run.spec.get(name) for name in ("queue", "host", "priority", "group", "tags", "notes")}
    given = {name: value for name, value in stored.items() if value is not None}
    request = {"command": started["name"], "definition": offered[0].model_dump(mode="json")}
    return parse_command_spec(
        request | given | {"config": started["config"], "seed": run.seed, "project": run.project}
    )


def add_seeds(work: UnitOfWork, request: Sequence[MoreSeeds], created_by: str) -> list[Run]:
    """Create and queue runs of the configs of these runs, with the lowest seeds that no run of a config has.

    Args:
        work: what is read and written.
        request: a run of each config, and how many.
        created_by: id of the user.

    Raises:
        NotFound: there is no such run.
        Conflict: it is an external run, cannot be read, or its settings changed during training.
    """
    patterns = [runs.get(work.read, item.run) for item in request]
    planned = []
    for run, item in zip(patterns, request, strict=True):
        spec: AnySpec
        if _started(run).get("seed") is not None:
            spec = _command_of(work.read, run)
        else:
            spec = external.trainable_spec(run, "repeat")
        if run.departures:
            raise Conflict(
                f"the settings of {run.name} changed during training: start a run that has them throughout"
            )
        alike = repository.alike(work.read, [run])
        keys = keys_of(alike, specs_of(work.read))
        # A script may add settings to its config: until then its run has another key.
        taken = {run.seed} | {
            other.seed
            for other in alike
            if keys[other.id] == group_key(run)
            or (run.origin == EXTERNAL and other.origin == EXTERNAL and other.state not in ENDED)
        }
        free = islice((seed for seed in count() if seed not in taken), item.n)
        planned += [_with_seed(run, spec, seed) for seed in free]
    return [runs.create(work.write, spec, created_by=created_by) for spec in planned]


def _with_seed(run: Run, spec: AnySpec, seed: int) -> AnySpec:
    """The specification of a run with another seed; a name that a person gave ends in it."""
    name = spec.name and ending_in(f" seed {seed}", spec.name.removesuffix(f" seed {spec.seed}"))
    return spec.model_copy(update={"seed": seed, "name": name, "project": run.project})
