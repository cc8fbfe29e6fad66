"""Experiments and their cells in the database, and the runs that can fill a cell."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, NamedTuple

from sqlalchemy import func, select, tuple_, update
from sqlalchemy.orm import Session

from backend import __version__
from backend.db import (
    Attempt,
    Checkpoint,
    Evaluation,
    Experiment,
    ExperimentCell,
    LiveSettings,
    Run,
    Transition,
    keyset,
)
from backend.db.experiment import ExperimentKind
from backend.experiments.cells.equal_runs import key_of_stored
from backend.experiments.cells.planning import CHANGED
from backend.experiments.cells.repository import IS_STARTED, changed_cells, chunks
from backend.experiments.cells.rows import standing
from backend.specs.annealing import RESUMED_WITH_OTHER_RATES
from backend.specs.run_fields import CALLBOARD
from backend.specs.states import ENDED, RunState

_RECENT_RUNS = 200


class SourceRun(NamedTuple):
    """What a study that is made of runs needs of each."""

    id: str
    name: str
    origin: str
    state: RunState
    demo: bool
    forked_at_agent_steps: int | None
    seed: int
    spec: dict[str, Any]


@dataclass
class CellCounts:
    """How many cells an experiment has."""

    cells: Counter[str] = field(default_factory=Counter)
    """All by the state of their run; `waiting` before the start, `deleted` without the run, `changed` if it
    has ended and was changed, `invalid` if none can be started."""
    runs: Counter[str] = field(default_factory=Counter)
    """Those that have had a run, by its state; `deleted` and `changed` as above."""
    n_eliminated: int = 0
    """Those of eliminated configurations that have had a run."""


def add(session: Session, experiment: Experiment) -> None:
    """Store a new experiment."""
    session.add(experiment)
    session.flush()


def add_cells(session: Session, cells: Sequence[ExperimentCell]) -> None:
    """Store new cells."""
    session.add_all(cells)
    session.flush()


def get(session: Session, row_id: str, *, for_update: bool = False) -> Experiment | None:
    """The experiment, or None. `for_update` locks its row until the end of the transaction."""
    return session.get(Experiment, row_id, with_for_update=for_update or None, populate_existing=for_update)


def page(
    session: Session,
    kind: ExperimentKind,
    *,
    definition: str | None = None,
    custom: bool | None = None,
    run_id: str | None = None,
    limit: int,
    cursor: str | None,
) -> tuple[list[Experiment], str | None]:
    """One page of sweeps or studies, latest first; of one definition, only with or without one, or only those
    of which a run fills a cell, if given."""
    query = select(Experiment).where(Experiment.kind == kind)
    if run_id is not None:
        of_run = select(ExperimentCell.experiment_id).where(ExperimentCell.run_id == run_id)
        query = query.where(Experiment.id.in_(of_run))
    if definition is not None:
        query = query.where(Experiment.definition == definition)
    if custom is not None:
        query = query.where(Experiment.definition.is_(None) if custom else Experiment.definition.is_not(None))
    return keyset.page(
        session,
        query,
        by=Experiment.created_at,
        row_id=Experiment.id,
        descending=True,
        limit=limit,
        cursor=cursor,
    )


def of_definitions(session: Session, limit: int) -> dict[str, list[Experiment]]:
    """The latest studies made of each definition, at most `limit` of each, latest first."""
    place = func.row_number().over(
        partition_by=Experiment.definition, order_by=(Experiment.created_at.desc(), Experiment.id)
    )
    placed = select(Experiment.id, place.label("place")).where(Experiment.definition.is_not(None)).subquery()
    query = (
        select(Experiment)
        .join(placed, placed.c.id == Experiment.id)
        .where(placed.c.place <= limit)
        .order_by(Experiment.created_at.desc(), Experiment.id)
    )
    by_definition: dict[str, list[Experiment]] = defaultdict(list)
    for study in session.scalars(query):
        by_definition[study.definition or ""].append(study)
    return by_definition


def counts(session: Session, row_ids: Collection[str]) -> dict[str, CellCounts]:
    """The cells of each experiment by what became of them."""
    has_error = ExperimentCell.error.is_not(None)
    query = (
        select(
            ExperimentCell.experiment_id,
            IS_STARTED.label("is_started"),
            has_error.label("has_error"),
            ExperimentCell.run_id.is_not(None).label("has_run"),
            Run.state,
            func.count(),
        )
        .join(Experiment, Experiment.id == ExperimentCell.experiment_id)
        .outerjoin(Run, Run.id == ExperimentCell.run_id)
        .where(ExperimentCell.experiment_id.in_(row_ids))
        .group_by(ExperimentCell.experiment_id, "is_started", "has_error", "has_run", Run.state)
    )
    by_id = {row_id: CellCounts() for row_id in row_ids}
    for row_id, started, error, has_run, state, n in session.execute(query):
        counted = by_id[row_id]
        counted.cells[standing(started=started, has_error=error, state=state)] += n
        if started or has_run:
            counted.runs[state or "deleted"] += n
            counted.n_eliminated += n if error else 0
    for row_id, _, ended in changed_cells(session, row_ids):
        if ended in ENDED:
            for by_state in (by_id[row_id].cells, by_id[row_id].runs):
                by_state[ended] -= 1
                by_state[CHANGED] += 1
    return by_id


def configuration_counts(session: Session, row_ids: Collection[str]) -> dict[str, tuple[int, int]]:
    """The numbers of configurations of each sweep: all, and those that are not eliminated."""
    query = (
        select(
            ExperimentCell.experiment_id,
            func.count(),
            func.count().filter(ExperimentCell.error.is_(None)),
        )
        .where(ExperimentCell.experiment_id.in_(row_ids), ExperimentCell.draw == 0)
        .group_by(ExperimentCell.experiment_id)
    )
    return {row_id: (n, n_active) for row_id, n, n_active in session.execute(query)}


def configurations(session: Session, sweep_id: str) -> Sequence[ExperimentCell]:
    """The first cell of each configuration of a sweep, by its number: it has the settings of all."""
    query = select(ExperimentCell).where(ExperimentCell.experiment_id == sweep_id, ExperimentCell.draw == 0)
    return session.scalars(query.order_by(ExperimentCell.arm)).all()


def eliminate(session: Session, sweep_id: str, configuration: int, reason: str | None) -> None:
    """Let no further run of a configuration start for this reason; None: let them start again."""
    session.execute(
        update(ExperimentCell)
        .where(ExperimentCell.experiment_id == sweep_id, ExperimentCell.arm == configuration)
        .values(error=reason)
    )


def rows(session: Session, row_id: str, numbers: Collection[int]) -> dict[int, ExperimentCell]:
    """The rows of some cells, by number."""
    query = select(ExperimentCell).where(
        ExperimentCell.experiment_id == row_id, ExperimentCell.number.in_(numbers)
    )
    return {cell.number: cell for cell in session.scalars(query)}


def page_of_cells(
    session: Session, row_id: str, *, limit: int, cursor: str | None
) -> tuple[list[ExperimentCell], dict[str, Run], str | None]:
    """One page of cells by number, their runs by id, and the cursor of the next page."""
    cells, next_cursor = keyset.page(
        session,
        select(ExperimentCell).where(ExperimentCell.experiment_id == row_id),
        by=ExperimentCell.number,
        row_id=ExperimentCell.number,
        descending=False,
        limit=limit,
        cursor=cursor,
    )
    run_ids = [cell.run_id for cell in cells if cell.run_id]
    runs = {run.id: run for run in session.scalars(select(Run).where(Run.id.in_(run_ids)))}
    return cells, runs, next_cursor


def all_cells(session: Session, row_id: str) -> list[tuple[ExperimentCell, Run | None]]:
    """Every cell with its run, by number."""
    query = (
        select(ExperimentCell, Run)
        .outerjoin(Run, Run.id == ExperimentCell.run_id)
        .where(ExperimentCell.experiment_id == row_id)
        .order_by(ExperimentCell.number)
    )
    return [(row[0], row[1]) for row in session.execute(query)]


def provenances(session: Session, run_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What trained the latest attempt of each run, if that is known."""
    by_run: dict[str, dict[str, Any]] = {}
    for ids in chunks(run_ids):
        query = (
            select(Attempt.run_id, Attempt.provenance)
            .where(Attempt.run_id.in_(ids), Attempt.provenance.is_not(None))
            .order_by(Attempt.number)
        )
        by_run |= {run_id: provenance for run_id, provenance in session.execute(query) if provenance}
    return by_run


