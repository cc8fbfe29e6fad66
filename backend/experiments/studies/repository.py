"""Studies and their cells in the database, and the runs that can fill a cell."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from statistics import median
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import func, or_, select, tuple_, update
from sqlalchemy.orm import Session

from backend import __version__
from backend.db import (
    Attempt,
    Checkpoint,
    Evaluation,
    LiveSettings,
    Run,
    Series,
    Study,
    StudyCell,
    Transition,
    keyset,
)
from backend.experiments.studies.cells import CellRow, standing
from backend.experiments.studies.equal_runs import key_of_stored
from backend.experiments.sweeps.planning import CHANGED
from backend.specs.annealing import RESUMED_WITH_OTHER_RATES
from backend.specs.run_fields import CALLBOARD
from backend.specs.states import ENDED, RunState
from backend.statistics.members import EvaluationScore

T = TypeVar("T")

_IS_STARTED = or_(StudyCell.started, (Study.state != "running") & StudyCell.run_id.is_not(None))
"""Whether a cell no longer waits. In an ended study nothing does, and a run that was to go on stays as it
ended; if the study continues, it waits again."""
_CHUNK = 500
"""Values of one IN, which databases bound."""
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


def add(session: Session, study: Study) -> None:
    """Store a new study."""
    session.add(study)
    session.flush()


def add_cells(session: Session, cells: Sequence[StudyCell]) -> None:
    """Store new cells."""
    session.add_all(cells)
    session.flush()


def get(session: Session, study_id: str, *, for_update: bool = False) -> Study | None:
    """The study, or None. `for_update` locks its row until the end of the transaction."""
    return session.get(Study, study_id, with_for_update=for_update or None, populate_existing=for_update)


def page(
    session: Session,
    *,
    definition: str | None,
    custom: bool | None,
    run_id: str | None,
    limit: int,
    cursor: str | None,
) -> tuple[list[Study], str | None]:
    """One page of studies, latest first; of one definition, only with or without one, or only those of which
    a run fills a cell, if given."""
    query = select(Study)
    if run_id is not None:
        query = query.where(Study.id.in_(select(StudyCell.study_id).where(StudyCell.run_id == run_id)))
    if definition is not None:
        query = query.where(Study.definition == definition)
    if custom is not None:
        query = query.where(Study.definition.is_(None) if custom else Study.definition.is_not(None))
    return keyset.page(
        session, query, by=Study.created_at, row_id=Study.id, descending=True, limit=limit, cursor=cursor
    )


def of_definitions(session: Session, limit: int) -> dict[str, list[Study]]:
    """The latest studies made of each definition, at most `limit` of each, latest first."""
    place = func.row_number().over(
        partition_by=Study.definition, order_by=(Study.created_at.desc(), Study.id)
    )
    placed = select(Study.id, place.label("place")).where(Study.definition.is_not(None)).subquery()
    query = (
        select(Study)
        .join(placed, placed.c.id == Study.id)
        .where(placed.c.place <= limit)
        .order_by(Study.created_at.desc(), Study.id)
    )
    by_definition: dict[str, list[Study]] = defaultdict(list)
    for study in session.scalars(query):
        by_definition[study.definition or ""].append(study)
    return by_definition


def counts(session: Session, study_ids: Collection[str]) -> dict[str, Counter[str]]:
    """The cells of each study by the state of their run; `waiting` before the start, `deleted` without the
    run, `changed` if it has ended and was changed, `invalid` if none can be started."""
    query = (
        select(
            StudyCell.study_id,
            _IS_STARTED.label("is_started"),
            StudyCell.error.is_not(None),
            Run.state,
            func.count(),
        )
        .join(Study, Study.id == StudyCell.study_id)
        .outerjoin(Run, Run.id == StudyCell.run_id)
        .where(StudyCell.study_id.in_(study_ids))
        .group_by(StudyCell.study_id, "is_started", StudyCell.error.is_not(None), Run.state)
    )
    by_study: dict[str, Counter[str]] = {study_id: Counter() for study_id in study_ids}
    for study_id, started, has_error, state, n in session.execute(query):
        by_study[study_id][standing(started=started, has_error=has_error, state=state)] += n
    for study_id, _, ended in _changed(session, study_ids):
        if ended in ENDED:
            by_study[study_id][ended] -= 1
            by_study[study_id][CHANGED] += 1
    return {study_id: +by_state for study_id, by_state in by_study.items()}


def cells(session: Session, study_id: str) -> list[CellRow]:
    """Every cell with its run's state, by number."""
    query = (
        select(
            StudyCell.number,
            StudyCell.arm,
            StudyCell.environment,
            StudyCell.draw,
            _IS_STARTED,
            StudyCell.reused,
            StudyCell.error,
            Run.id,
            Run.state,
            Run.score,
            Run.agent_steps,
            Run.frames,
            Run.wall_time_s,
            Run.revision,
        )
        .join(Study, Study.id == StudyCell.study_id)
        .outerjoin(Run, Run.id == StudyCell.run_id)
        .where(StudyCell.study_id == study_id)
        .order_by(StudyCell.number)
    )
    changed = changed_runs(session, [study_id])
    return [
        CellRow(
            *row[:8],
            None if row[8] is None else RunState(row[8]),
            row[9],
            row[10] or 0,
            row[11] or 0,
            row[12] or 0.0,
            row[13] or 0,
            row[7] in changed,
        )
        for row in session.execute(query)
    ]


