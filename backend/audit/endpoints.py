"""Route `/audit`."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict

from backend.audit import repository
from backend.auth.access import Admin
from backend.dependencies import ReadSession
from backend.pagination import Cursor, Limit, Page
from backend.text import Text

router = APIRouter(prefix="/audit", tags=["audit"])


class AuditEntryOut(BaseModel):
    """One request that changed something."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    time: datetime
    actor_id: str | None
    actor_name: str | None
    action: str
    """The operation's id, such as `stop_run`."""
    path: str
    body: dict[str, Any]
    """What was asked for, without secrets."""
    request_id: str


class AuditPage(Page[AuditEntryOut]):
    """A page of the audit trail."""


@router.get("")
def list_audit(
    actor: Admin,
    session: ReadSession,
    actor_id: Annotated[Text | None, Query(max_length=26)] = None,
    action: Annotated[Text | None, Query(max_length=100)] = None,
    path: Annotated[Text | None, Query(max_length=500, description="How the address begins.")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> AuditPage:
    """Who changed what, the newest first."""
    rows, next_cursor = repository.page(
        session, actor_id=actor_id, action=action, path=path, limit=limit, cursor=cursor
    )
    return AuditPage(items=[AuditEntryOut.model_validate(row) for row in rows], next_cursor=next_cursor)
