"""Routes of `/retention` and `/storage`."""

from typing import Annotated

from fastapi import APIRouter, Query

from backend.http.access import Admin, Operator, Viewer
from backend.http.dependencies import ReadSession, WriteSession
from backend.retention import repository, service
from backend.retention.schemas import (
    GroupPolicy,
    Preview,
    PreviewRequest,
    RetentionOut,
    RunStoragePage,
    StorageOut,
)
from backend.specs.retention import InstallationPolicy
from backend.specs.run_fields import MAX_GROUP
from backend.text import Text

router = APIRouter(tags=["storage"])


@router.get("/storage")
def read_storage(principal: Viewer, session: ReadSession) -> StorageOut:
    """Disk usage by kind."""
    return service.storage(session)


@router.get("/storage/runs")
def list_storage_of_runs(
    principal: Viewer,
    session: ReadSession,
    limit: Annotated[int, Query(ge=1, le=500, description="Maximum number of runs.")] = 50,
) -> RunStoragePage:
    """The runs that take the most space, the largest first."""
    return RunStoragePage(items=service.runs_by_size(session, limit))


@router.get("/retention")
def read_retention(principal: Viewer, session: ReadSession) -> RetentionOut:
    """The retention settings of the installation and of the groups that have some."""
    return service.settings(session)


@router.put("/retention/installation")
def set_retention(body: InstallationPolicy, principal: Admin, session: WriteSession) -> RetentionOut:
    """Replace the retention settings of the installation; clean-up applies them within minutes."""
    repository.set_policy(session, None, body, principal.id)
    return service.settings(session)


@router.put("/retention/groups")
def set_group_retention(body: GroupPolicy, principal: Operator, session: WriteSession) -> RetentionOut:
    """Replace the retention settings of a group, which apply to its runs instead of the installation's."""
    repository.set_policy(session, body.group, body.policy, principal.id)
    return service.settings(session)


@router.delete("/retention/groups", status_code=204)
def delete_group_retention(
    group: Annotated[Text, Query(max_length=MAX_GROUP, description="Name of the group.")],
    principal: Operator,
    session: WriteSession,
) -> None:
    """Delete the retention settings of a group; those of the installation apply to it again."""
    service.forget_group(session, group)


@router.post("/retention/preview")
def preview_retention(body: PreviewRequest, principal: Operator, session: ReadSession) -> Preview:
    """What clean-up would remove with these settings; nothing is changed."""
    return service.preview(session, body)
