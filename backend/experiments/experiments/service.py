"""The life of an experiment: what users may do with it, and the reconciler that starts what it needs next."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from sqlalchemy.orm import Session

from backend.db import Experiment, ExperimentCell
from backend.db.alert import AlertKind, record_signal
from backend.db.base import new_id
from backend.db.changes import record_change
from backend.db.clock import database_now
from backend.db.engine import UnitOfWork
from backend.db.experiment import ExperimentKind, ExperimentState
from backend.experiments.cells import repository as cells
from backend.experiments.cells import tpe
from backend.experiments.cells.equal_runs import key_of_stored
from backend.experiments.cells.planning import Member, Plan, plan
from backend.experiments.cells.rows import CellRow, NewCell, PlannedCell
from backend.experiments.experiments import repository
from backend.experiments.experiments.study import STUDY, pin_start_sets
from backend.experiments.experiments.sweep import SWEEP, next_cells, wants_configuration
from backend.experiments.specs.study import Scale, StudySpec
from backend.experiments.specs.sweep import SweepSpec
from backend.platform.errors import Conflict, Invalid, NotFound, Overwritten
from backend.platform.principals import Principal
from backend.runs.runs import actions
from backend.runs.runs import service as runs
from backend.specs.algorithms import ALGORITHMS
from backend.specs.problems import InvalidSpec
from backend.specs.run_fields import EXTERNAL
from backend.specs.states import ENDED, RunState

MAX_STARTS = 20
"""Runs started in one transaction, so that other writers wait for a moment only."""

KINDS = {"sweep": SWEEP, "study": STUDY}


def create(
    work: UnitOfWork,
    spec: SweepSpec | StudySpec,
    principal: Principal,
    *,
    definition: str | None = None,
    scale: Scale | None = None,
) -> Experiment:
    """Validate every run, store the experiment, and start its first runs.

    Args:
        work: written only after the validation, which may take a while.
        spec: the sweep or study.
        principal: who sends it.
        definition: id of the papers' definition that it is made from.
        scale: scale of the definition.

    Raises:
        Invalid: with one problem per invalid field; nothing is stored.
    """
    kind: ExperimentKind = "sweep" if isinstance(spec, SweepSpec) else "study"
    stored, planned = KINDS[kind].prepare(work.read, spec)
    equal = repository.finished_runs(work.read, kinds_of(planned))
    experiment = Experiment(
        id=new_id(),
        created_at=database_now(work.write),
        created_by=principal.id,
        kind=kind,
        name=spec.name,
        definition=definition,
        scale=scale,
        spec=stored,
        state="running",
        state_reason="created",
        looks=0,
        revision=0,
    )
    repository.add(work.write, experiment)
    _add_cells(work.write, experiment, planned, equal, [])
    touch(work.write, experiment)
    reconcile(work.write, experiment.id)
    return experiment


def kinds_of(planned: Sequence[NewCell]) -> set[tuple[str, str, int]]:
    """Algorithm, environment and seed of each cell that a run can fill which exists."""
    return {
        (cell.spec.algorithm, cell.environment, cell.seed)
        for cell in planned
        if isinstance(cell, PlannedCell)
    }


def get(
    session: Session, kind: ExperimentKind, row_id: str, *, for_update: bool = False, any_spec: bool = False
) -> Experiment:
    """The sweep or study; with `any_spec` also for an update if its specification cannot be read.

    Raises:
        NotFound: there is no such one.
        Conflict: it is for an update, and its specification cannot be read.
    """
    experiment = repository.get(session, row_id, for_update=for_update)
    if experiment is None or experiment.kind != kind:
        raise NotFound(f"{kind} {row_id} does not exist or has been deleted")
    if for_update and not any_spec:
        runs.require_readable(experiment)
    return experiment


def change(session: Session, kind: ExperimentKind, row_id: str, changes: Mapping[str, Any]) -> Experiment:
    """Change fields that can change in any state. Null means no change.

    Raises:
        Overwritten: a field has another value than the one in `expected`.
    """
    experiment = get(session, kind, row_id, for_update=True)
    Overwritten.check(experiment.spec, changes.get("expected") or {})
    values = {name: value for name, value in changes.items() if name != "expected" and value is not None}
    if values:
        _change(session, experiment, values)
    return experiment


def stop(session: Session, kind: ExperimentKind, row_id: str) -> Experiment:
    """Start no further run, and stop those that have not ended, except those that it reuses or that another
    running study has: these go on, and belong to that one.

    Raises:
        Conflict: it has ended.
    """
    experiment = get(session, kind, row_id, for_update=True)
    if experiment.state != "running":
        raise Conflict(f"the {kind} is {experiment.state}: it has already ended")
    _set_state(session, experiment, "stopped", "stopped on request")
    open_runs = {
        cell.run_id
        for cell in cells.rows(session, row_id)
        if cell.run_id and not cell.reused and cell.state not in ENDED
    }
    others = repository.hand_over(session, row_id, open_runs)
    for run_id in sorted(open_runs - others):  # in the order of ids, as bulk actions lock runs
        with suppress(Conflict, NotFound):  # it has ended, or been deleted, in the meantime
            actions.stop(session, run_id, kill=False)
    touch(session, experiment)
    return experiment


def retry(session: Session, kind: ExperimentKind, row_id: str) -> Experiment:
    """Queue failed and stopped runs again, as many as may be open at a time and the others in their turn,
    start others in place of deleted and changed ones, and continue the experiment.

    Raises:
        Conflict: there is nothing to do, or some runs are still stopping.
        Invalid: a start set of its evaluations has been deleted.
    """
    experiment = get(session, kind, row_id, for_update=True)
    if kind == "study":
        pin_start_sets(session, STUDY.parse(experiment.spec), experiment.spec.get("custom") or {})
    n_retried, n_left = _retry_cells(session, experiment)
    if not n_retried and experiment.state != "stopped":
        raise Conflict(
            "all of its runs that failed, or were stopped, deleted or changed, are of configurations that "
            "are worse than another: they stay as they are"
            if n_left
            else "none of its runs has failed, was stopped, deleted or changed"
        )
    _set_state(session, experiment, "running", f"{n_retried} runs retried")
    touch(session, experiment)
    return experiment


def extend(work: UnitOfWork, kind: ExperimentKind, row_id: str, extension: Mapping[str, Any]) -> Experiment:
    """Add cells, or replace the budget, and continue the experiment.

    The runs of a stopped one are queued again.

    Args:
        work: the sessions.
        kind: what it is.
        row_id: its id.
        extension: new values of some of what the kind can extend.

    Raises:
        Invalid: the extended experiment is not valid; nothing is changed.
        Conflict: some of its runs are still stopping.
    """
    if not extension:
        raise Invalid.field("body", f"must have at least one of {', '.join(KINDS[kind].extensible)}")
    writing = work.write
    experiment = get(writing, kind, row_id, for_update=True)
    rows = cells.rows(writing, row_id)
    stored, new = KINDS[kind].extend(work.read, experiment, rows, extension)
    if experiment.state == "stopped":
        _retry_cells(writing, experiment)
    _add_cells(writing, experiment, new, repository.finished_runs(work.read, kinds_of(new)), rows)
    _set_state(writing, experiment, "running", "extended")
    _change(writing, experiment, stored)
    return experiment


def delete(session: Session, kind: ExperimentKind, row_id: str) -> None:
    """Delete an ended experiment; its runs stay.

    Raises:
        Conflict: it is running.
    """
    experiment = get(session, kind, row_id, for_update=True, any_spec=True)
    if experiment.state == "running":
        raise Conflict(f"the {kind} is running: stop it before you delete it")
    record_change(session, kind, row_id, state="deleted")
    repository.remove(session, experiment)


def scored_rows(session: Session, experiment: Experiment) -> list[CellRow]:
    """Every cell by number, with the score that its objective chooses."""
    rows = cells.rows(session, experiment.id)
    if experiment.kind == "study":
        return rows
    if experiment.spec.get("objective") != "evaluation":
        return [replace(row, score=None) if row.is_early else row for row in rows]
    scores = repository.evaluation_scores(session, experiment.id, experiment.spec.get("protocol"))
    return [replace(row, score=scores.get(row.run_id)) for row in rows]


def running(session: Session) -> list[str]:
    """Ids of the running experiments."""
    return repository.running(session)


def is_due(session: Session, row_id: str) -> bool:
    """Whether a running experiment has something to do that this process can do: one with the algorithm of a
    distribution that is not installed here is left to others. Reads only."""
    experiment = repository.get(session, row_id)
    if experiment is None or experiment.state != "running":
        return False
    arms = [experiment.spec["run"]] if experiment.kind == "sweep" else experiment.spec["arms"]
    of_workers = [arm for arm in arms if "command" not in arm and arm.get("origin") != EXTERNAL]
    if not {arm["algorithm"] for arm in of_workers} <= ALGORITHMS.keys():
        return False
    spec = KINDS[experiment.kind].parse(experiment.spec)
    if not _can_sample(spec):
        return False
    due, rows, _ = plan_of(session, experiment, spec)
    return _own(due, spec).changes(experiment.looks) or _wants_configuration(spec, rows)


def reconcile(session: Session, row_id: str) -> bool:
    """Do what a running experiment needs next, at most `MAX_STARTS` runs of it; return whether anything was
    done.

    Its row is locked, so two processes never start the same run.
    """
    experiment = repository.get(session, row_id, for_update=True)
    if experiment is None or experiment.state != "running":
        return False
    kind = KINDS[experiment.kind]
    spec = kind.parse(experiment.spec)
    if not _can_sample(spec):
        return False
    due, rows, configurations = plan_of(session, experiment, spec)
    is_changed = _wants_configuration(spec, rows)
    if is_changed:
        known = [row.settings for row in repository.configurations(session, row_id)]
        _add_cells(session, experiment, next_cells(spec, known, rows), {}, rows)
        touch(session, experiment)
        due, rows, configurations = plan_of(session, experiment, spec)
    due = _own(due, spec)
    if not due.changes(experiment.looks):
        return is_changed
    if kind.eliminates:
        for number, reason in due.eliminated.items():
            repository.eliminate(session, row_id, configurations[number][0], reason)
    by_place = {(row.arm, row.environment, row.draw): row.number for row in rows}
    numbers = [by_place[*configurations[at], draw] for at, draw in due.start[:MAX_STARTS]]
    used = {row.run_id for row in rows if row.run_id}
    _start(session, experiment, spec, [*repository.rows(session, row_id, numbers).values()], used)
    if due.finished is not None:
        has_compared = due.looks > experiment.looks
        reason = "its runs have ended" if has_compared and not kind.eliminates else due.finished
        _set_state(session, experiment, "finished", reason)
    experiment.looks = due.looks
    touch(session, experiment)
    return True


def plan_of(
    session: Session, experiment: Experiment, spec: Any
) -> tuple[Plan, list[CellRow], list[tuple[int, str]]]:
    """What an experiment does next, its cells, and its configurations: arm and environment, by number."""
    rows = scored_rows(session, experiment)
    numbers = {
        place: number
        for number, place in enumerate(dict.fromkeys((row.arm, row.environment) for row in rows))
    }
    members = [
        Member(
            configuration=numbers[row.arm, row.environment],
            draw=row.draw,
            state=row.state,
            score=row.score,
            agent_steps=row.agent_steps,
            is_changed=row.is_changed,
            is_charged=row.started and not row.reused,
        )
        for row in rows
        if row.started or row.error is not None
    ]
    active = {numbers[row.arm, row.environment] for row in rows if row.error is None}
    elapsed_s = (database_now(session) - experiment.created_at).total_seconds()
    limits = KINDS[experiment.kind].limits(spec)
    return plan(limits, active, members, looks=experiment.looks, elapsed_s=elapsed_s), rows, [*numbers]


def _can_sample(spec: SweepSpec | StudySpec) -> bool:
    """Whether this process has what chooses a sweep's configurations."""
    return not isinstance(spec, SweepSpec) or spec.sampler != "tpe" or tpe.is_installed()


