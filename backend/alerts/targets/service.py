"""Targets of alerts: admins create and delete them, and users choose among them."""

from collections.abc import Collection

from sqlalchemy.orm import Session

from backend.alerts.targets import repository
from backend.alerts.targets.addresses import BadAddress, masked, opened
from backend.alerts.targets.schemas import TargetRequest
from backend.db import AlertTarget
from backend.db.base import new_id
from backend.db.changes import record_change
from backend.db.clock import database_now
from backend.platform.errors import Conflict, Invalid, NotFound
from backend.specs.problems import quoted

MAX_TARGETS = 100


def create(session: Session, request: TargetRequest, created_by: str) -> AlertTarget:
    """Create a target.

    Raises:
        Invalid: its address is of no allowed service, or another target has its name.
        Conflict: there are as many targets as there may be.
    """
    try:
        kind, sender = opened(request.secret_url)
    except BadAddress as error:
        raise Invalid.field("secret_url", str(error)) from None
    if repository.has_name(session, request.name):
        raise Invalid.field("name", f"another target is called {quoted(request.name)}")
    if repository.count(session) >= MAX_TARGETS:
        raise Conflict(f"there are {MAX_TARGETS} targets already; delete one")
    target = AlertTarget(
        id=new_id(),
        name=request.name,
        kind=kind,
        secret_url=request.secret_url,
        masked_url=masked(sender),
        created_at=database_now(session),
        created_by=created_by,
    )
    repository.add(session, target)
    record_change(session, "alert_target", target.id)
    return target


def get(session: Session, target_id: str) -> AlertTarget:
    """The target.

    Raises:
        NotFound: there is no such target.
    """
    target = repository.get(session, target_id)
    if target is None:
        raise NotFound(f"target {target_id} does not exist")
    return target


def delete(session: Session, target_id: str) -> None:
    """Delete a target, with what waits to be delivered to it.

    Raises:
        NotFound: there is no such target.
    """
    repository.remove(session, get(session, target_id))
    record_change(session, "alert_target", target_id, state="deleted")


def require(session: Session, target_ids: Collection[str]) -> None:
    """Refuse ids that are of no target.

    Raises:
        Invalid: with the first of them.
    """
    missing = [*{*target_ids} - repository.existing(session, target_ids)] if target_ids else []
    if missing:
        raise Invalid.field("targets", f"target {quoted(missing[0])} does not exist")
