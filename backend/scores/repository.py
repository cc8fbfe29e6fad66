"""The last evaluation of every finished run under each protocol."""

from typing import NamedTuple

from sqlalchemy import Text, cast, func, select
from sqlalchemy.orm import Session

from backend.db import Evaluation, Run
from backend.runs.groups import Brief
from backend.specs.run_fields import CALLBOARD
from backend.specs.states import RunState

_LARGEST = 1e308
"""Neither NaN nor infinity lies within: PostgreSQL sorts NaN above all numbers."""
_COLUMNS = [getattr(Run, name) for name in Brief._fields if name != "spec_text"]


class LastScore(NamedTuple):
    """The last evaluation of a run under a protocol."""

    run: Brief
    protocol: str
    score: float
    agent_steps: int
    """Of the evaluated checkpoint."""
    wall_time_s: float
    """Training time to that checkpoint."""
    n_episodes: int


def last_scores(session: Session) -> list[LastScore]:
    """The last evaluation of every finished run under each protocol, in one pass: the run's own, or without
    any under the protocol those that users requested.

    Of several at the same agent steps the first counts: at the end of training DQN and Gorila evaluate their
    best parameters again, which is no score of the last. Archived runs and the demo run are left out.
    """
    place = func.row_number().over(
        partition_by=(Evaluation.run_id, Evaluation.protocol),
        order_by=(
            Evaluation.attempt.is_(None),
            Evaluation.agent_steps.desc(),
            Evaluation.requested_at,
            Evaluation.id,
        ),
    )
    ranked = (
        select(
            Evaluation.run_id,
            Evaluation.protocol,
            Evaluation.mean_return,
            Evaluation.agent_steps,
            Evaluation.wall_time_s,
            Evaluation.n_episodes,
            place.label("place"),
        )
        .where(Evaluation.superseded.is_(False), Evaluation.mean_return.between(-_LARGEST, _LARGEST))
        .subquery()
    )
    query = (
        select(
            ranked.c.protocol,
            ranked.c.mean_return,
            ranked.c.agent_steps,
            ranked.c.wall_time_s,
            ranked.c.n_episodes,
            *_COLUMNS,
            cast(Run.spec, Text),
        )
        .join(ranked, ranked.c.run_id == Run.id)
        .where(
            ranked.c.place == 1,
            Run.state == RunState.FINISHED,
            Run.origin == CALLBOARD,
            Run.demo.is_(False),
            Run.archived.is_(False),
        )
        .order_by(Run.id)
    )
    return [LastScore(Brief._make(row[5:]), *row[:5]) for row in session.execute(query)]
