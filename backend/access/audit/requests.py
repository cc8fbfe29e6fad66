"""Records requests in the audit trail.

Separate from `service`, which knows no HTTP.
"""

from fastapi import Request
from sqlalchemy.orm import Session

from backend.access.audit import service
from backend.http.addresses import address_of
from backend.http.context import context_of


def origin_of(request: Request) -> service.Origin:
    """What the audit trail keeps of a request."""
    return service.Origin(context_of(request).request_id, request.scope["path"], address_of(request) or None)


def record_change(session: Session, request: Request, body: bytes) -> None:
    """Record a successful request, by the name of its route, in the transaction of its change."""
    principal = context_of(request).principal
    service.record_change(session, origin_of(request), request.scope["route"].name, principal, body)
