"""What rules are compared with, in the database."""

from collections.abc import Collection, Sequence
from datetime import datetime

from sqlalchemy import delete, func, or_, select
from sqlalchemy.orm import Session

from backend.db import AlertRule, AlertSignal, Experiment, Run, Series, Transition, User
from backend.specs.states import LEASED, RunState


def latest_signal(session: Session) -> int | None:
    """Id of the latest signal that no worker has compared with the rules; None if there is none."""
    return session.scalars(select(func.max(AlertSignal.id))).one()


def subjects(session: Session) -> set[str]:
    """What such signals are about."""
    return set(session.scalars(select(AlertSignal.subject_id).distinct()))


def take_signals(session: Session, until: int, limit: int) -> Sequence[AlertSignal]:
    """Delete the first signals up to this one, without those that another worker has just taken, and return
    them."""
    first = select(AlertSignal).where(AlertSignal.id <= until).order_by(AlertSignal.id).limit(limit)
    taken = session.scalars(first.with_for_update(skip_locked=True)).all()
    session.execute(delete(AlertSignal).where(AlertSignal.id.in_([signal.id for signal in taken])))
    return taken


def runs(session: Session, ids: Collection[str]) -> Sequence[Run]:
    """The runs that train, and those of `ids`; without demo runs."""
    chosen = or_(Run.state.in_(LEASED), Run.id.in_(ids))
    return session.scalars(select(Run).where(chosen, Run.demo.is_(False))).all()


def run(session: Session, run_id: str) -> Run | None:
    """The run, or None."""
    return session.get(Run, run_id)


def experiment_name(session: Session, experiment_id: str) -> str | None:
    """Name of a sweep or study; None if it has been deleted."""
    return session.scalars(select(Experiment.name).where(Experiment.id == experiment_id)).one_or_none()


def running_since(session: Session, run_ids: Collection[str]) -> dict[str, datetime]:
    """When runs last became running, by run."""
    rows = session.execute(
        select(Transition.run_id, func.max(Transition.time))
        .where(Transition.run_id.in_(run_ids), Transition.after == RunState.RUNNING)
        .group_by(Transition.run_id)
    )
    return dict(rows.all())


def not_finite(session: Session, run_ids: Collection[str]) -> dict[str, str]:
    """The first metric by name of each run that has a value which is not finite."""
    rows = session.execute(
        select(Series.run_id, func.min(Series.metric))
        .where(Series.run_id.in_(run_ids), Series.n_points > Series.n_finite)
        .group_by(Series.run_id)
    )
    return dict(rows.all())


def roles(session: Session, user_ids: Collection[str]) -> dict[str, str]:
    """Roles of users, by id."""
    return dict(session.execute(select(User.id, User.role).where(User.id.in_(user_ids))).all())


def lock_rule(session: Session, rule_id: str) -> bool:
    """Lock a rule, so that its alerts are counted one after another; False if it has been deleted."""
    rule = select(AlertRule.id).where(AlertRule.id == rule_id).with_for_update()
    return session.scalars(rule).first() is not None