def _wants_configuration(spec: SweepSpec | StudySpec, rows: Sequence[CellRow]) -> bool:
    return isinstance(spec, SweepSpec) and wants_configuration(spec, rows)


def _own(due: Plan, spec: SweepSpec | StudySpec) -> Plan:
    """What an experiment does by itself: runs of somebody's script are started in a terminal."""
    return replace(due, start=[]) if isinstance(spec, SweepSpec) and spec.is_of_scripts else due


def _start(
    session: Session, experiment: Experiment, spec: Any, due: Sequence[ExperimentCell], used: set[str]
) -> None:
    """Let the runs of cells go on, fill cells with equal runs that exist, or start runs for them."""
    kind = KINDS[experiment.kind]
    finished: Mapping[str, Sequence[str]] = {}
    active: Mapping[str, str] = {}
    if kind.reuses_runs:
        kinds = {(spec.arms[cell.arm].algorithm, cell.environment, cell.seed) for cell in due}
        finished = repository.finished_runs(session, kinds)
        active = repository.active_runs(session, experiment.id, [cell.key for cell in due])

    def refuse(cell: ExperimentCell, error: str) -> None:
        cell.error = error
        if kind.eliminates:
            repository.eliminate(session, experiment.id, cell.arm, error)

    # Runs that exist come first, in the order of ids, as bulk actions lock runs.
    for cell in sorted(due, key=lambda cell: (cell.run_id is None, cell.run_id or "", cell.number)):
        if cell.run_id is not None:  # it was retried, and waited for its turn
            try:
                actions.resume(session, cell.run_id)
            except Invalid as error:  # its start set has been deleted
                refuse(cell, str(error))
                continue
            except (Conflict, NotFound):  # it has been resumed or deleted in the meantime
                pass
            cell.started = True
            continue
        candidates = [*finished.get(cell.key, []), *([active[cell.key]] if cell.key in active else [])]
        equal = next((run_id for run_id in candidates if run_id not in used), None)
        if equal is not None:
            cell.started, cell.reused, cell.run_id = True, True, equal
            used.add(equal)
            continue
        try:
            run_spec = kind.run_spec(spec, experiment.spec, cell)
            run = runs.create(
                session, run_spec, created_by=experiment.created_by, reason=f"started by {experiment.name}"
            )
        except InvalidSpec as error:  # stored by another version, whose settings were others
            refuse(cell, f"its settings are no longer valid: {error}")
        except Invalid as error:  # its start set has been deleted
            refuse(cell, str(error))
        else:
            # What another version has planned has the settings of this one from here on.
            cell.started, cell.run_id, cell.key = True, run.id, key_of_stored(run.spec)
    session.flush()


