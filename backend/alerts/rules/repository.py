"""Rules for alerts in the database."""

from collections import defaultdict
from collections.abc import Collection, Sequence

from sqlalchemy import delete, func, insert, select
from sqlalchemy.orm import Session

from backend.db import AlertRule, AlertRuleTarget, Run, keyset


def page(
    session: Session, owner_id: str | None, run_id: str | None, *, limit: int, cursor: str | None
) -> tuple[list[AlertRule], str | None]:
    """A page of the rules of a user, or of all, latest first; those about a run if one is given."""
    rules = select(AlertRule)
    if owner_id is not None:
        rules = rules.where(AlertRule.owner_id == owner_id)
    if run_id is not None:
        rules = rules.where(AlertRule.run_id == run_id)
    key = AlertRule.id
    return keyset.page(session, rules, by=key, row_id=key, descending=True, limit=limit, cursor=cursor)


def get(session: Session, rule_id: str, *, for_update: bool = False) -> AlertRule | None:
    """The rule, or None."""
    return session.get(AlertRule, rule_id, with_for_update=for_update or None, populate_existing=for_update)


def count(session: Session, owner_id: str) -> int:
    """Number of a user's rules."""
    counted = select(func.count()).select_from(AlertRule).where(AlertRule.owner_id == owner_id)
    return session.scalars(counted).one()


def every(session: Session) -> Sequence[AlertRule]:
    """All rules, oldest first."""
    return session.scalars(select(AlertRule).order_by(AlertRule.id)).all()


def add(session: Session, rule: AlertRule) -> None:
    """Store a new rule."""
    session.add(rule)
    session.flush()


def remove(session: Session, rule: AlertRule) -> None:
    """Delete a rule; its alerts stay."""
    session.delete(rule)
    session.flush()


def set_targets(session: Session, rule_id: str, target_ids: Collection[str]) -> None:
    """Replace the targets of a rule."""
    session.execute(delete(AlertRuleTarget).where(AlertRuleTarget.rule_id == rule_id))
    if target_ids:
        rows = [{"rule_id": rule_id, "target_id": target_id} for target_id in target_ids]
        session.execute(insert(AlertRuleTarget), rows)


def targets_of(session: Session, rule_ids: Collection[str]) -> dict[str, list[str]]:
    """Ids of the targets of rules, by rule."""
    chosen = select(AlertRuleTarget).where(AlertRuleTarget.rule_id.in_(rule_ids))
    targets: dict[str, list[str]] = defaultdict(list)
    for row in session.scalars(chosen.order_by(AlertRuleTarget.target_id)):
        targets[row.rule_id].append(row.target_id)
    return targets


def run_names(session: Session, run_ids: Collection[str]) -> dict[str, str]:
    """Names of runs, by id."""
    return dict(session.execute(select(Run.id, Run.name).where(Run.id.in_(run_ids))).all())
