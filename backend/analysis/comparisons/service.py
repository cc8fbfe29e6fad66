"""Statistics of selected runs, by the groups of `backend.runs.runs.groups`."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from sqlalchemy.orm import Session

from backend.analysis.comparisons.schemas import (
    At,
    Comparison,
    EstimateOut,
    GroupStatistics,
    Improvement,
    RunScore,
    Score,
)
from backend.analysis.comparisons.score_history import (
    WINDOW_EPISODES,
    ScoreHistory,
    by_evaluation,
    by_training,
)
from backend.analysis.metrics import repository as metrics
from backend.analysis.metrics import service as metrics_service
from backend.analysis.metrics.catalogue import EPISODE_RETURN
from backend.analysis.metrics.chunks import empty, joined
from backend.analysis.metrics.repository import ChunkInfo
from backend.db import Evaluation, Run
from backend.runs.evaluations import repository as evaluations
from backend.runs.runs.groups import (
    evaluation_key,
    group_key,
    group_names,
    own_protocol,
    surplus_runs,
    training_key,
)
from backend.runs.runs.repository import lineage_roots
from backend.specs.run_fields import EXTERNAL
from backend.statistics.estimates import (
    INTERVAL_NAME,
    interquartile_mean,
    median,
    probability_of_improvement,
)
from backend.statistics.permutation import (
    SIGNIFICANCE,
    difference,
    holm,
    permutation_p_value,
    seeds_to_differ,
)
from callboard.known_tags import is_per_episode

METHOD = (
    f"Intervals: {INTERVAL_NAME}, by order statistics; for a difference, by inverting the test, "
    "assuming equal dispersion. "
    "Test: exact two-sided permutation test of P(A > B)"
)

_COLUMNS = ("agent_steps", "wall_time_s", "value")


def compare(
    session: Session,
    run_ids: Sequence[str],
    score: Score,
    at: At,
    threshold: float | None,
    protocol: str | None = None,
) -> Comparison:
    """Scores of groups with intervals, and which group is better.

    Args:
        session: a reading session.
        run_ids: the runs.
        score: whether scores are measured by training episodes, or by evaluations.
        at: `common`: all runs of an environment at the same agent steps, those of the last score of the
            counted run whose last score comes first; `end`: each run at its own last score.
        threshold: a score; the result has the time at which it is first reached.
        protocol: protocol of the evaluations; by default each group's own.

    Raises:
        NotFound: there is no such run.
    """
    runs = metrics_service.find_runs(session, run_ids)
    members: dict[str, list[Run]] = {}
    for run in runs.values():
        members.setdefault(group_key(run.spec), []).append(run)
    if score == "training":
        measured = _measure_training(session, runs, members)
    else:
        measured = _measure_evaluations(session, runs, members, protocol)

    # At which agent steps of each run its score is taken.
    lineages = lineage_roots(session, runs.values())
    if at == "common":
        ends = _common_ends(measured, surplus_runs(runs.values(), lineages, measured.furthest))
        # 0 in an environment in which no run that counts has a score.
        taken_at = {run_id: ends.get(environment, 0) for run_id, environment in measured.environments.items()}
    else:
        taken_at = {run_id: measured.furthest.get(run_id, 0) for run_id in runs}
    # The threshold may be reached anywhere.
    histories = measured.read(taken_at if threshold is None else None)
    scores = {run_id: history.score_at(taken_at[run_id]) for run_id, history in histories.items()}

    # Which runs count is decided again by the scores that were taken: a fork has none before its first agent
    # step, and there its parent counts in its place.
    scored = {run_id for run_id, value in scores.items() if value is not None}
    results = _Results(histories, scores, surplus_runs(runs.values(), lineages, scored))

    names = group_names([group_runs[0] for group_runs in members.values()])
    groups = [
        _group(
            key,
            name,
            measured.protocols[key],
            group_runs,
            results,
            taken_at[group_runs[0].id] if at == "common" else None,
            threshold,
        )
        for (key, group_runs), name in zip(members.items(), names, strict=True)
    ]
    environment_of = {key: measured.environments[group_runs[0].id] for key, group_runs in members.items()}
    return Comparison(
        score=score,
        at=at,
        threshold=threshold,
        method=METHOD,
        protocols=measured.every_protocol,
        groups=groups,
        improvements=_improvements(groups, environment_of),
    )


@dataclass(frozen=True)
class _Measured:
    """What the scores of runs are measured by: training episodes, or evaluations."""

    environments: Mapping[str, str]
    """Run -> what must be equal for its score to be compared with another's."""
    furthest: Mapping[str, int]
    """Run -> agent steps of its last score; runs without any are left out."""
    read: Callable[[Mapping[str, int] | None], Mapping[str, ScoreHistory]]
    """The scores of the runs: given agent steps by run, those needed for the score there; given None, all."""
    protocols: Mapping[str, str | None]
    """Group -> the protocol of its evaluations, if it is scored by them."""
    every_protocol: Sequence[str] = ()
    """The protocols of all evaluations of the runs."""


