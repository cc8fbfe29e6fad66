"""The record of changes and logins."""

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Depends, Query
from fastapi.responses import StreamingResponse
from pydantic import AfterValidator, AwareDatetime, BeforeValidator

from backend.access.audit import export, repository
from backend.access.audit.repository import Filter
from backend.access.audit.schemas import AuditEntryOut, AuditPage
from backend.http.access import Admin
from backend.http.dependencies import AppStateDep, ReadSession
from backend.http.pages import Cursor, Limit
from backend.http.routing import ResourceRouter
from backend.http.streaming import ExportSlot
from backend.platform.errors import Invalid
from backend.platform.text import Text

router = ResourceRouter(prefix="/audit", tags=["audit"])


def _storable(time: datetime) -> datetime:
    if not 1970 <= time.year < 9999:
        raise ValueError("must be in a year from 1970 to 9998")
    return time


def _written(time: object) -> object:
    # A number would be parsed as seconds since 1970.
    if isinstance(time, str) and ":" not in time:
        raise ValueError("must be a date and time, such as 2026-01-31T12:00:00Z")
    return time


Time = Annotated[AwareDatetime, AfterValidator(_storable), BeforeValidator(_written)]


async def _filter(
    actor_id: Annotated[
        Text | None, Query(max_length=26, description="Only what the user with this id did.")
    ] = None,
    user: Annotated[Text | None, Query(max_length=100, description="Part of the user's name.")] = None,
    action: Annotated[
        Text | None, Query(max_length=100, description="Only this operation, such as `stop_run`.")
    ] = None,
    path: Annotated[Text | None, Query(max_length=500, description="Prefix of the address.")] = None,
    address: Annotated[
        Text | None, Query(max_length=64, description="Start of the client's address.")
    ] = None,
    since: Annotated[Time | None, Query(description="Entries of this time or later.")] = None,
    until: Annotated[Time | None, Query(description="Entries before this time.")] = None,
) -> Filter:
    return Filter(
        actor_id=actor_id,
        user=user,
        action=action,
        path=path,
        address=address,
        since=since,
        until=until,
    )


FilterDep = Annotated[Filter, Depends(_filter)]

FILES: dict[int | str, dict[str, Any]] = {
    200: {"model": list[AuditEntryOut], "content": {"text/csv": {"schema": {"type": "string"}}}}
}


@router.get("")
def list_audit(
    principal: Admin, session: ReadSession, wanted: FilterDep, limit: Limit = 100, cursor: Cursor = None
) -> AuditPage:
    """List changes, logins and failed logins, latest first."""
    rows, next_cursor = repository.page(session, wanted, limit=limit, cursor=cursor)
    return AuditPage(items=[AuditEntryOut.model_validate(row) for row in rows], next_cursor=next_cursor)


@router.get("/actions")
def list_audit_actions(principal: Admin, session: ReadSession) -> list[str]:
    """List the actions in the audit trail, for use as a filter."""
    return repository.actions(session)


@router.get("/export", response_class=StreamingResponse, responses=FILES)
def export_audit(
    principal: Admin,
    slot: ExportSlot,
    state: AppStateDep,
    session: ReadSession,
    wanted: FilterDep,
    format: Annotated[Literal["csv", "json"], Query(description="Format of the file.")],
) -> StreamingResponse:
    """All matching entries as a file, latest first, at most 100,000; more are refused."""
    if repository.exceeds(session, wanted, export.MAX_ENTRIES):
        raise Invalid.field(
            "since",
            f"more than {export.MAX_ENTRIES:,} entries match; export shorter periods with since and until",
        )
    as_file, media_type = {
        "csv": (export.as_csv, "text/csv"),
        "json": (export.as_json, "application/json"),
    }[format]
    headers = {"Content-Disposition": f'attachment; filename="callboard-audit.{format}"'}
    return StreamingResponse(as_file(state.db_engine, wanted), headers=headers, media_type=media_type)
