"""What figures and the planner read of an experiment's cells and of their runs."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from backend.db import Attempt, Evaluation, Experiment, ExperimentCell, LiveSettings, Run, Series
from backend.experiments.cells.equal_runs import key_of_stored
from backend.experiments.cells.rows import CellRow
from backend.specs.states import RunState
from backend.statistics.members import EvaluationScore

T = TypeVar("T")

IS_STARTED = or_(ExperimentCell.started, (Experiment.state != "running") & ExperimentCell.run_id.is_not(None))
"""Whether a cell no longer waits. In an ended experiment nothing does, and a run that was to go on stays
as it ended; if the experiment continues, it waits again."""
_CHUNK = 500
"""Values of one IN, which databases bound."""


def rows(session: Session, row_id: str) -> list[CellRow]:
    """Every cell with its run's state, by number."""
    query = (
        select(
            ExperimentCell.number,
            ExperimentCell.arm,
            ExperimentCell.environment,
            ExperimentCell.draw,
            IS_STARTED,
            ExperimentCell.reused,
            ExperimentCell.error,
            Run.id,
            Run.state,
            Run.score,
            Run.agent_steps,
            Run.frames,
            Run.wall_time_s,
            Run.revision,
            Run.early_agent_steps,
        )
        .join(Experiment, Experiment.id == ExperimentCell.experiment_id)
        .outerjoin(Run, Run.id == ExperimentCell.run_id)
        .where(ExperimentCell.experiment_id == row_id)
        .order_by(ExperimentCell.number)
    )
    changed = changed_runs(session, [row_id])
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
            is_early=bool(row[14]) and row[14] >= row[10],
        )
        for row in session.execute(query)
    ]


def changed_runs(session: Session, row_ids: Collection[str]) -> set[str]:
    """Runs of experiments that do not train as planned: resumed with another limit, or changed live."""
    return {run_id for _, run_id, _ in changed_cells(session, row_ids)}


def changed_cells(session: Session, row_ids: Collection[str]) -> list[tuple[str, str, str]]:
    """Experiment, id and state of each of their changed runs."""
    changed_live = select(LiveSettings.run_id).where(LiveSettings.agent_steps.is_not(None))
    query = (
        select(
            ExperimentCell.experiment_id,
            Run.id,
            Run.state,
            Run.spec,
            ExperimentCell.key,
            Run.id.in_(changed_live),
        )
        .join(ExperimentCell, ExperimentCell.run_id == Run.id)
        .where(ExperimentCell.experiment_id.in_(row_ids), or_(Run.attempt > 1, Run.id.in_(changed_live)))
    )
    return [
        (row_id, run_id, state)
        for row_id, run_id, state, spec, key, is_live in session.execute(query)
        if is_live or key_of_stored(spec) != key
    ]


def settings(session: Session, row_id: str) -> dict[int, dict[str, Any]]:
    """What varies in each cell, by number."""
    query = select(ExperimentCell.number, ExperimentCell.settings).where(
        ExperimentCell.experiment_id == row_id
    )
    return dict(session.execute(query).all())


def evaluations(session: Session, row_id: str) -> dict[str, list[EvaluationScore]]:
    """The evaluations of each run by its own engine, in their order."""
    query = (
        select(
            Evaluation.run_id,
            Evaluation.agent_steps,
            Evaluation.wall_time_s,
            Evaluation.mean_return,
            Evaluation.n_episodes,
        )
        .join(ExperimentCell, ExperimentCell.run_id == Evaluation.run_id)
        .where(
            ExperimentCell.experiment_id == row_id,
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


def best_kept(session: Session, row_id: str) -> dict[str, list[EvaluationScore]]:
    """The score of the best parameters of each run, evaluated again at its end."""
    query = (
        select(Series.run_id, Series.last_value)
        .join(ExperimentCell, ExperimentCell.run_id == Series.run_id)
        .where(ExperimentCell.experiment_id == row_id, Series.metric.like("eval/%/best_kept_return"))
    )
    return {
        run_id: [EvaluationScore(0, 0.0, value, best_kept=True)]
        for run_id, value in session.execute(query)
        if value is not None
    }


def metric_means(session: Session, row_id: str, metrics: Sequence[str]) -> dict[str, dict[str, float]]:
    """The mean of each of these metrics over each run of an experiment."""
    run_ids = session.scalars(
        select(ExperimentCell.run_id).where(
            ExperimentCell.experiment_id == row_id, ExperimentCell.run_id.is_not(None)
        )
    )
    return metric_means_of_runs(session, [run_id for run_id in run_ids if run_id], metrics)


def metric_means_of_runs(
    session: Session, run_ids: Sequence[str], metrics: Sequence[str]
) -> dict[str, dict[str, float]]:
    """The mean of each of these metrics over each run; of a metric that only single sources have, such as
    actors, the mean over these."""
    values: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for ids in chunks(run_ids):
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


def trained_beside_others(session: Session, run_ids: Collection[str]) -> set[str]:
    """Those of the runs that trained while another run did on their host."""
    columns = Attempt.run_id, Attempt.host, Attempt.claimed_at, Attempt.ended_at
    own = [
        row
        for ids in chunks(sorted(run_ids))
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


def chunks(values: Sequence[T]) -> Iterable[Sequence[T]]:
    """The values in parts that fit one IN."""
    return (values[at : at + _CHUNK] for at in range(0, len(values), _CHUNK))
