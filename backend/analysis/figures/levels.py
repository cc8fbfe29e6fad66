"""Scores beside a learning curve: of evaluations, published ones, and a person's."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from sqlalchemy.orm import Session

from backend.analysis.figures.marks import XOf
from backend.db import Checkpoint, Evaluation, Run
from backend.drawing.learning_curve import Evaluated, Level
from backend.replays.recordings import service as recordings
from backend.runs.runs.groups import is_measured_as_published, own_protocol, published_scores
from backend.specs.environments import ENVIRONMENTS
from backend.specs.play import HUMAN_PLAY, seen_by_people


def levels(session: Session, runs_by_id: Mapping[str, Run], done: Sequence[Evaluation]) -> list[Level]:
    """Published scores that can be compared with the runs, and a person's of this installation."""
    protocols = {
        run_id: {evaluation.protocol for evaluation in done if evaluation.run_id == run_id}
        for run_id in runs_by_id
    }
    with_protocols = [(run, protocols[run_id]) for run_id, run in runs_by_id.items()]
    comparable = published_scores(with_protocols)
    levels = [Level(score.label, score.score, score.protocol) for score in comparable]
    return levels + _human_here(session, with_protocols)


def _human_here(session: Session, runs_used: Sequence[tuple[Run, Collection[str]]]) -> list[Level]:
    """The human reference of this installation, beside runs with the settings of a person's games."""
    names = {run.environment for run, _ in runs_used}
    environment = ENVIRONMENTS.get(names.pop()) if len(names) == 1 else None
    if environment is None:
        return []
    for run, used in runs_used:
        protocols: Collection[str | None] = used or {own_protocol(run)}
        if not all(name and is_measured_as_published(run, environment, name) for name in protocols):
            return []
    mean = recordings.human_references(session, environment.id).get(environment.id)
    if mean is None:
        return []
    seen = seen_by_people(environment)
    aid = "" if seen is None else f", with {seen}"
    return [Level(f"human here, {mean.n_games} games{aid}", mean.mean_return, HUMAN_PLAY)]


def evaluated(
    done: Sequence[Evaluation], saved: Sequence[Checkpoint], names: Mapping[str, str], x_of: XOf
) -> list[Evaluated]:
    """The runs' evaluations at their x, without those of the best parameters."""
    at = {(checkpoint.run_id, checkpoint.file): checkpoint for checkpoint in saved}
    points = []
    for evaluation in done:
        checkpoint = at.get((evaluation.run_id, evaluation.checkpoint))
        if checkpoint is not None and checkpoint.agent_steps < evaluation.agent_steps:
            continue  # of the best parameters, again, at the end: no score of the last ones
        x = x_of(evaluation)
        if x is None:  # an evaluation has no episode count; its checkpoint has one
            x = None if checkpoint is None else x_of(checkpoint)
        if x is not None and evaluation.mean_return is not None and np.isfinite(evaluation.mean_return):
            points.append(
                Evaluated(
                    run=evaluation.run_id,
                    name=names[evaluation.run_id],
                    protocol=evaluation.protocol,
                    x=x,
                    mean_return=evaluation.mean_return,
                    n_episodes=len(evaluation.returns),
                )
            )
    return points
