"""Statistics of chosen runs, those that differ in their seed alone as one group."""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from sqlalchemy.orm import Session

from backend.comparisons.courses import Course, by_evaluation, by_training
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
    found = series.find_runs(session, run_ids)
    runs = {run_id: found[run_id] for run_id in dict.fromkeys(run_ids)}
    courses = _by_training(session, runs) if score == "training" else _by_evaluation(session, runs)
    members: dict[str, list[Run]] = {}
    for run in runs.values():
        members.setdefault(group_key(run.spec), []).append(run)
    firsts = [some[0] for some in members.values()]
    worlds = dict(zip(members, map(scoring, firsts), strict=True))
    names = dict(zip(members, group_names(firsts), strict=True))
    ends: dict[str, int] = {}
    for key, some in members.items():
        for end in (courses[run.id].end for run in some if len(courses[run.id].scores)):
            ends[worlds[key]] = min(end, ends.get(worlds[key], end))
    groups = [
        _group(
            key, names[key], some, courses, ends.get(worlds[key], 0) if at == "common" else None, threshold
        )
        for key, some in members.items()
    ]
    return Comparison(
        score=score,
        at=at,
        threshold=threshold,
        method=METHOD,
        groups=groups,
        improvements=_improvements(groups, worlds),
    )


def _by_training(session: Session, runs: Mapping[str, Run]) -> dict[str, Course]:
    chosen = [one for one in metrics.list_series(session, list(runs), [METRIC]) if one.source == ""]
    chunks = metrics.live_chunks(session, [one.id for one in chosen])
    courses = dict.fromkeys(runs, by_training(empty(_COLUMNS)))
    for one in chosen:
        data = metrics.points_of(session, chunks[one.id], _COLUMNS)
        if data:
            courses[one.run_id] = by_training(joined([data[chunk.id] for chunk in chunks[one.id]]))
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
