"""Links that show certain runs without a login, and pages of runs as files."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from starlette.responses import HTMLResponse

from backend.analysis.shares import page, repository, service
from backend.analysis.shares.schemas import FrozenRequest, NewShare, ShareOut, SharePage, ShareRequest
from backend.http.access import LoggedInOperator, Viewer
from backend.http.addresses import address_of, network_of
from backend.http.dependencies import ReadSession, WriteSession, get_state, principal_of
from backend.http.pages import Cursor, Limit
from backend.http.routing import ResourceRouter, WritingRoute
from backend.http.transfer import accepts_gzip
from backend.platform.errors import Forbidden
from backend.platform.principals import Role
from backend.specs.fields import ULID

# Not `IdempotentRoute`, which stores responses: a new link has its secret.
router = ResourceRouter(prefix="/shares", tags=["shares"], route_class=WritingRoute)

page_router = APIRouter(prefix="/s", include_in_schema=False)

ShareId = Annotated[str, Path(pattern=ULID, description="Id of the share.")]

_HEADERS = {
    "Content-Security-Policy": f"{page.policy(is_served=True)}; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex",
    "Cache-Control": "no-store",
}


async def _turn(request: Request) -> AsyncIterator[None]:
    async with get_state(request).limits.charts.turn(principal_of(request).id):
        yield


async def _turn_of_link(request: Request) -> AsyncIterator[None]:
    limits = get_state(request).limits
    async with limits.links.turn(network_of(address_of(request))), limits.charts.turn("links"):
        yield


@router.get("")
def list_shares(
    principal: Viewer,
    session: ReadSession,
    everyone: Annotated[bool, Query(description="Links of all users; for admins.")] = False,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> SharePage:
    """Your links that work, latest first; their secrets are not stored."""
    if everyone and principal.role != Role.ADMIN:
        raise Forbidden(f"this requires the role admin; your role is {principal.role}")
    rows, next_cursor = repository.page(
        session, None if everyone else principal.id, limit=limit, cursor=cursor
    )
    names = repository.user_names(session, {row.owner_id for row in rows})
    return SharePage(items=[ShareOut.of(row, names[row.owner_id]) for row in rows], next_cursor=next_cursor)


@router.post("", status_code=201)
def create_share(body: ShareRequest, principal: LoggedInOperator, session: WriteSession) -> NewShare:
    """Create a link that shows these runs to whoever has it. Its secret is returned only here.

    The link shows one page, of these runs alone, and gives access to nothing else.
    """
    share, token = service.create(session, body, principal)
    return NewShare(**ShareOut.of(share, principal.name).model_dump(), path=f"/s/{token}")


@router.delete("/{share_id:ulid}", status_code=204)
def revoke_share(share_id: ShareId, principal: Viewer, session: WriteSession) -> None:
    """Revoke a link: your own, or as an admin any."""
    service.revoke(session, share_id, principal)


@router.post(
    "/frozen",
    response_model=None,
    responses={200: {"content": {"text/html": {"schema": {"type": "string"}}}, "description": "The file."}},
    dependencies=[Depends(_turn, scope="function")],
)
def freeze_page(body: FrozenRequest, principal: Viewer, session: ReadSession) -> Response:
    """A page of runs as one HTML file with its data and figures, which opens without a network."""
    headers = {"Content-Disposition": 'attachment; filename="callboard.html"'}
    return Response(service.freeze(session, body), media_type="text/html", headers=headers)


@page_router.get(f"/{page.SCRIPT_NAME}")
def read_script(request: Request) -> Response:
    """The library that draws the figures of pages."""
    headers = {"Cache-Control": "public, max-age=86400", "Vary": "Accept-Encoding"}
    if accepts_gzip(request.headers):
        headers["Content-Encoding"] = "gzip"
        return Response(page.compressed_script(), media_type="text/javascript", headers=headers)
    return Response(page.plotly_script(), media_type="text/javascript", headers=headers)


@page_router.get("/{token}", dependencies=[Depends(_turn_of_link, scope="function")])
def read_shared(token: Annotated[str, Path(max_length=100)], session: ReadSession) -> HTMLResponse:
    """The page behind a link."""
    content = service.read_shared(session, token)
    if content is None:
        return HTMLResponse(_GONE, 404, headers=_HEADERS)
    return HTMLResponse(content, headers=_HEADERS)


_GONE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>No such link · Callboard</title>
<style>
:root { color-scheme: light dark }
body { max-width: 36em; margin: 4em auto; padding: 0 1em; font: 16px/1.5 system-ui, sans-serif }
</style>
<h1>This link does not work</h1>
<p>It has expired, was revoked, or is not complete. Ask whoever sent it for another one.</p>
</html>
"""
