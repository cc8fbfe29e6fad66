"""Rules for alerts: each is of one user, who alone sees and changes it; admins see and delete any."""

from sqlalchemy.orm import Session

from backend.alerts.rules import repository
from backend.alerts.rules.schemas import RuleRequest
from backend.alerts.targets import service as targets
from backend.db import AlertRule
from backend.db.base import new_id
from backend.db.changes import record_change
from backend.db.clock import database_now
from backend.platform.errors import Conflict, Forbidden, NotFound
from backend.platform.principals import Principal, Role
from backend.runs.runs import service as runs

MAX_OF_USER = 100
"""Rules of one user."""


def create(session: Session, principal: Principal, request: RuleRequest) -> AlertRule:
    """Create a rule of the caller.

    Raises:
        NotFound: there is no such run.
        Invalid: there is no such target.
        Forbidden: it has targets, and the caller is a viewer.
        Conflict: the caller has as many rules as a user may have.
    """
    if repository.count(session, principal.id) >= MAX_OF_USER:
        raise Conflict(f"you have {MAX_OF_USER} rules already; delete one")
    _check(session, principal, request)
    rule = AlertRule(
        id=new_id(), owner_id=principal.id, created_at=database_now(session), **request.columns()
    )
    repository.add(session, rule)
    repository.set_targets(session, rule.id, request.targets)
    _publish(session, rule)
    return rule


def replace(session: Session, principal: Principal, rule_id: str, request: RuleRequest) -> AlertRule:
    """Replace a rule of the caller. It is about what happens from now on; its alerts stay.

    Raises:
        NotFound: the caller has no such rule, or there is no such run.
        Invalid: there is no such target.
        Forbidden: it has targets, and the caller is a viewer.
    """
    rule = repository.get(session, rule_id, for_update=True)
    if rule is None or rule.owner_id != principal.id:
        raise NotFound(f"you have no rule {rule_id}")
    _check(session, principal, request)
    for name, value in request.columns().items():
        setattr(rule, name, value)
    rule.created_at = database_now(session)
    repository.set_targets(session, rule.id, request.targets)
    _publish(session, rule)
    return rule


def delete(session: Session, principal: Principal, rule_id: str) -> None:
    """Delete a rule: one's own, or as an admin any. Its alerts stay.

    Raises:
        NotFound: there is no such rule that the caller may see.
    """
    rule = repository.get(session, rule_id, for_update=True)
    if rule is None or (rule.owner_id != principal.id and principal.role != Role.ADMIN):
        raise NotFound(f"rule {rule_id} does not exist")
    repository.remove(session, rule)
    _publish(session, rule, "deleted")


def _check(session: Session, principal: Principal, request: RuleRequest) -> None:
    if request.targets and not principal.role.covers(Role.OPERATOR):
        raise Forbidden(f"targets require the role {Role.OPERATOR}; your role is {principal.role}")
    if request.run_id is not None:
        runs.get(session, request.run_id)
    targets.require(session, request.targets)


def _publish(session: Session, rule: AlertRule, state: str | None = None) -> None:
    record_change(session, "alert_rule", rule.id, state=state, parents={"user": rule.owner_id})