def changed_runs(session: Session, study_ids: Collection[str]) -> set[str]:
    """Runs of studies that do not train as planned: resumed with another limit, or changed live."""
    return {run_id for _, run_id, _ in _changed(session, study_ids)}


def _changed(session: Session, study_ids: Collection[str]) -> list[tuple[str, str, str]]:
    """Study, id and state of each of their changed runs."""
    changed_live = select(LiveSettings.run_id).where(LiveSettings.agent_steps.is_not(None))
    query = (
        select(StudyCell.study_id, Run.id, Run.state, Run.spec, StudyCell.key, Run.id.in_(changed_live))
        .join(StudyCell, StudyCell.run_id == Run.id)
        .where(StudyCell.study_id.in_(study_ids), or_(Run.attempt > 1, Run.id.in_(changed_live)))
    )
    return [
        (study_id, run_id, state)
        for study_id, run_id, state, spec, key, is_live in session.execute(query)
        if is_live or key_of_stored(spec) != key
    ]


def rows(session: Session, study_id: str, numbers: Collection[int]) -> dict[int, StudyCell]:
    """The rows of some cells, by number."""
    query = select(StudyCell).where(StudyCell.study_id == study_id, StudyCell.number.in_(numbers))
    return {cell.number: cell for cell in session.scalars(query)}


def page_of_cells(
    session: Session, study_id: str, *, limit: int, cursor: str | None
) -> tuple[list[StudyCell], dict[str, Run], str | None]:
    """One page of cells by number, their runs by id, and the cursor of the next page."""
    cells, next_cursor = keyset.page(
        session,
        select(StudyCell).where(StudyCell.study_id == study_id),
        by=StudyCell.number,
        row_id=StudyCell.number,
        descending=False,
        limit=limit,
        cursor=cursor,
    )
    run_ids = [cell.run_id for cell in cells if cell.run_id]
    runs = {run.id: run for run in session.scalars(select(Run).where(Run.id.in_(run_ids)))}
    return cells, runs, next_cursor


def all_cells(session: Session, study_id: str) -> list[tuple[StudyCell, Run | None]]:
    """Every cell with its run, by number."""
    query = (
        select(StudyCell, Run)
        .outerjoin(Run, Run.id == StudyCell.run_id)
        .where(StudyCell.study_id == study_id)
        .order_by(StudyCell.number)
    )
    return [(row[0], row[1]) for row in session.execute(query)]


