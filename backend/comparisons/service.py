"""Statistics of chosen runs, those that differ in their seed alone as one group."""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from sqlalchemy.orm import Session

from backend.comparisons.courses import WINDOW_EPISODES, Course, by_evaluation, by_training
from backend.comparisons.schemas import (
    At,
    Comparison,
    EstimateOut,
    GroupStatistics,
    Improvement,
    RunScore,
    Score,
)
from backend.comparisons.statistics import RESAMPLES, iqm, median, probability_of_improvement
from backend.db import Run
from backend.figures import repository as figures
from backend.figures.learning_curve import METRIC
from backend.figures.seeds import group_names
from backend.figures.service import scoring
from backend.metrics import repository as metrics
from backend.metrics import service as series
from backend.metrics.chunks import empty, joined
from backend.metrics.grouping import group_key
from backend.metrics.repository import Chunk
from backend.specs.environments import ENVIRONMENTS

METHOD = f"95 % percentile interval of {RESAMPLES:,} bootstrap resamples, stratified by world"

_COLUMNS = ("agent_steps", "wall_time_s", "value")


def compare(
    session: Session, run_ids: Sequence[str], score: Score, at: At, threshold: float | None
) -> Comparison:
    """Scores of groups of seeds, with intervals, and how likely one beats another.

    Args:
        session: a reading session.
        run_ids: which runs.
        score: by training episodes, or by evaluations of the world's own protocol.
        at: `common` compares the runs of one world where the shortest of them ends, `end` each at its own.
        threshold: a score whose first reaching is looked for.

    Raises:
        NotFound: there is no such run.
    """
    runs = series.find_runs(session, run_ids)
    worlds = {run_id: scoring(run) for run_id, run in runs.items()}
    stored = _episodes(session, runs) if score == "training" else {}
    courses = {} if score == "training" else _by_evaluation(session, runs)
    furthest = {run_id: max(chunk.max_agent_steps for chunk in chunks) for run_id, chunks in stored.items()}
    furthest |= {run_id: course.end for run_id, course in courses.items() if len(course.scores)}
    ends: dict[str, int] = {}
    for run_id, end in furthest.items():
        ends[worlds[run_id]] = min(end, ends.get(worlds[run_id], end))
    if score == "training":
        needed: Mapping[str, Sequence[Chunk]] = stored
        if threshold is None:
            until = {
                run_id: ends[worlds[run_id]] if at == "common" else furthest[run_id] for run_id in stored
            }
            needed = {run_id: _last(chunks, until[run_id]) for run_id, chunks in stored.items()}
        courses = _by_training(session, runs, needed)
    members: dict[str, list[Run]] = {}
    for run in runs.values():
        members.setdefault(group_key(run.spec), []).append(run)
    firsts = [some[0] for some in members.values()]
    names = dict(zip(members, group_names(firsts), strict=True))
    groups = [
        _group(
            key,
            names[key],
            some,
            courses,
            ends.get(worlds[some[0].id], 0) if at == "common" else None,
            threshold,
        )
        for key, some in members.items()
    ]
    world_of = {key: worlds[some[0].id] for key, some in members.items()}
    return Comparison(
        score=score,
        at=at,
        threshold=threshold,
        method=METHOD,
        groups=groups,
        improvements=_improvements(groups, world_of),
    )


def _episodes(session: Session, runs: Mapping[str, Run]) -> dict[str, list[Chunk]]:
    """By run, where the returns of its training episodes are stored; only of runs that have any."""
    chosen = [one for one in metrics.list_series(session, list(runs), [METRIC]) if one.source == ""]
    chunks = metrics.live_chunks(session, [one.id for one in chosen])
    return {one.run_id: chunks[one.id] for one in chosen if chunks[one.id]}


def _last(chunks: Sequence[Chunk], agent_steps: int) -> Sequence[Chunk]:
    """Those with the newest episode at or before these agent steps and with all that its score is made of."""
    end = max((at + 1 for at, chunk in enumerate(chunks) if chunk.min_agent_steps <= agent_steps), default=0)
    start = max(0, end - 1)
    while start and chunks[end - 1].first_row - chunks[start].first_row < WINDOW_EPISODES:
        start -= 1
    return chunks[start:end]


def _by_training(
    session: Session, runs: Mapping[str, Run], chunks: Mapping[str, Sequence[Chunk]]
) -> dict[str, Course]:
    data = metrics.points_of(session, [chunk for some in chunks.values() for chunk in some], _COLUMNS)
    courses = dict.fromkeys(runs, by_training(empty(_COLUMNS)))
    for run_id, some in chunks.items():
        if some:
            courses[run_id] = by_training(joined([data[chunk.id] for chunk in some]))
    return courses


def _by_evaluation(session: Session, runs: Mapping[str, Run]) -> dict[str, Course]:
    done = figures.evaluations(session, list(runs))
    courses = {}
    for run in runs.values():
        world = ENVIRONMENTS.get(run.environment)
        own = [
            one
            for one in done
            if one.run_id == run.id
            and one.mean_return is not None
            and np.isfinite(one.mean_return)
            and (world is None or one.protocol == world.evaluation_protocol)
        ]
        courses[run.id] = by_evaluation(own)
    return courses


def _group(
    key: str,
    name: str,
    runs: Sequence[Run],
    courses: Mapping[str, Course],
    at: int | None,
    threshold: float | None,
) -> GroupStatistics:
    own = [courses[run.id] for run in runs]
    scores = [course.score_at(course.end if at is None else at) for course in own]
    known = np.array([score for score in scores if score is not None])
    reached = np.array([course.reached(np.inf if threshold is None else threshold) for course in own])
    asked = threshold is not None
    return GroupStatistics(
        id=key,
        name=name,
        algorithm=runs[0].algorithm,
        environment=runs[0].environment,
        at_agent_steps=at,
        runs=[
            RunScore(
                run=run.id,
                seed=run.seed,
                score=score,
                agent_steps_to_threshold=agent_steps,
                wall_time_s_to_threshold=wall_time_s,
            )
            for run, score, (agent_steps, wall_time_s) in zip(runs, scores, reached, strict=True)
        ],
        n=len(known),
        iqm=EstimateOut.of(iqm([known])) if len(known) else None,
        n_reached=int(np.isfinite(reached[:, 0]).sum()),
        agent_steps_to_threshold=EstimateOut.of(median(reached[:, 0])) if asked else None,
        wall_time_s_to_threshold=EstimateOut.of(median(reached[:, 1])) if asked else None,
    )


def _improvements(groups: Sequence[GroupStatistics], worlds: Mapping[str, str]) -> list[Improvement]:
    scores = {
        group.id: np.array([one.score for one in group.runs if one.score is not None]) for group in groups
    }
    ranked = sorted(
        (group for group in groups if group.n > 1 and group.iqm is not None),
        key=lambda group: -(group.iqm.value or 0.0) if group.iqm else 0.0,
    )
    return [
        Improvement(
            a=a.id,
            b=b.id,
            probability=EstimateOut.of(probability_of_improvement([scores[a.id]], [scores[b.id]])),
        )
        for a, b in combinations(ranked, 2)
        if worlds[a.id] == worlds[b.id]
    ]
