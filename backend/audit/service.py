"""Writing down who changed what: every request that changes something, by itself."""

import json
from typing import Any

from fastapi import Request
from sqlalchemy.orm import Session

from backend.audit import repository
from backend.errors import SECRET_FIELDS

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
MAX_PATH = 2_000


def record(session: Session, request: Request, body: bytes) -> None:
    """Write a successful request down in its own transaction; reading leaves no trace."""
    if request.method in SAFE_METHODS:
        return
    actor = getattr(request.state, "actor", None)
    repository.add(
        session,
        actor_id=actor.id if actor else None,
        actor_name=actor.name if actor else None,
        action=request.scope["route"].name,
        path=request.url.path[:MAX_PATH],
        body=_without_secrets(body),
        request_id=request.state.request_id,
    )


def _without_secrets(body: bytes) -> dict[str, Any]:
    asked = json.loads(body) if body else {}
    if not isinstance(asked, dict):
        return {}
    return {name: "(secret)" if name in SECRET_FIELDS else value for name, value in asked.items()}