def running(session: Session) -> list[str]:
    """Ids of the running experiments."""
    return list(
        session.scalars(select(Experiment.id).where(Experiment.state == "running").order_by(Experiment.id))
    )


def restart(session: Session, row_id: str, numbers: Collection[int]) -> None:
    """Mark these cells as not started."""
    for chunk in chunks(sorted(numbers)):
        session.execute(
            update(ExperimentCell)
            .where(ExperimentCell.experiment_id == row_id, ExperimentCell.number.in_(chunk))
            .values(started=False, reused=False, run_id=None, error=None)
        )


def cell_of_run(session: Session, row_id: str, run_id: str) -> int | None:
    """Number of the cell of an experiment that a run fills; None without one."""
    query = select(ExperimentCell.number).where(
        ExperimentCell.experiment_id == row_id, ExperimentCell.run_id == run_id
    )
    return session.scalars(query).first()


def mark_started(session: Session, row_id: str, numbers: Collection[int], *, started: bool) -> None:
    """Mark cells that keep their runs as started, or as waiting for their turn to go on."""
    for chunk in chunks(sorted(numbers)):
        session.execute(
            update(ExperimentCell)
            .where(ExperimentCell.experiment_id == row_id, ExperimentCell.number.in_(chunk))
            .values(started=started)
        )


