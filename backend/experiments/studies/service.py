"""The life of a study: what users may do with it, and the reconciler that starts what it needs next."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from pydantic import ValidationError
from sqlalchemy.orm import Session

from backend.db import Study, StudyCell
from backend.db.base import new_id
from backend.db.changes import record_change
from backend.db.clock import database_now
from backend.db.study import study_spec
from backend.experiments.cells import repository as study_cells
from backend.experiments.cells.equal_runs import key_of_stored
from backend.experiments.cells.protocols import protocols_of
from backend.experiments.cells.rows import CellRow, PlannedCell
from backend.experiments.figures.unfit import differing_protocols, unfit_figures
from backend.experiments.studies import expansion, repository
from backend.experiments.sweeps.planning import Member, Plan, plan
from backend.platform.errors import Conflict, Invalid, NotFound, Overwritten
from backend.platform.principals import Principal
from backend.runs.runs import actions
from backend.runs.runs import service as runs
from backend.specs.problems import InvalidSpec, problems_of
from backend.specs.states import ENDED, RunState
from backend.specs.study import Scale, StudySpec, StudyState

MAX_STARTS = 20
"""Runs started in one transaction, so that other writers wait for a moment only."""

EXTENSIBLE = ("draws", "environments", "budget")
"""What of a study can be extended."""


def create(
    session: Session,
    writing: Session,
    spec: StudySpec,
    principal: Principal,
    *,
    definition: str | None = None,
    scale: Scale | None = None,
) -> Study:
    """Validate every cell, store the study, and start its first runs.

    Args:
        session: a session to read with.
        writing: a session to write with; it takes the write lock only after the validation, which may take
            a while.
        spec: the study.
        principal: who sends it.
        definition: id of the papers' definition that it is made from.
        scale: scale of the definition.

    Raises:
        Invalid: with one problem per invalid field; nothing is stored.
    """
    spec, planned, custom = prepare(session, spec)
    # In the runs' request, so that all runs stay in one group if the study is renamed.
    spec = spec.model_copy(update={"run": spec.run | {"group": spec.run.get("group") or spec.name}})
    equal = repository.finished_runs(session, kinds_of(planned))
    study = Study(
        id=new_id(),
        created_at=database_now(writing),
        created_by=principal.id,
        name=spec.name,
        definition=definition,
        scale=scale,
        spec=spec.model_dump(mode="json") | {"custom": custom},
        state="running",
        state_reason="created",
        revision=0,
    )
    repository.add(writing, study)
    _add_cells(writing, study, planned, equal, first=0, used=set())
    _touch(writing, study)
    reconcile(writing, study.id)
    return study


def prepare(
    session: Session, spec: StudySpec, check: Callable[[], None] = lambda: None
) -> tuple[StudySpec, list[PlannedCell], dict[str, Any]]:
    """A study with its presets resolved, its cells, and the descriptions of its custom environments. `check`
    is called before each cell.

    Raises:
        Invalid: with one problem per invalid field.
    """
    expansion.check(spec)
    spec = expansion.resolve_presets(spec)
    custom = expansion.descriptions(session, spec)
    spec = expansion.pin_start_sets(session, spec, custom)
    planned = expansion.cells(spec, custom, check=check)
    expansion.refuse(unfit_figures(spec, planned))
    return spec, planned, custom


def kinds_of(planned: Sequence[PlannedCell]) -> set[tuple[str, str, int]]:
    """Algorithm, environment and seed of each cell."""
    return {(cell.spec.algorithm, cell.environment, cell.seed) for cell in planned}


def get(session: Session, study_id: str, *, for_update: bool = False) -> Study:
    """The study.

    Raises:
        NotFound: there is no such study.
    """
    study = repository.get(session, study_id, for_update=for_update)
    if study is None:
        raise NotFound(f"study {study_id} does not exist or has been deleted")
    return study


def spec_of(study: Study) -> StudySpec:
    """The specification of a stored study."""
    return study_spec(study.spec)


def change(session: Session, study_id: str, changes: Mapping[str, Any]) -> Study:
    """Change fields that can change in any state. Null means no change.

    Raises:
        Overwritten: a field has another value than the one in `expected`.
    """
    study = get(session, study_id, for_update=True)
    Overwritten.check(study.spec, changes.get("expected") or {})
    values = {name: value for name, value in changes.items() if name != "expected" and value is not None}
    if values:
        _change(session, study, values)
    return study


def stop(session: Session, study_id: str) -> Study:
    """Start no further run, and stop those that have not ended, except those that it reuses or that another
    running study has: these go on, and belong to that one.

    Raises:
        Conflict: the study has ended.
    """
    study = get(session, study_id, for_update=True)
    if study.state != "running":
        raise Conflict(f"the study is {study.state}: it has already ended")
    _set_state(session, study, "stopped", "stopped on request")
    open_runs = [
        cell.run_id
        for cell in study_cells.rows(session, study_id)
        if cell.run_id and not cell.reused and not _member(cell).has_ended
    ]
    others = repository.hand_over(session, study_id, [run_id for run_id in open_runs if run_id])
    for run_id in sorted(set(open_runs) - others):  # in the order of ids, as bulk actions lock runs
        with suppress(Conflict, NotFound):  # it has ended, or been deleted, in the meantime
            actions.stop(session, run_id, kill=False)
    _touch(session, study)
    return study


def retry(session: Session, study_id: str) -> Study:
    """Queue failed and stopped runs again, as many as may be open at a time and the others in their turn,
    fill cells whose run was deleted or changed, and continue the study.

    Raises:
        Conflict: there is nothing to do, or some runs are still stopping.
        Invalid: a start set of its evaluations has been deleted.
    """
    study = get(session, study_id, for_update=True)
    expansion.pin_start_sets(session, spec_of(study), study.spec.get("custom") or {})
    n_retried = _retry_cells(session, study)
    if not n_retried and study.state != "stopped":
        raise Conflict("none of its runs has failed, was stopped, deleted or changed")
    _set_state(session, study, "running", f"{n_retried} runs retried")
    _touch(session, study)
    return study


def extend(session: Session, writing: Session, study_id: str, extension: Mapping[str, Any]) -> Study:
    """Add draws or environments, or replace the budget, and continue the study.

    The runs of a stopped study are queued again.

    Args:
        session: a session to read with.
        writing: a writing session.
        study_id: the study.
        extension: new values of some of `EXTENSIBLE`: `draws` is the number of draws, with those so far;
            `environments` are further ones.

    Raises:
        Invalid: the extended study is not valid; nothing is changed.
        Conflict: some of its runs are still stopping.
    """
    if not extension:
        raise Invalid.field("body", f"must have at least one of {', '.join(EXTENSIBLE)}")
    study = get(writing, study_id, for_update=True)
    before = spec_of(study)
    draws = extension.get("draws") or before.draws.n
    if draws < before.draws.n:
        raise Invalid.field("draws", f"must be at least {before.draws.n}, as now")
    added = list(extension.get("environments") or [])
    changes: dict[str, Any] = {
        "draws": before.draws.model_dump(mode="json") | {"n": draws},
        "environments": [*before.environments, *added],
    }
    if extension.get("budget") is not None:
        changes["budget"] = extension["budget"]
    for at, environment in enumerate(added):
        if before.starts and environment not in before.starts:
            message = "the evaluations start from sets, and this environment has none: start another study"
            raise Invalid.field(f"environments.{at}", message)
    with _naming_fields_of_extension(len(before.environments)):
        try:
            spec = StudySpec.model_validate(before.model_dump(mode="json") | changes)
        except ValidationError as error:
            raise Invalid(problems_of(error)) from None
        # A study of an earlier version may break rules of this one, and its figures cannot be changed.
        expansion.check(spec, expansion.field_problems(before))
        custom = expansion.descriptions(session, spec)
        expansion.pin_start_sets(session, spec, custom)
        planned = expansion.cells(spec, custom, 0 if added else before.draws.n)
    rows = study_cells.rows(writing, study_id)
    known = {(row.arm, row.environment, row.draw) for row in rows}
    if added:
        unfit, extended = unfit_figures(spec, planned), "environments"
    else:  # the new draws may choose another protocol
        protocols = [protocols_of(spec, number) for number in range(len(spec.arms))]
        unfit, extended = differing_protocols(spec, planned, protocols), "draws"
    if unfit:
        raise Invalid.field(extended, "; ".join(f"{field} {text}" for field, text in unfit.items()))
    new = [cell for cell in planned if (cell.arm, cell.environment, cell.draw) not in known]
    if study.state == "stopped":
        _retry_cells(writing, study)
    equal = repository.finished_runs(session, kinds_of(new))
    used = {row.run_id for row in rows if row.run_id}
    _add_cells(writing, study, new, equal, first=len(rows), used=used)
    _set_state(writing, study, "running", "extended")
    _change(writing, study, spec.model_dump(mode="json") | {"custom": custom})
    return study


@contextmanager
def _naming_fields_of_extension(n_environments: int) -> Iterator[None]:
    """Errors in fields of the extended study are in those of the extension: its environments begin after the
    study's own `n_environments`."""

    def name(field: str) -> str:
        section, _, rest = field.partition(".")
        at, _, below = rest.partition(".")
        if section == "environments" and at.isdigit() and int(at) >= n_environments:
            return ".".join(filter(None, [section, str(int(at) - n_environments), below]))
        return "draws" if field == "draws.n" else field

    try:
        yield
    except Invalid as error:
        problems = [problem.model_copy(update={"field": name(problem.field)}) for problem in error.errors]
        raise Invalid(problems) from None


