"""Statistics of selected runs, by the groups of `backend.runs.runs.groups`."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from sqlalchemy.orm import Session

from backend.analysis.comparisons import repository
from backend.analysis.comparisons.schemas import (
    At,
    Comparison,
    EstimateOut,
    GroupStatistics,
    Improvement,
    LeftOut,
    Length,
    RunScore,
    Score,
)
from backend.analysis.comparisons.score_history import (
    WINDOW_EPISODES,
    ScoreHistory,
    by_evaluation,
    by_training,
)
from backend.analysis.comparisons.verdicts import best_groups, scores_of
from backend.analysis.metrics import repository as metrics
from backend.analysis.metrics import service as metrics_service
from backend.analysis.metrics.chunks import empty, joined
from backend.analysis.metrics.repository import ChunkInfo
from backend.db import Evaluation, Run
from backend.drawing.catalogue import EPISODE_RETURN
from backend.runs.evaluations import repository as evaluations
from backend.runs.runs.groups import (
    Brief,
    evaluation_key,
    group_key,
    keys_of,
    own_protocol,
    surplus_runs,
    training_key,
    unbroken,
)
from backend.runs.runs.names import names_of_groups
from backend.runs.runs.repository import lineage_roots, specs_of
from backend.specs.run_fields import EXTERNAL
from backend.specs.states import BROKEN_OFF, RunState
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
from backend.statistics.sources import Decided, depends_on, least
from callboard.known_tags import is_per_episode

METHOD = (
    f"Intervals: {INTERVAL_NAME}, by order statistics; for a difference, by inverting the test, "
    "assuming equal dispersion. "
    "Test: exact two-sided permutation test of P(A > B)"
)

_COLUMNS = ("agent_steps", "wall_time_s", "value")
_MAX_OTHERS = 100


def compare(
    session: Session,
    run_ids: Sequence[str],
    score: Score,
    at: At,
    threshold: float | None,
    protocol: str | None = None,
    baseline: str | None = None,
    *,
    all_pairs: bool = False,
) -> Comparison:
    """Scores of groups with intervals, and which group is better.

    Args:
        session: a reading session.
        run_ids: the runs.
        score: whether scores are measured by training episodes, or by evaluations.
        at: `common`: all runs of an environment at the same agent steps, those of the last score of the
            counted run whose last score comes first, of those that have not broken off; `end`: each run at
            its own last score.
        threshold: a score; the result has the time at which it is first reached.
        protocol: protocol of the evaluations; by default each group's own.
        baseline: the group with which the others of its environment are compared; elsewhere, and by default,
            the first.
        all_pairs: compare each with each in place of this.

    Raises:
        NotFound: there is no such run.
    """
    runs = metrics_service.find_runs(session, run_ids)
    members: dict[str, list[Run]] = {}
    for run in runs.values():
        members.setdefault(group_key(run), []).append(run)
    if score == "training":
        measured = _measure_training(session, runs, members)
    else:
        measured = _measure_evaluations(session, runs, members, protocol)

    early: set[str] = set()
    if score == "training":
        early = {id_ for id_, end in measured.furthest.items() if 0 < end <= runs[id_].early_agent_steps}

    # At which agent steps of each run its score is taken.
    lineages = lineage_roots(session, runs.values())
    ends: Mapping[str, Mapping[str, int]] = {}
    if at == "common":
        surplus = surplus_runs(runs.values(), lineages, measured.furthest)
        ends = _ends(runs, measured, surplus, early)
        common = {environment: least(own) for environment, own in ends.items()}
        # 0 in an environment in which no run that counts has a score.
        lengths = {
            run_id: common.get(environment, Decided(0))
            for run_id, environment in measured.environments.items()
        }
        left_out = {
            run_id: Decided[LeftOut]("broke_off", lengths[run_id].by)
            for run_id, end in measured.furthest.items()
            if end < lengths[run_id].value
        }
    else:
        lengths = {run_id: Decided(measured.furthest.get(run_id, 0)) for run_id in runs}
        left_out = {
            run_id: Decided[LeftOut]("broke_off", frozenset(whole))
            for group_runs in members.values()
            for whole in [unbroken(group_runs)]
            for run_id in {run.id for run in group_runs} - whole
        }
    taken_at = {run_id: length.value for run_id, length in lengths.items()}
    # The threshold may be reached anywhere.
    histories = measured.read(taken_at if threshold is None else None)
    scores = {run_id: history.score_at(taken_at[run_id]) for run_id, history in histories.items()}
    if score == "training":
        left_out |= {
            run_id: Decided[LeftOut]("early", lengths[run_id].by)
            for run_id, end in measured.furthest.items()
            if 0 < min(end, taken_at[run_id]) <= runs[run_id].early_agent_steps
        }

    # Which runs count is decided again by the scores that were taken: a fork has none before its first agent
    # step, and there its parent counts in its place.
    scored = {run_id for run_id, value in scores.items() if value is not None and run_id not in left_out}
    surplus = surplus_runs(runs.values(), lineages, scored)
    left_out |= {
        run_id: Decided[LeftOut]("repeated", frozenset({other})) for run_id, other in surplus.items()
    }
    results = _Results(histories, scores, left_out, lengths)

    others = _others(session, members)
    view = names_of_groups([group_runs[0] for group_runs in members.values()])
    groups = [
        _group(
            key,
            name,
            measured.protocols[key],
            group_runs,
            results,
            taken_at[group_runs[0].id] if at == "common" else None,
            threshold,
            others[key],
        )
        for (key, group_runs), name in zip(members.items(), view.names, strict=True)
    ]
    environment_of = {key: measured.environments[group_runs[0].id] for key, group_runs in members.items()}
    baselines = {} if all_pairs else _baselines(groups, environment_of, baseline)
    improvements, n_comparisons = _improvements(groups, environment_of, baselines, lengths)
    return Comparison(
        score=score,
        at=at,
        threshold=threshold,
        method=METHOD,
        lengths=[
            Length(
                environment=runs[next(iter(own))].environment,
                at_agent_steps=common[environment].value,
                run=next(iter(common[environment].by)),
                median_agent_steps=int(np.median([*own.values()])),
                groups=[key for key in members if environment_of[key] == environment],
            )
            for environment, own in ends.items()
        ],
        baselines=[*baselines.values()],
        shared_name=view.shared,
        protocols=measured.every_protocol,
        groups=groups,
        best=best_groups(groups, members, others, environment_of, baselines, improvements, n_comparisons),
        improvements=improvements,
        n_comparisons=n_comparisons,
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


def _ends(
    runs: Mapping[str, Run], measured: _Measured, surplus: Collection[str], early: Collection[str]
) -> dict[str, dict[str, int]]:
    """For each environment, by run the agent steps of its last return or evaluation: of the counted runs that
    have not broken off and whose scores are not early, if there are any."""
    ends: dict[str, dict[str, int]] = {}
    for run_id, end in measured.furthest.items():
        if run_id not in surplus:
            ends.setdefault(measured.environments[run_id], {})[run_id] = end
    for own in ends.values():
        whole = unbroken([runs[run_id] for run_id in own])
        for run_id in own.keys() - (whole.difference(early) or whole):
            del own[run_id]
    return ends


def _others(session: Session, members: Mapping[str, Sequence[Run]]) -> dict[str, list[Brief]]:
    """By group, the further runs of its config that are not compared; archived and demo runs excepted."""
    compared = {run.id for group_runs in members.values() for run in group_runs}
    candidates = [
        brief
        for brief in repository.alike(session, [group_runs[0] for group_runs in members.values()])
        if brief.id not in compared
    ]
    keys = keys_of(candidates, specs_of(session))
    others: dict[str, list[Brief]] = {key: [] for key in members}
    for brief in candidates:
        if keys[brief.id] in others:
            others[keys[brief.id]].append(brief)
    return others


def _baselines(
    groups: Sequence[GroupStatistics], environments: Mapping[str, str], baseline: str | None
) -> dict[str, str]:
    """By environment, the group with which the others are compared: the wanted one, else the first."""
    baselines: dict[str, str] = {}
    for group in groups:
        if group.id == baseline or (group.n > 1 and environments[group.id] not in baselines):
            baselines[environments[group.id]] = group.id
    return baselines


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
    left_out: Mapping[str, Decided[LeftOut]]
    """Runs that do not count, with the reason."""
    lengths: Mapping[str, Decided[int]]
    """Run -> the agent steps where it is compared."""


def _group(
    key: str,
    name: str,
    protocol: str | None,
    runs: Sequence[Run],
    results: _Results,
    at: int | None,
    threshold: float | None,
    others: Sequence[Brief],
) -> GroupStatistics:
    """The statistics of a group: over its runs that count, though all are listed. A run that has not reached
    the threshold counts there even if it broke off."""
    histories, scores, left_out, lengths = results
    ids = [run.id for run in runs]
    repeated = {run_id for run_id, reason in left_out.items() if reason.value == "repeated"}
    samples = [run for run in runs if run.id not in repeated]
    has_threshold = threshold is not None
    bound = np.inf if threshold is None else threshold
    # Of each run, agent steps and training time at which it first reached the threshold.
    reached = np.array([histories[run.id].reached(bound) for run in runs])
    if runs[0].step_unit != "agent_steps":
        reached[:, 0] = np.inf  # not known
    is_counted = np.array([run.id not in repeated for run in runs])
    reached_by_counted = reached[is_counted]
    counted_scores = np.array(
        [score for run in runs if run.id not in left_out and (score := scores[run.id]) is not None]
    )
    known_others = [other.score for other in others if other.score is not None]
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
                counted=run.id not in left_out,
                left_out=reason.value if reason else None,
                depends_on=depends_on([run.id], lengths[run.id], reason or Decided(None)),
                agent_steps_to_threshold=agent_steps,
                wall_time_s_to_threshold=wall_time_s,
            )
            for run, (agent_steps, wall_time_s) in zip(runs, reached, strict=True)
            for reason in [left_out.get(run.id)]
        ],
        n=len(counted_scores),
        n_finished=sum(run.state == RunState.FINISHED for run in samples),
        n_broken_off=sum(run.state in BROKEN_OFF for run in samples),
        others=[other.id for other in others[:_MAX_OTHERS]],
        are_best=bool(known_others)
        and all(run.score is not None and run.score > max(known_others) for run in samples),
        depends_on=depends_on(
            ids, lengths[runs[0].id], Decided(None, frozenset(other.id for other in others[:_MAX_OTHERS]))
        ),
        iqm=EstimateOut.point(interquartile_mean(counted_scores)) if len(counted_scores) else None,
        median=EstimateOut.of(median(counted_scores)) if len(counted_scores) else None,
        n_reached=int(np.isfinite(reached_by_counted[:, 1]).sum()),
        agent_steps_to_threshold=EstimateOut.of(median(reached_by_counted[:, 0])) if has_threshold else None,
        wall_time_s_to_threshold=EstimateOut.of(median(reached_by_counted[:, 1])) if has_threshold else None,
    )


def _improvements(
    groups: Sequence[GroupStatistics],
    environments: Mapping[str, str],
    baselines: Mapping[str, str],
    lengths: Mapping[str, Decided[int]],
) -> tuple[list[Improvement], int]:
    """How groups differ from their baselines, or each from each without any; and for how many comparisons
    p-values are corrected."""
    scores = {group.id: scores_of(group) for group in groups}
    # A seed that broke off takes no comparison out of the correction, which would change other p-values.
    ranked = sorted(
        (group for group in groups if sum(run.left_out != "repeated" for run in group.runs) > 1),
        key=lambda group: -(group.iqm.value or 0.0) if group.iqm else 0.0,
    )
    family = [
        (a, b)
        for a, b in combinations(ranked, 2)
        if environments[a.id] == environments[b.id]
        and (not baselines or baselines.get(environments[a.id]) in (a.id, b.id))
    ]
    pairs = [(a, b) for a, b in family if a.n > 1 and b.n > 1]
    # Holm's correction makes each p-value depend on all.
    runs = Decided(None, frozenset(run.run for pair in pairs for group in pair for run in group.runs))
    p_values = [permutation_p_value(scores[a.id], scores[b.id]) for a, b in pairs]
    adjusted = holm([*p_values, *[1.0] * (len(family) - len(pairs))])
    improvements = []
    for (a, b), p_value, p_adjusted in zip(pairs, p_values, adjusted, strict=False):
        probability = probability_of_improvement(scores[a.id], scores[b.id])
        own = [run.run for run in (*a.runs, *b.runs)]
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
                seeds_to_differ=None if better else seeds_to_differ(a.n, b.n, len(family)),
                depends_on=depends_on(own, runs, lengths[own[0]]),
            )
        )
    return improvements, len(family)
