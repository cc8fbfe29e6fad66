"""Records every request that changes something, every login, and what commands change, in the audit trail."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from backend.access.audit import repository
from backend.db.base import new_id
from backend.platform.errors import SECRET_FIELDS
from backend.platform.principals import Principal

MAX_PATH = 2_000
MAX_FIELDS = 100
MAX_VALUE = 4_000
"""Characters of a field's value, as JSON; of a longer one only the length is recorded."""


@dataclass(frozen=True)
class Origin:
    """The request that an entry is about."""

    request_id: str
    path: str
    address: str | None
    """The client's address; None if it is unknown."""


def record_change(
    session: Session, origin: Origin, action: str, principal: Principal | None, body: bytes
) -> None:
    """Record a successful request in the transaction of its change.

    Args:
        session: a writing session.
        origin: the request.
        action: the name of its operation.
        principal: who has sent it; None for a request that needs no login.
        body: the request's body, of which secrets are not recorded.
    """
    actor_id, actor_name = (principal.id, principal.name) if principal else (None, None)
    _add(session, origin, action, actor_id, actor_name, _describe_body(body))


def record_login(
    session: Session,
    origin: Origin,
    action: str,
    actor_id: str | None,
    actor_name: str | None,
    details: Mapping[str, str] | None = None,
) -> None:
    """Record a login that no request with a change records: by link, by OpenID Connect, or one that failed.

    Args:
        session: a writing session.
        origin: the login's request.
        action: what happened.
        actor_id: the user, if the login succeeded or they were logged in before.
        actor_name: their name, or the one that was given.
        details: what else is known of the login, without secrets.
    """
    body = {name: _bounded(name, value) for name, value in (details or {}).items()}
    _add(session, origin, action, actor_id, actor_name, body)


def record_command(
    session: Session, command: str, action: str, details: Mapping[str, str] | None = None
) -> None:
    """Record what a command has changed on this machine, where nobody is asked for a login.

    Args:
        session: a writing session.
        command: the command, such as `callboard token create`.
        action: what happened.
        details: what it was done with, without secrets.
    """
    body = {name: _bounded(name, value) for name, value in (details or {}).items()}
    _add(session, Origin(new_id(), command, None), action, None, None, body)


def _add(
    session: Session,
    origin: Origin,
    action: str,
    actor_id: str | None,
    actor_name: str | None,
    body: dict[str, Any],
) -> None:
    repository.add(
        session,
        actor_id=actor_id,
        actor_name=actor_name,
        address=origin.address,
        action=action,
        path=origin.path[:MAX_PATH],
        body=body,
        request_id=origin.request_id,
    )


def _describe_body(body: bytes) -> dict[str, Any]:
    """A request's body without secrets, and without values that would make the trail large.

    Some routes take no body; what a client sends to them all the same may be anything.
    """
    try:
        values = json.loads(body) if body else {}
    except (ValueError, RecursionError):
        return {}
    if not isinstance(values, dict):
        return {}
    return {name: _bounded(name, value) for name, value in list(values.items())[:MAX_FIELDS]}


def _bounded(name: str, value: Any) -> Any:
    if name in SECRET_FIELDS:
        return "(secret)"
    try:
        n_characters = len(json.dumps(value, allow_nan=False))
    except ValueError:
        return "(a number that is not finite)"  # PostgreSQL has no JSON of it
    return value if n_characters <= MAX_VALUE else f"({n_characters} characters)"