def provenances(session: Session, run_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What trained the latest attempt of each run, if that is known."""
    by_run: dict[str, dict[str, Any]] = {}
    for ids in _chunks(run_ids):
        query = (
            select(Attempt.run_id, Attempt.provenance)
            .where(Attempt.run_id.in_(ids), Attempt.provenance.is_not(None))
            .order_by(Attempt.number)
        )
        by_run |= {run_id: provenance for run_id, provenance in session.execute(query) if provenance}
    return by_run


def settings(session: Session, study_id: str) -> dict[int, dict[str, Any]]:
    """The random settings of each cell, by number."""
    query = select(StudyCell.number, StudyCell.settings).where(StudyCell.study_id == study_id)
    return dict(session.execute(query).all())


def evaluations(session: Session, study_id: str) -> dict[str, list[EvaluationScore]]:
    """The evaluations of each run by its own engine, in their order."""
    query = (
        select(
            Evaluation.run_id,
            Evaluation.agent_steps,
            Evaluation.wall_time_s,
            Evaluation.mean_return,
            Evaluation.n_episodes,
        )
        .join(StudyCell, StudyCell.run_id == Evaluation.run_id)
        .where(
            StudyCell.study_id == study_id,
            Evaluation.superseded.is_(False),
            Evaluation.mean_return.is_not(None),
            Evaluation.attempt.is_not(None),
        )
        .order_by(Evaluation.agent_steps, Evaluation.requested_at, Evaluation.id)
    )
    by_run: dict[str, list[EvaluationScore]] = defaultdict(list)
    for run_id, agent_steps, wall_time_s, mean_return, n_episodes in session.execute(query):
        if mean_return is None:
            continue
        by_run[run_id].append(EvaluationScore(agent_steps, wall_time_s, mean_return, n_episodes))
    return by_run


def best_kept(session: Session, study_id: str) -> dict[str, list[EvaluationScore]]:
    """The score of the best parameters of each run, evaluated again at its end."""
    query = (
        select(Series.run_id, Series.last_value)
        .join(StudyCell, StudyCell.run_id == Series.run_id)
        .where(StudyCell.study_id == study_id, Series.metric.like("eval/%/best_kept_return"))
    )
    return {
        run_id: [EvaluationScore(0, 0.0, value, best_kept=True)]
        for run_id, value in session.execute(query)
        if value is not None
    }


def metric_means(session: Session, study_id: str, metrics: Sequence[str]) -> dict[str, dict[str, float]]:
    """The mean of each of these metrics over each run of a study."""
    run_ids = session.scalars(
        select(StudyCell.run_id).where(StudyCell.study_id == study_id, StudyCell.run_id.is_not(None))
    )
    return metric_means_of_runs(session, [run_id for run_id in run_ids if run_id], metrics)


def metric_means_of_runs(
    session: Session, run_ids: Sequence[str], metrics: Sequence[str]
) -> dict[str, dict[str, float]]:
    """The mean of each of these metrics over each run; of a metric that only single sources have, such as
    actors, the mean over these."""
    values: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for ids in _chunks(run_ids):
        query = select(Series.run_id, Series.metric, Series.source, Series.mean_value).where(
            Series.run_id.in_(ids), Series.metric.in_(metrics), Series.mean_value.is_not(None)
        )
        for run_id, metric, source, mean in session.execute(query):
            if mean is not None:
                values[run_id][metric][source] = mean
    return {
        run_id: {
            metric: means[""] if "" in means else sum(means.values()) / len(means)
            for metric, means in by_metric.items()
        }
        for run_id, by_metric in values.items()
    }


def running(session: Session) -> list[str]:
    """Ids of the running studies."""
    return list(session.scalars(select(Study.id).where(Study.state == "running").order_by(Study.id)))


def restart(session: Session, study_id: str, numbers: Collection[int]) -> None:
    """Mark these cells as not started."""
    for chunk in _chunks(sorted(numbers)):
        session.execute(
            update(StudyCell)
            .where(StudyCell.study_id == study_id, StudyCell.number.in_(chunk))
            .values(started=False, reused=False, run_id=None, error=None)
        )


def mark_started(session: Session, study_id: str, numbers: Collection[int], *, started: bool) -> None:
    """Mark cells that keep their runs as started, or as waiting for their turn to go on."""
    for chunk in _chunks(sorted(numbers)):
        session.execute(
            update(StudyCell)
            .where(StudyCell.study_id == study_id, StudyCell.number.in_(chunk))
            .values(started=started)
        )


def hand_over(session: Session, study_id: str, run_ids: Collection[str]) -> set[str]:
    """Give runs of a study to another running one that has them too; returns these runs."""
    new_owners: dict[str, StudyCell] = {}
    for chunk in _chunks(sorted(run_ids)):
        query = (
            select(StudyCell)
            .join(Study, Study.id == StudyCell.study_id)
            .where(StudyCell.run_id.in_(chunk), Study.id != study_id, Study.state == "running")
            .order_by(Study.id)
        )
        for cell in session.scalars(query):
            new_owners.setdefault(cell.run_id or "", cell)
        session.execute(
            update(StudyCell)
            .where(StudyCell.study_id == study_id, StudyCell.run_id.in_(new_owners))
            .values(reused=True)
        )
    for cell in new_owners.values():
        cell.reused = False
    session.flush()
    return set(new_owners)


def take_over(session: Session, study_id: str, run_ids: Collection[str]) -> None:
    """Make a study the owner of these runs of its cells, except those that another running study has."""
    for chunk in _chunks(sorted(run_ids)):
        of_others = (
            select(StudyCell.run_id)
            .join(Study, Study.id == StudyCell.study_id)
            .where(StudyCell.run_id.in_(chunk), Study.id != study_id, Study.state == "running")
            .where(StudyCell.reused.is_(False))
        )
        kept = set(session.scalars(of_others))
        taken = [run_id for run_id in chunk if run_id not in kept]
        is_taken = (StudyCell.study_id == study_id, StudyCell.run_id.in_(taken))
        session.execute(update(StudyCell).where(*is_taken).values(reused=False))


def remove(session: Session, study: Study) -> None:
    """Delete a study's rows; its runs stay."""
    session.delete(study)
    session.flush()


def source_runs(session: Session, run_ids: Sequence[str]) -> dict[str, SourceRun]:
    """Those of the runs that exist, by id."""
    by_id: dict[str, SourceRun] = {}
    columns = [getattr(Run, name) for name in SourceRun._fields]
    for ids in _chunks(run_ids):
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
    for chunk in _chunks(sorted(set(kinds))):
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
    for ids in _chunks(sorted(run_ids)):
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


def trained_beside_others(session: Session, run_ids: Collection[str]) -> set[str]:
    """Those of the runs that trained while another run did on their host."""
    columns = Attempt.run_id, Attempt.host, Attempt.claimed_at, Attempt.ended_at
    own = [
        row
        for ids in _chunks(sorted(run_ids))
        for row in session.execute(select(*columns).where(Attempt.run_id.in_(ids)))
    ]
    if not own:
        return set()
    first, ends = min(row.claimed_at for row in own), [row.ended_at for row in own if row.ended_at]
    attempts = (
        select(*columns)
        .where(Attempt.host.in_({row.host for row in own}))
        .where(or_(Attempt.ended_at.is_(None), Attempt.ended_at > first))
        .order_by(Attempt.claimed_at)
    )
    if len(ends) == len(own):
        attempts = attempts.where(Attempt.claimed_at < max(ends))
    beside: set[str] = set()
    training: dict[str, list[tuple[str, datetime | None]]] = defaultdict(list)
    for run_id, host, claimed_at, ended_at in session.execute(attempts):
        training[host] = [(of, until) for of, until in training[host] if until is None or until > claimed_at]
        others = {of for of, _ in training[host]} - {run_id}
        if others:
            beside |= others | {run_id}
        training[host].append((run_id, ended_at))
    return beside & set(run_ids)


def active_runs(session: Session, study_id: str, keys: Collection[str]) -> dict[str, str]:
    """The runs of other studies that have not ended and are not to stop, by key."""
    query = (
        select(StudyCell.key, Run.id, Run.spec)
        .join(Run, Run.id == StudyCell.run_id)
        .where(
            StudyCell.key.in_(keys),
            StudyCell.study_id != study_id,
            StudyCell.reused.is_(False),
            Run.state.not_in([*ENDED, RunState.STOPPING]),
            Run.stop_requested.is_(None),
        )
        .order_by(Run.id.desc())
    )
    # Since it was planned, a run may have been resumed with other limits, or its settings changed.
    equal = [(key, run_id) for key, run_id, spec in session.execute(query) if key_of_stored(spec) == key]
    unusable = _trained_otherwise(session, {run_id for _, run_id in equal}, has_ended=False)
    return {key: run_id for key, run_id in equal if run_id not in unusable}


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


def _chunks(values: Sequence[T]) -> Iterable[Sequence[T]]:
    return (values[at : at + _CHUNK] for at in range(0, len(values), _CHUNK))