def delete(session: Session, study_id: str) -> None:
    """Delete an ended study; its runs stay.

    Raises:
        Conflict: it is running.
    """
    study = get(session, study_id, for_update=True)
    if study.state == "running":
        raise Conflict("the study is running: stop it before you delete it")
    record_change(session, "study", study.id, state="deleted")
    repository.remove(session, study)


def running(session: Session) -> list[str]:
    """Ids of the running studies."""
    return repository.running(session)


def is_due(session: Session, study_id: str) -> bool:
    """Whether a running study has something to do. Reads only."""
    study = repository.get(session, study_id)
    return study is not None and study.state == "running" and _plan(session, study)[1].changes(0)


def reconcile(session: Session, study_id: str) -> bool:
    """Do what a running study needs next, at most `MAX_STARTS` runs of it; return whether anything was done.

    The study's row is locked, so two processes never start the same run.
    """
    study = repository.get(session, study_id, for_update=True)
    if study is None or study.state != "running":
        return False
    spec, due, cells = _plan(session, study)
    if not due.changes(0):
        return False
    by_place = {(_configuration(spec, cell), cell.draw): cell for cell in cells}
    numbers = [by_place[place].number for place in due.start[:MAX_STARTS]]
    used = {cell.run_id for cell in cells if cell.run_id}
    _start(session, study, spec, [*repository.rows(session, study_id, numbers).values()], used)
    if due.finished is not None:
        ended = "its runs have ended" if due.eliminated or due.looks else due.finished
        _set_state(session, study, "finished", ended)
    _touch(session, study)
    return True


