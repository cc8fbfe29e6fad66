"""Users, rules and workers' rounds for tests of alerts."""

from typing import Any

from sqlalchemy import Engine, select

from backend.access.auth import repository as auth_rows
from backend.alerts.rules import service as rules
from backend.alerts.rules.schemas import RuleRequest
from backend.coordination.alerting import raise_alerts
from backend.coordination.context import Context
from backend.db import Alert, AlertRule, User
from backend.db.base import new_id
from backend.db.engine import reading, writing
from backend.platform.principals import Credential, Principal, Role
from tests.support.service import RunningService


def make_user(engine: Engine, role: Role = Role.OPERATOR) -> Principal:
    """Store a user."""
    with writing(engine) as session:
        user = auth_rows.add_user(session, f"{role} {new_id()}", role)
    return principal_of(user)


def principal_of(user: User) -> Principal:
    """A user, logged in."""
    return Principal(user.id, user.name, Role(user.role), Credential("session", "s"))


def make_rule(engine: Engine, owner: Principal, *kinds: str, **fields: Any) -> AlertRule:
    """Store a rule."""
    with writing(engine) as session:
        return rules.create(session, owner, RuleRequest.model_validate({"kinds": list(kinds)} | fields))


def evaluate(service: RunningService) -> None:
    """Do what a worker does every few seconds."""
    context = Context(service.settings, service.engine, service.artifacts, service.app_state.bus)
    raise_alerts(context, {})


def inbox(engine: Engine, owner: Principal | None = None) -> list[Alert]:
    """The alerts of a user or of all, oldest first."""
    alerts = select(Alert).order_by(Alert.id)
    if owner is not None:
        alerts = alerts.where(Alert.owner_id == owner.id)
    with reading(engine) as session:
        return list(session.scalars(alerts))