def _add_cells(
    session: Session,
    experiment: Experiment,
    planned: Sequence[NewCell],
    equal: Mapping[str, Sequence[str]],
    rows: Sequence[CellRow],
) -> None:
    """Store cells after those that are there; those with an equal finished run have it already.

    The seeds are those of the specification: no run is chosen by its result.
    """
    used = {row.run_id for row in rows if row.run_id}
    eliminated = {}
    if KINDS[experiment.kind].eliminates:
        eliminated = {row.arm: row.error for row in repository.configurations(session, experiment.id)}
    new = []
    for number, cell in enumerate(planned, len(rows)):
        run_id = next((candidate for candidate in equal.get(cell.key, []) if candidate not in used), None)
        if run_id is not None:
            used.add(run_id)
        new.append(
            ExperimentCell(
                experiment_id=experiment.id,
                number=number,
                arm=cell.arm,
                environment=cell.environment,
                draw=cell.draw,
                seed=cell.seed,
                settings=cell.settings,
                key=cell.key,
                started=run_id is not None,
                reused=run_id is not None,
                run_id=run_id,
                error=eliminated.get(cell.arm),
            )
        )
    repository.add_cells(session, new)


def _retry_cells(session: Session, experiment: Experiment) -> tuple[int, int]:
    """Queue failed and stopped runs again, and mark as not started the cells of those for which there is no
    room yet, those without a run, and those with one that was changed. Configurations of a sweep that are
    worse than another stay eliminated, and their runs as they are.

    Returns:
        The number of runs that start again, and that of the failed, stopped, deleted or changed ones of
        eliminated configurations.
    """
    kind = KINDS[experiment.kind]
    spec = kind.parse(experiment.spec)
    is_of_scripts = isinstance(spec, SweepSpec) and spec.is_of_scripts
    rows = scored_rows(session, experiment)
    stopping = sum(row.state == RunState.STOPPING for row in rows)
    if stopping:
        raise Conflict(f"{stopping} of its runs are still stopping: try again when they have stopped")
    scored = {row.arm for row in rows if row.counts and row.score is not None}
    worse = {row.arm for row in rows if row.error and row.arm in scored} if kind.eliminates else set()
    empty: list[CellRow] = []
    ended: list[CellRow] = []
    n_left = 0
    for row in rows:
        is_lost = row.started and row.run_id is None
        is_refused = row.error is not None and not kind.eliminates
        is_of_script = is_of_scripts and row.state in (RunState.FAILED, RunState.STOPPED)
        is_empty = is_lost or is_refused or is_of_script or (row.is_changed and row.state in ENDED)
        if not is_empty and row.state not in (RunState.FAILED, RunState.STOPPED):
            continue
        if row.arm in worse:
            n_left += 1
        else:
            (empty if is_empty else ended).append(row)
    ended.sort(key=lambda row: row.run_id or "")
    n_open = sum(row.state is not None and row.state not in ENDED for row in rows)
    room = max(0, kind.limits(spec).concurrency - n_open)
    now, later = ended[:room], ended[room:]
    n_resumed = 0
    for row in now:
        with suppress(Conflict, NotFound):  # it has just been resumed or deleted
            actions.resume(session, row.run_id or "")
            n_resumed += 1
    repository.restart(session, experiment.id, [row.number for row in empty])
    repository.take_over(session, experiment.id, {row.run_id for row in ended if row.run_id})
    repository.mark_started(session, experiment.id, [row.number for row in now], started=True)
    repository.mark_started(session, experiment.id, [row.number for row in later], started=False)
    if kind.eliminates:
        for arm in {row.arm for row in (*empty, *ended)} - scored:
            repository.eliminate(session, experiment.id, arm, None)
    return len(empty) + n_resumed + len(later), n_left


def _set_state(session: Session, experiment: Experiment, state: ExperimentState, reason: str) -> None:
    """End a locked experiment, or let it run again."""
    if state == "finished":
        kind: AlertKind = "sweep_done" if experiment.kind == "sweep" else "study_done"
        record_signal(session, kind, experiment.id, text=reason)
    experiment.state = state
    experiment.state_reason = reason
    experiment.ended_at = None if state == "running" else database_now(session)


def _change(session: Session, experiment: Experiment, changes: Mapping[str, Any]) -> None:
    """Change fields of a locked experiment, in its columns and in its spec."""
    experiment.spec = {**experiment.spec, **changes}
    experiment.name = experiment.spec["name"]
    touch(session, experiment)


def touch(session: Session, experiment: Experiment) -> None:
    """Bump the revision of a locked experiment; the change is published after the commit."""
    experiment.revision += 1
    record_change(session, experiment.kind, experiment.id, state=experiment.state)
    session.flush()