def _measure_training(
    session: Session, runs: Mapping[str, Run], members: Mapping[str, Sequence[Run]]
) -> _Measured:
    stored, with_gaps = _episodes(session, runs)

    def read(at: Mapping[str, int] | None) -> Mapping[str, ScoreHistory]:
        needed: Mapping[str, Sequence[ChunkInfo]] = stored
        if at is not None:
            needed = {
                run_id: chunks if run_id in with_gaps else _last(chunks, at[run_id])
                for run_id, chunks in stored.items()
            }
        return _by_training(session, runs, needed)

    return _Measured(
        environments={run_id: f"{training_key(run)} {run.step_unit}" for run_id, run in runs.items()},
        furthest={
            run_id: max(chunk.max_agent_steps for chunk in chunks) for run_id, chunks in stored.items()
        },
        read=read,
        protocols=dict.fromkeys(members),
    )


def _measure_evaluations(
    session: Session, runs: Mapping[str, Run], members: Mapping[str, Sequence[Run]], protocol: str | None
) -> _Measured:
    done = evaluations.finished(session, list(runs))
    protocols = {key: protocol or _protocol(group_runs, done) for key, group_runs in members.items()}
    used = {run.id: protocols[key] for key, group_runs in members.items() for run in group_runs}
    histories = {run_id: _by_evaluation(run, used[run_id], done) for run_id, run in runs.items()}
    return _Measured(
        environments={run_id: evaluation_key(run, used[run_id]) for run_id, run in runs.items()},
        furthest={run_id: history.end for run_id, history in histories.items() if len(history.scores)},
        read=lambda at: histories,
        protocols=protocols,
        every_protocol=sorted({evaluation.protocol for evaluation in done}),
    )


def _common_ends(measured: _Measured, surplus: Collection[str]) -> dict[str, int]:
    """For each environment, the least agent steps of a counted run's last return or evaluation."""
    ends: dict[str, int] = {}
    for run_id, end in measured.furthest.items():
        if run_id not in surplus:
            environment = measured.environments[run_id]
            ends[environment] = min(end, ends.get(environment, end))
    return ends


def _episodes(session: Session, runs: Mapping[str, Run]) -> tuple[dict[str, list[ChunkInfo]], set[str]]:
    """By run, the stored chunks of its returns, if any is finite; and the runs with returns that are not."""
    names = {run.id: run.return_metric or EPISODE_RETURN for run in runs.values()}
    rows = metrics.list_series(session, list(runs), list(set(names.values())))
    chosen = [row for row in rows if row.source == "" and row.metric == names[row.run_id]]
    chosen = [row for row in chosen if row.n_finite]
    chunks = metrics.live_chunks(session, [row.id for row in chosen])
    with_gaps = {row.run_id for row in chosen if row.n_finite < row.n_points}
    return {row.run_id: chunks[row.id] for row in chosen}, with_gaps


def _last(chunks: Sequence[ChunkInfo], agent_steps: int) -> Sequence[ChunkInfo]:
    """Of a run whose returns are all finite, the chunks with the latest episode at or before these agent
    steps and with all episodes of its score."""
    end = max((at + 1 for at, chunk in enumerate(chunks) if chunk.min_agent_steps <= agent_steps), default=0)
    start = max(0, end - 1)
    while start and chunks[end - 1].first_row - chunks[start].first_row < WINDOW_EPISODES:
        start -= 1
    return chunks[start:end]


def _by_training(
    session: Session, runs: Mapping[str, Run], chunks: Mapping[str, Sequence[ChunkInfo]]
) -> dict[str, ScoreHistory]:
    data = metrics.points_of(
        session, [chunk for run_chunks in chunks.values() for chunk in run_chunks], _COLUMNS
    )
    histories = dict.fromkeys(runs, by_training(empty(_COLUMNS)))
    for run_id, run_chunks in chunks.items():
        if run_chunks:
            window = (
                1
                if is_per_episode(runs[run_id].return_metric or EPISODE_RETURN) is False
                else WINDOW_EPISODES
            )
            histories[run_id] = by_training(joined([data[chunk.id] for chunk in run_chunks]), window)
    return histories


