"""Rules for alerts: what a user wants to know of runs, hosts, sweeps and studies."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Path, Query
from sqlalchemy.orm import Session

from backend.alerts.rules import repository, service
from backend.alerts.rules.schemas import RuleOut, RulePage, RuleRequest
from backend.db import AlertRule
from backend.http.access import Viewer
from backend.http.dependencies import ReadSession, WriteSession
from backend.http.idempotency.route import IdempotentRoute
from backend.http.pages import Cursor, Limit
from backend.http.routing import ResourceRouter
from backend.platform.errors import Forbidden
from backend.platform.principals import Role
from backend.specs.fields import ULID

router = ResourceRouter(prefix="/alert-rules", tags=["alert-rules"], route_class=IdempotentRoute)

RuleId = Annotated[str, Path(pattern=ULID, description="Id of the rule.")]


@router.get("")
def list_alert_rules(
    principal: Viewer,
    session: ReadSession,
    everyone: Annotated[bool, Query(description="Rules of all users; for admins.")] = False,
    run: Annotated[str | None, Query(pattern=ULID, description="Only rules about this run.")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> RulePage:
    """Your rules, latest first."""
    if everyone and principal.role != Role.ADMIN:
        raise Forbidden(f"this requires the role admin; your role is {principal.role}")
    owner = None if everyone else principal.id
    rows, next_cursor = repository.page(session, owner, run, limit=limit, cursor=cursor)
    return RulePage(items=_rules(session, rows), next_cursor=next_cursor)


@router.post("", status_code=201)
def create_alert_rule(body: RuleRequest, principal: Viewer, session: WriteSession) -> RuleOut:
    """Create a rule. What happens from now on and matches it appears in your inbox, `GET /alerts`.

    A rule has one alert for each attempt of a run and each kind, and at most 60 a day.
    """
    [rule] = _rules(session, [service.create(session, principal, body)])
    return rule


@router.put("/{rule_id}")
def replace_alert_rule(
    rule_id: RuleId, body: RuleRequest, principal: Viewer, session: WriteSession
) -> RuleOut:
    """Replace a rule of yours: it is about what happens from now on."""
    [rule] = _rules(session, [service.replace(session, principal, rule_id, body)])
    return rule


@router.delete("/{rule_id}", status_code=204)
def delete_alert_rule(rule_id: RuleId, principal: Viewer, session: WriteSession) -> None:
    """Delete a rule of yours, or as an admin any; its alerts stay."""
    service.delete(session, principal, rule_id)


def _rules(session: Session, rows: Sequence[AlertRule]) -> list[RuleOut]:
    targets = repository.targets_of(session, [rule.id for rule in rows])
    names = repository.run_names(session, {rule.run_id for rule in rows if rule.run_id})
    return [RuleOut.of(rule, targets.get(rule.id, []), names.get(rule.run_id or "")) for rule in rows]