def hand_over(session: Session, row_id: str, run_ids: Collection[str]) -> set[str]:
    """Give runs of an experiment to another running one that has them too; returns these runs."""
    new_owners: dict[str, ExperimentCell] = {}
    for chunk in chunks(sorted(run_ids)):
        query = (
            select(ExperimentCell)
            .join(Experiment, Experiment.id == ExperimentCell.experiment_id)
            .where(ExperimentCell.run_id.in_(chunk), Experiment.id != row_id, Experiment.state == "running")
            .order_by(Experiment.id)
        )
        for cell in session.scalars(query):
            new_owners.setdefault(cell.run_id or "", cell)
        session.execute(
            update(ExperimentCell)
            .where(ExperimentCell.experiment_id == row_id, ExperimentCell.run_id.in_(new_owners))
            .values(reused=True)
        )
    for cell in new_owners.values():
        cell.reused = False
    session.flush()
    return set(new_owners)


def take_over(session: Session, row_id: str, run_ids: Collection[str]) -> None:
    """Make an experiment the owner of these runs of its cells, except those that another running one has."""
    for chunk in chunks(sorted(run_ids)):
        of_others = (
            select(ExperimentCell.run_id)
            .join(Experiment, Experiment.id == ExperimentCell.experiment_id)
            .where(ExperimentCell.run_id.in_(chunk), Experiment.id != row_id, Experiment.state == "running")
            .where(ExperimentCell.reused.is_(False))
        )
        kept = set(session.scalars(of_others))
        taken = [run_id for run_id in chunk if run_id not in kept]
        is_taken = (ExperimentCell.experiment_id == row_id, ExperimentCell.run_id.in_(taken))
        session.execute(update(ExperimentCell).where(*is_taken).values(reused=False))


def remove(session: Session, experiment: Experiment) -> None:
    """Delete an experiment's rows; its runs stay."""
    session.delete(experiment)
    session.flush()


def source_runs(session: Session, run_ids: Sequence[str]) -> dict[str, SourceRun]:
    """Those of the runs that exist, by id."""
    by_id: dict[str, SourceRun] = {}
    columns = [getattr(Run, name) for name in SourceRun._fields]
    for ids in chunks(run_ids):
        rows = session.execute(select(*columns).where(Run.id.in_(ids)))
        by_id |= {row[0]: SourceRun._make(row) for row in rows}
    return by_id


def finished_runs(session: Session, kinds: Iterable[tuple[str, str, int]]) -> dict[str, list[str]]:
    """The finished runs of this version that can fill a cell, by key, the oldest first.

    Args:
        session: a session.
        kinds: algorithm, environment and seed of each cell.
    """
    specs: dict[str, dict[str, object]] = {}
    for chunk in chunks(sorted(set(kinds))):
        query = select(Run.id, Run.spec).where(
            tuple_(Run.algorithm, Run.environment, Run.seed).in_(chunk),
            Run.state == RunState.FINISHED,
            Run.origin == CALLBOARD,
            Run.demo.is_(False),
            Run.forked_at_agent_steps.is_(None),  # a fork may outlive its parent
        )
        specs |= dict(session.execute(query).all())
    if not specs:
        return {}
    unusable = _trained_otherwise(session, specs)
    by_key: dict[str, list[str]] = defaultdict(list)
    for run_id in sorted(specs.keys() - unusable):
        by_key[key_of_stored(specs[run_id])].append(run_id)
    return by_key