def _protocol(group_runs: Sequence[Run], done: Sequence[Evaluation]) -> str | None:
    """The protocol of the evaluations of a group: that of its config, else that of the latest evaluation.

    The only evaluations of a run may have been requested under another protocol than that of its config.
    """
    ids = {run.id for run in group_runs}
    own = [evaluation for evaluation in done if evaluation.run_id in ids]
    wanted = own_protocol(group_runs[0])
    if not own or any(evaluation.protocol == wanted for evaluation in own):
        return wanted
    return max(own, key=lambda evaluation: (evaluation.attempt is not None, evaluation.agent_steps)).protocol


def _by_evaluation(run: Run, protocol: str | None, done: Sequence[Evaluation]) -> ScoreHistory:
    return by_evaluation(
        [
            evaluation
            for evaluation in done
            if evaluation.run_id == run.id
            and evaluation.protocol == protocol
            and evaluation.mean_return is not None
            and np.isfinite(evaluation.mean_return)
        ]
    )


class _Results(NamedTuple):
    """What the runs have reached."""

    histories: Mapping[str, ScoreHistory]
    scores: Mapping[str, float | None]
    """Run -> its score where runs are compared."""
    surplus: Collection[str]
    """Runs that do not count, since another one has the same randomness."""


def _group(
    key: str,
    name: str,
    protocol: str | None,
    runs: Sequence[Run],
    results: _Results,
    at: int | None,
    threshold: float | None,
) -> GroupStatistics:
    """The statistics of a group: over its runs that count, though all are listed."""
    histories, scores, surplus = results
    has_threshold = threshold is not None
    bound = np.inf if threshold is None else threshold
    # Of each run, agent steps and training time at which it first reached the threshold.
    reached = np.array([histories[run.id].reached(bound) for run in runs])
    if runs[0].step_unit != "agent_steps":
        reached[:, 0] = np.inf  # not known
    is_counted = np.array([run.id not in surplus for run in runs])
    reached_by_counted = reached[is_counted]
    counted_scores = np.array(
        [score for run in runs if run.id not in surplus and (score := scores[run.id]) is not None]
    )
    return GroupStatistics(
        id=key,
        name=name,
        algorithm=runs[0].algorithm,
        environment=runs[0].environment,
        protocol=protocol,
        external=runs[0].origin == EXTERNAL,
        step_unit="iterations" if runs[0].step_unit == "iterations" else "agent_steps",
        at_agent_steps=at,
        runs=[
            RunScore(
                run=run.id,
                seed=run.seed,
                score=scores[run.id],
                counted=run.id not in surplus,
                agent_steps_to_threshold=agent_steps,
                wall_time_s_to_threshold=wall_time_s,
            )
            for run, (agent_steps, wall_time_s) in zip(runs, reached, strict=True)
        ],
        n=len(counted_scores),
        iqm=EstimateOut.point(interquartile_mean(counted_scores)) if len(counted_scores) else None,
        median=EstimateOut.of(median(counted_scores)) if len(counted_scores) else None,
        n_reached=int(np.isfinite(reached_by_counted[:, 1]).sum()),
        agent_steps_to_threshold=EstimateOut.of(median(reached_by_counted[:, 0])) if has_threshold else None,
        wall_time_s_to_threshold=EstimateOut.of(median(reached_by_counted[:, 1])) if has_threshold else None,
    )


def _improvements(groups: Sequence[GroupStatistics], environments: Mapping[str, str]) -> list[Improvement]:
    scores = {
        group.id: np.array([run.score for run in group.runs if run.counted and run.score is not None])
        for group in groups
    }
    ranked = sorted(
        (group for group in groups if group.n > 1 and group.iqm is not None),
        key=lambda group: -(group.iqm.value or 0.0) if group.iqm else 0.0,
    )
    pairs = [(a, b) for a, b in combinations(ranked, 2) if environments[a.id] == environments[b.id]]
    p_values = [permutation_p_value(scores[a.id], scores[b.id]) for a, b in pairs]
    improvements = []
    for (a, b), p_value, p_adjusted in zip(pairs, p_values, holm(p_values), strict=True):
        probability = probability_of_improvement(scores[a.id], scores[b.id])
        better = None if p_adjusted >= SIGNIFICANCE else a.id if probability > 0.5 else b.id
        improvements.append(
            Improvement(
                a=a.id,
                b=b.id,
                probability=EstimateOut.point(probability),
                difference=EstimateOut.of(difference(scores[a.id], scores[b.id])),
                p_value=p_value,
                p_adjusted=p_adjusted,
                better=better,
                seeds_to_differ=None if better else seeds_to_differ(a.n, b.n, len(pairs)),
            )
        )
    return improvements