def _start(
    session: Session, study: Study, spec: StudySpec, cells: Sequence[StudyCell], used: set[str]
) -> None:
    """Fill cells with equal runs that exist, or start runs for them."""
    custom = study.spec.get("custom") or {}
    kinds = {(spec.arms[cell.arm].algorithm, cell.environment, cell.seed) for cell in cells}
    finished = repository.finished_runs(session, kinds)
    active = repository.active_runs(session, study.id, [cell.key for cell in cells])
    for cell in sorted(cells, key=lambda cell: cell.number):
        if cell.run_id is not None:  # it was retried, and waited for its turn
            try:
                actions.resume(session, cell.run_id)
            except Invalid as error:  # its start set has been deleted
                cell.error = str(error)
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
            run_spec = expansion.run_spec_of(
                spec, cell.arm, cell.environment, cell.draw, cell.settings, custom
            )
        except InvalidSpec as error:  # stored by another version, whose settings were others
            cell.error = f"its settings are no longer valid: {error}"
            continue
        try:
            run = runs.create(
                session, run_spec, created_by=study.created_by, reason=f"started by {study.name}"
            )
        except Invalid as error:  # its start set has been deleted
            cell.error = str(error)
            continue
        # What another version has planned has the settings of this one from here on.
        cell.started, cell.run_id, cell.key = True, run.id, key_of_stored(run.spec)
    session.flush()


