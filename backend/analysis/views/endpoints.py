"""Views: which runs a page shows, and how, under a name."""

from typing import Annotated

from fastapi import Path, Query, Response
from sqlalchemy.orm import Session

from backend.analysis.views import repository, service
from backend.analysis.views.schemas import (
    ViewChanges,
    ViewOut,
    ViewPage,
    ViewRequest,
    ViewStateOut,
    ViewStates,
    ViewSummary,
)
from backend.db import View
from backend.http.access import Viewer
from backend.http.dependencies import ReadSession, RequestContextDep, WriteSession
from backend.http.idempotency.route import IdempotentRoute
from backend.http.pages import Cursor, Limit
from backend.http.parameters import IfMatch, tags_of
from backend.http.routing import ResourceRouter
from backend.platform.principals import Principal
from backend.platform.text import Text
from backend.specs.fields import ULID

router = ResourceRouter(prefix="/views", tags=["views"], route_class=IdempotentRoute)

ViewId = Annotated[str, Path(pattern=ULID, description="Id of the view.")]


@router.get("")
def list_views(
    principal: Viewer,
    session: ReadSession,
    name: Annotated[Text | None, Query(max_length=100, description="Only views of this name.")] = None,
    project: Annotated[
        Text | None,
        Query(max_length=64, description="Only views of this project; empty: only those of all projects."),
    ] = None,
    owner: Annotated[
        Text | None, Query(max_length=100, description="Only views of the user of this name.")
    ] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> ViewPage:
    """Named views, one's own and shared ones, those changed last first."""
    rows, next_cursor = repository.page(
        session, principal.id, name=name, project=project, owner=owner, limit=limit, cursor=cursor
    )
    items = [ViewSummary.of(view, of_user, principal.id) for view, of_user in rows]
    return ViewPage(items=items, next_cursor=next_cursor)


@router.post("", status_code=201)
def create_view(
    body: ViewRequest, principal: Viewer, session: WriteSession, context: RequestContextDep
) -> ViewOut:
    """Save a view. To share one requires the role operator."""
    # The address of a page: no act that anybody looks for.
    context.audited = context.audited and body.name is not None
    return _out(session, service.create(session, body, principal), principal)


@router.get("/{view_id:ulid}")
def read_view(view_id: ViewId, principal: Viewer, session: ReadSession, response: Response) -> ViewOut:
    """A view: one's own, or a shared one. Its entity tag is its version."""
    view = service.get(session, view_id, principal)
    response.headers["ETag"] = f'"{view.version}"'
    return _out(session, view, principal)


@router.patch("/{view_id:ulid}")
def change_view(
    view_id: ViewId,
    body: ViewChanges,
    principal: Viewer,
    session: WriteSession,
    context: RequestContextDep,
    response: Response,
    if_match: IfMatch = None,
) -> ViewOut:
    """Change a view: one's own, or with the role operator a shared one.

    With `If-Match`, nothing changes if the view has another entity tag: somebody has saved it meanwhile.
    """
    view = service.change(session, view_id, body, principal, tags_of(if_match))
    context.audited = context.audited and view.name is not None
    response.headers["ETag"] = f'"{view.version}"'
    return _out(session, view, principal)


@router.delete("/{view_id:ulid}", status_code=204)
def delete_view(view_id: ViewId, principal: Viewer, session: WriteSession) -> None:
    """Delete a view: one's own, or as an admin a shared one."""
    service.delete(session, view_id, principal)


@router.get("/{view_id:ulid}/states")
def list_view_states(view_id: ViewId, principal: Viewer, session: ReadSession) -> ViewStates:
    """The last 20 documents of a view that another one has replaced."""
    view = service.get(session, view_id, principal)
    return ViewStates(items=[ViewStateOut.of(state) for state in repository.states(session, view.id)])


def _out(session: Session, view: View, principal: Principal) -> ViewOut:
    return ViewOut.of(view, repository.owner_name(session, view), principal.id)
