"""Response bodies of the audit trail."""

from datetime import datetime
from typing import Any

from pydantic import ConfigDict, Field

from backend.platform.schemas import Id, Page
from backend.specs.fields import Schema


class AuditEntryOut(Schema):
    """One request that changed something, a login, or a login that failed."""

    model_config = ConfigDict(from_attributes=True)

    id: Id
    """Id of the entry."""
    time: datetime
    """When the request was recorded."""
    actor_id: str | None
    """Id of the user who acted; null for a login that failed."""
    actor_name: str | None = Field(examples=["ada"])
    """Name of the user who acted, as it was then; of a login that failed, the name that was given."""
    address: str | None
    """The client's address; null if it is not known."""
    action: str = Field(examples=["stop_run"])
    """The operation's id, such as `stop_run`; `_failed` is appended for a login that failed."""
    path: str = Field(examples=["/api/v1/runs/01JD3QZ6W9K0Y5T8H2V4B7N1XC/stop"])
    """Path of the request."""
    body: dict[str, Any]
    """The request body, without secrets; of long values only the length."""
    request_id: Id
    """Id of the request, which the server's log lines carry too."""


class AuditPage(Page):
    """A page of the audit trail."""

    items: list[AuditEntryOut]
    """Entries of this page, latest first."""
