"""Response bodies of the audit trail."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict

from backend.schemas import Page


class AuditEntryOut(BaseModel):
    """One request that changed something, a login, or a login that failed."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    time: datetime
    actor_id: str | None
    """Id of the user who acted; null for a login that failed."""
    actor_name: str | None
    """Name of the user who acted, as it was then; of a login that failed, the name that was given."""
    address: str | None
    """The client's address; null if it is not known."""
    action: str
    """The operation's id, such as `stop_run`; `_failed` is appended for a login that failed."""
    path: str
    body: dict[str, Any]
    """The request body, without secrets; of long values only the length."""
    request_id: str


class AuditPage(Page[AuditEntryOut]):
    """A page of the audit trail."""
