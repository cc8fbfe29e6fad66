"""Routes of `/auth` and the login link."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import BaseModel

from backend import frontend
from backend.auth import service
from backend.auth.access import COOKIE, Viewer
from backend.auth.roles import Role
from backend.dependencies import WriteSession

router = APIRouter(prefix="/auth", tags=["auth"])
link_router = APIRouter(include_in_schema=False)


class Me(BaseModel):
    """Who you are."""

    id: str
    name: str
    role: Role


@router.get("/me")
def read_me(actor: Viewer) -> Me:
    """Who you are and what you may do."""
    return Me(id=actor.id, name=actor.name, role=actor.role)


@router.post("/logout", status_code=204)
def log_out(request: Request, response: Response, actor: Viewer, session: WriteSession) -> None:
    """End this browser's session."""
    service.log_out(session, request.cookies.get(COOKIE, ""))
    response.delete_cookie(COOKIE, httponly=True, samesite="strict", secure=_secure(request))


@link_router.get("/login", response_class=RedirectResponse)
def use_login_link(
    request: Request, session: WriteSession, token: Annotated[str | None, Query(max_length=200)] = None
) -> Response:
    """Log in by the one-time link that `callboard up` prints, and go to the first page."""
    if token is None:
        return frontend.page(request)
    secret = service.log_in_by_link(session, token)
    if secret is None:
        return RedirectResponse("/?login=expired", 303)
    answer = RedirectResponse("/", 303)
    set_session_cookie(request, answer, secret)
    return answer


def set_session_cookie(request: Request, response: Response, secret: str) -> None:
    """Give the browser its session."""
    response.set_cookie(
        COOKIE,
        secret,
        max_age=int(service.SESSION_LIFETIME.total_seconds()),
        httponly=True,
        samesite="strict",
        secure=_secure(request),
    )


def _secure(request: Request) -> bool:
    return request.url.scheme == "https"