def _trained_otherwise(session: Session, run_ids: Collection[str], *, has_ended: bool = True) -> set[str]:
    """Those of the runs whose settings were changed while they trained, or one of whose attempts had an
    engine of another version, or of one that is not known; of runs that have not ended, it may become so."""
    unusable: set[str] = set()
    for ids in chunks(sorted(run_ids)):
        changed = select(LiveSettings.run_id).where(
            LiveSettings.run_id.in_(ids), LiveSettings.agent_steps.is_not(None)
        )
        unusable |= set(session.scalars(changed))
        reannealed = select(Transition.run_id).where(
            Transition.run_id.in_(ids), Transition.reason == RESUMED_WITH_OTHER_RATES
        )
        unusable |= set(session.scalars(reannealed))
        versions: dict[str, set[str | None]] = defaultdict(set)
        attempts = select(Attempt.run_id, Attempt.provenance).where(Attempt.run_id.in_(ids))
        for run_id, provenance in session.execute(attempts):
            versions[run_id].add((provenance or {}).get("version"))
        known = {__version__} if has_ended else {__version__, None}
        unusable |= {
            run_id for run_id in ids if not versions[run_id] <= known or (has_ended and not versions[run_id])
        }
    return unusable


def active_runs(session: Session, row_id: str, keys: Collection[str]) -> dict[str, str]:
    """The runs of other studies that have not ended and are not to stop, by key."""
    query = (
        select(ExperimentCell.key, Run.id, Run.spec)
        .join(Run, Run.id == ExperimentCell.run_id)
        .join(Experiment, Experiment.id == ExperimentCell.experiment_id)
        .where(
            Experiment.kind == "study",
            ExperimentCell.key.in_(keys),
            ExperimentCell.experiment_id != row_id,
            ExperimentCell.reused.is_(False),
            Run.state.not_in([*ENDED, RunState.STOPPING]),
            Run.stop_requested.is_(None),
        )
        .order_by(Run.id.desc())
    )
    # Since it was planned, a run may have been resumed with other limits, or its settings changed.
    equal = [(key, run_id) for key, run_id, spec in session.execute(query) if key_of_stored(spec) == key]
    unusable = _trained_otherwise(session, {run_id for _, run_id in equal}, has_ended=False)
    return {key: run_id for key, run_id in equal if run_id not in unusable}


def evaluation_scores(session: Session, row_id: str, protocol: str | None) -> dict[str | None, float | None]:
    """By run, the mean return of its latest evaluation by its own engine, or under a protocol; of several at
    the same agent steps that of its engine, and then the first: a later one may be of the best parameters."""
    query = (
        select(Evaluation.run_id, Evaluation.mean_return)
        .join(ExperimentCell, ExperimentCell.run_id == Evaluation.run_id)
        .where(
            ExperimentCell.experiment_id == row_id,
            Evaluation.superseded.is_(False),
            Evaluation.mean_return.is_not(None),
            Evaluation.attempt.is_not(None) if protocol is None else Evaluation.protocol == protocol,
        )
        .order_by(
            Evaluation.attempt.is_not(None),
            Evaluation.agent_steps,
            Evaluation.requested_at.desc(),
            Evaluation.id.desc(),
        )
    )
    # Of several rows of a run the last one stays.
    return dict(session.execute(query).all())


def recent_sizes(session: Session, kinds: Collection[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """Median disk space of recent finished runs, by algorithm and environment: checkpoints and event logs."""
    recent = (
        select(Run.id, Run.algorithm, Run.environment)
        .where(
            tuple_(Run.algorithm, Run.environment).in_(kinds),
            Run.state == RunState.FINISHED,
            Run.demo.is_(False),
        )
        .order_by(Run.id.desc())
        .limit(_RECENT_RUNS)
        .subquery()
    )
    checkpoints = (
        select(Checkpoint.run_id, func.sum(Checkpoint.size_bytes).label("bytes"))
        .where(Checkpoint.run_id.in_(select(recent.c.id)), Checkpoint.removed.is_(False))
        .group_by(Checkpoint.run_id)
        .subquery()
    )
    logs = (
        select(
            Attempt.run_id,
            func.sum(func.coalesce(Attempt.log_bytes, Attempt.log_offset_bytes)).label("bytes"),
        )
        .where(Attempt.run_id.in_(select(recent.c.id)))
        .group_by(Attempt.run_id)
        .subquery()
    )
    rows = session.execute(
        select(recent.c.algorithm, recent.c.environment, checkpoints.c.bytes, logs.c.bytes)
        .outerjoin(checkpoints, checkpoints.c.run_id == recent.c.id)
        .outerjoin(logs, logs.c.run_id == recent.c.id)
    )
    by_kind: dict[tuple[str, str], list[int]] = defaultdict(list)
    for algorithm, environment, of_checkpoints, of_logs in rows:
        by_kind[algorithm, environment].append(int(of_checkpoints or 0) + int(of_logs or 0))
    return {kind: int(median(sizes)) for kind, sizes in by_kind.items()}
