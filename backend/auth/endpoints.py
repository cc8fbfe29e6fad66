"""Routes of `/auth` and the login link."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from backend import frontend
from backend.auth import service
from backend.auth.access import COOKIE, LoggedIn, Viewer
from backend.auth.roles import Role
from backend.auth.schemas import LoginRequest, Me, PasswordRequest
from backend.auth.service import Actor
from backend.dependencies import Parts, ReadSession, ThisParts, WriteSession
from backend.errors import Forbidden, TooMany, Unauthenticated
from backend.specs.run import FieldProblem

router = APIRouter(prefix="/auth", tags=["auth"])
link_router = APIRouter(include_in_schema=False)


@router.post("/login")
def log_in(
    body: LoginRequest,
    request: Request,
    response: Response,
    parts: ThisParts,
    session: ReadSession,
    writing: WriteSession,
) -> Me:
    """Log in with name and password. The answer sets the session's cookie."""
    who = _held_back(parts, request, body.name)
    # Before the writing session begins: a hash takes too long to hold SQLite's one write lock.
    user = service.check_password(session, body.name, body.password)
    if user is None:
        parts.throttle.failed(who)
        raise Unauthenticated("name or password is wrong")
    parts.throttle.succeeded(who)
    request.state.actor = Actor(user.id, user.name, Role(user.role))
    set_session_cookie(request, response, service.open_session(writing, user))
    return Me.model_validate(user)


@router.get("/me")
def read_me(actor: Viewer) -> Me:
    """Who you are and what you may do."""
    return Me.model_validate(actor)


@router.post("/password")
def change_password(
    body: PasswordRequest,
    actor: LoggedIn,
    request: Request,
    response: Response,
    parts: ThisParts,
    session: ReadSession,
    writing: WriteSession,
) -> Me:
    """Change your own password. Every other browser of yours is logged out."""
    who = _held_back(parts, request, actor.name)
    user = service.check_change(session, actor.id, body.current)
    if user is None:
        parts.throttle.failed(who)
        named = FieldProblem(field="current", message="this is not your password")
        raise Forbidden("this is not your password", [named])
    parts.throttle.succeeded(who)
    service.set_password(writing, writing.merge(user), body.new)
    set_session_cookie(request, response, service.open_session(writing, user))
    return Me.model_validate(actor)


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


def _held_back(parts: Parts, request: Request, name: str) -> str:
    """Whom the brake on guessing passwords knows this request by; refused while it is on."""
    who = f"{request.client.host if request.client else ''} {name}"
    wait_s = parts.throttle.wait_s(who)
    if wait_s > 0:
        raise TooMany("too many wrong passwords: wait before the next one", wait_s)
    return who


def _secure(request: Request) -> bool:
    return request.url.scheme == "https"
