"""The last evaluation of every finished run under each protocol, and what it depends on."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import and_, func, or_, select
from sqlalchemy.orm import Session

from backend.db import Evaluation, Run
from backend.db.run import WITH_DELETED
from backend.runs.runs.groups import Brief
from backend.specs.run_fields import CALLBOARD
from backend.specs.states import BROKEN_OFF, RunState

_LARGEST = 1e308
"""Neither NaN nor infinity lies within: PostgreSQL sorts NaN above all numbers."""
_COLUMNS = [getattr(Run, name) for name in Brief._fields if name != "spec_text"]
_OWN = (
    Run.origin == CALLBOARD,
    Run.demo.is_(False),
    Run.archived.is_(False),
)
_COUNTED = (Run.state == RunState.FINISHED, *_OWN)
"""Which runs have scores."""
_BROKEN_OFF = (Run.state.in_(BROKEN_OFF), *_OWN)


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
    """The last evaluation of every finished run under each protocol, in one pass: of those by the run's own
    engine or, without any under the protocol, of those that users requested. Specifications are not read.

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
        )
        .join(ranked, ranked.c.run_id == Run.id)
        .where(ranked.c.place == 1, *_COUNTED)
        .order_by(Run.id)
    )
    return [LastScore(Brief._make((*row[5:], None)), *row[:5]) for row in session.execute(query)]


def broken_off(session: Session) -> list[Brief]:
    """Every run that failed, was lost or was stopped, without archived ones and the demo run."""
    return [Brief._make((*row, None)) for row in session.execute(select(*_COLUMNS).where(*_BROKEN_OFF))]


def revisions(session: Session) -> Sequence[tuple[str, int]]:
    """Id and revision of every run that has scores or may have them, or broke off, by id: every change of
    such a run, of its settings or of its evaluations changes the revision."""
    query = select(Run.id, Run.revision).where(or_(and_(*_COUNTED), and_(*_BROKEN_OFF))).order_by(Run.id)
    return [(run_id, revision) for run_id, revision in session.execute(query)]


def parents(session: Session) -> Sequence[tuple[str, str | None]]:
    """Every fork with the run that it was forked from, in the order of the latter; deleted forks that can be
    restored are included."""
    query = select(Run.id, Run.parent_id).where(Run.parent_id.is_not(None)).order_by(Run.parent_id, Run.id)
    rows = session.execute(query, execution_options=WITH_DELETED)
    return [(run_id, parent_id) for run_id, parent_id in rows]
