"""Records every request that changes something, and every login, in the audit trail."""

import json
from collections.abc import Mapping
from typing import Any

from fastapi import Request
from sqlalchemy.orm import Session

from backend.audit import repository
from backend.errors import SECRET_FIELDS
from backend.http.pages import SAFE_METHODS, address_of

MAX_PATH = 2_000
MAX_FIELDS = 100
MAX_VALUE = 4_000
"""Characters of a field's value, as JSON; of a longer one only the length is recorded."""


def record(session: Session, request: Request, body: bytes) -> None:
    """Record a successful request in its own transaction; requests that only read are not recorded, nor those
    whose endpoint has set `request.state.audited` to false because they changed nothing."""
    if request.method in SAFE_METHODS or not getattr(request.state, "audited", True):
        return
    principal = getattr(request.state, "principal", None)
    _add(
        session,
        request,
        request.scope["route"].name,
        principal.id if principal else None,
        principal.name if principal else None,
        _recorded(body),
    )


def record_login(
    session: Session,
    request: Request,
    action: str,
    actor_id: str | None,
    actor_name: str | None,
    details: Mapping[str, str] | None = None,
) -> None:
    """Record a login that no request with a change records: by link, by OpenID Connect, or one that failed.

    Args:
        session: a writing session.
        request: the login's request.
        action: what happened.
        actor_id: the user, if the login succeeded or they were logged in before.
        actor_name: their name, or the one that was given.
        details: what else is known of it, without secrets.
    """
    body = {name: _bounded(name, value) for name, value in (details or {}).items()}
    _add(session, request, action, actor_id, actor_name, body)


def _add(
    session: Session,
    request: Request,
    action: str,
    actor_id: str | None,
    actor_name: str | None,
    body: dict[str, Any],
) -> None:
    repository.add(
        session,
        actor_id=actor_id,
        actor_name=actor_name,
        address=address_of(request) or None,
        action=action,
        path=request.scope["path"][:MAX_PATH],
        body=body,
        request_id=request.state.request_id,
    )


def _recorded(body: bytes) -> dict[str, Any]:
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
    n_characters = len(json.dumps(value))
    return value if n_characters <= MAX_VALUE else f"({n_characters} characters)"