def _add_cells(
    session: Session,
    study: Study,
    planned: Sequence[PlannedCell],
    equal: Mapping[str, Sequence[str]],
    *,
    first: int,
    used: set[str],
) -> None:
    """Store cells; those with an equal finished run have it already.

    The seeds are those of the specification: no run is chosen by its result.
    """
    rows = []
    for number, cell in enumerate(planned, first):
        run_id = next((candidate for candidate in equal.get(cell.key, []) if candidate not in used), None)
        if run_id is not None:
            used.add(run_id)
        rows.append(
            StudyCell(
                study_id=study.id,
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
                error=None,
            )
        )
    repository.add_cells(session, rows)


def _plan(session: Session, study: Study) -> tuple[StudySpec, Plan, list[CellRow]]:
    """The study's specification, what it does next, and its cells."""
    spec = spec_of(study)
    cells = study_cells.rows(session, study.id)
    members = [
        _member(cell, _configuration(spec, cell)) for cell in cells if cell.started or cell.error is not None
    ]
    active = sorted({_configuration(spec, cell) for cell in cells})
    elapsed_s = (database_now(session) - study.created_at).total_seconds()
    return spec, plan(spec, active, members, looks=0, elapsed_s=elapsed_s), cells


def _configuration(spec: StudySpec, cell: CellRow) -> int:
    """The number of an arm on an environment, for the planner: arms of an environment follow each other."""
    return spec.environments.index(cell.environment) * len(spec.arms) + cell.arm


def _member(cell: CellRow, configuration: int = 0) -> Member:
    return Member(
        configuration=configuration,
        seed=cell.draw,
        state=cell.state,
        score=cell.score,
        agent_steps=cell.agent_steps,
        is_charged=not cell.reused and cell.error is None,
    )


def _retry_cells(session: Session, study: Study) -> int:
    """Queue failed and stopped runs again, and mark as not started the cells of those for which there is no
    room yet, those without a run, and those with one that was changed.

    Returns:
        The number of these runs and cells.
    """
    cells = study_cells.rows(session, study.id)
    stopping = sum(cell.state == RunState.STOPPING for cell in cells)
    if stopping:
        raise Conflict(f"{stopping} of its runs are still stopping: try again when they have stopped")
    empty = {
        cell.number
        for cell in cells
        if cell.error or (cell.started and cell.run_id is None) or (cell.is_changed and cell.state in ENDED)
    }
    repository.restart(session, study.id, empty)
    ended = [
        (cell.run_id, cell.number)
        for cell in cells
        if cell.run_id and cell.state in (RunState.FAILED, RunState.STOPPED) and cell.number not in empty
    ]
    n_open = sum(cell.state is not None and cell.state not in ENDED for cell in cells)
    room = max(0, spec_of(study).concurrency - n_open)
    now, later = sorted(ended)[:room], sorted(ended)[room:]
    n_resumed = 0
    for run_id, _ in now:
        with suppress(Conflict, NotFound):  # it has just been resumed or deleted
            actions.resume(session, run_id)
            n_resumed += 1
    repository.take_over(session, study.id, {run_id for run_id, _ in ended})
    repository.mark_started(session, study.id, [number for _, number in now], started=True)
    repository.mark_started(session, study.id, [number for _, number in later], started=False)
    return len(empty) + n_resumed + len(later)


def _set_state(session: Session, study: Study, state: StudyState, reason: str) -> None:
    """End a locked study, or let it run again."""
    study.state = state
    study.state_reason = reason
    study.ended_at = None if state == "running" else database_now(session)


def _change(session: Session, study: Study, changes: Mapping[str, Any]) -> None:
    """Change fields of a locked study, in its columns and in its spec."""
    study.spec = {**study.spec, **changes}
    study.name = study.spec["name"]
    _touch(session, study)


def _touch(session: Session, study: Study) -> None:
    """Bump the revision of a locked study; the change is published after the commit."""
    study.revision += 1
    record_change(session, "study", study.id, state=study.state)
    session.flush()
