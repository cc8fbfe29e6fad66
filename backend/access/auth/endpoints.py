"""Log in, log out and change your password."""

from collections.abc import Callable
from functools import partial
from typing import Annotated

import structlog
from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool

from backend.access.audit import service as audit
from backend.access.audit.requests import origin_of
from backend.access.auth import known_browsers, login_limits, repository, service, tickets
from backend.access.auth.passwords import hash_password, require_uncommon
from backend.access.auth.schemas import (
    Account,
    LoginMethods,
    LoginRequest,
    NewSession,
    OidcMethod,
    PasswordRequest,
    SessionOut,
    SessionPage,
)
from backend.access.auth.secrets import SessionSecrets, hash_secret
from backend.access.auth.state import AuthState, AuthStateDep
from backend.db import User
from backend.db.engine import reading, writing
from backend.http import addresses, frontend
from backend.http.access import LoggedIn, Viewer
from backend.http.addresses import address_of
from backend.http.context import context_of
from backend.http.dependencies import (
    AppStateDep,
    LoginSession,
    ReadSession,
    RequestContextDep,
    WriteSession,
    cookie_name,
    secrets_of,
)
from backend.http.pages import Cursor, Limit
from backend.http.routing import ResourceRouter, WritingRoute
from backend.platform.errors import Forbidden, NotFound, TooMany, Unauthenticated
from backend.platform.principals import Principal
from backend.specs.extras import missing_here
from backend.specs.fields import ULID
from backend.specs.problems import FieldProblem

MAX_USER_AGENT = 300

log = structlog.get_logger(__name__)

router = ResourceRouter(prefix="/auth", tags=["auth"], route_class=WritingRoute)
link_router = APIRouter(include_in_schema=False)

PageNonce = Annotated[str | None, Query(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
"""A random value of the page that begins a login, which comes back with the page's secret. The page believes
no other address: anybody may write a secret of theirs into one."""

SessionId = Annotated[str, Path(pattern=ULID, description="Id of the session.")]


@router.post("/login")
async def log_in(
    body: LoginRequest,
    request: Request,
    response: Response,
    context: RequestContextDep,
    auth: AuthStateDep,
    session: LoginSession,
) -> NewSession:
    """Log in with name and password. The response sets the session cookie, and its body has the page's
    secret, without which the cookie is not accepted."""
    check = partial(service.check_password, name=body.name, password=body.password)
    user = await _check_password(auth, request, body.name, check)
    if user is None:
        raise Unauthenticated("wrong name or password")

    def open_session() -> tuple[Principal, SessionSecrets]:
        current = service.lock_unchanged(session, user)
        if current is None:
            raise Unauthenticated("the password has just been changed: log in with the new one")
        return service.open_session(session, current, "password", browser_of(request))

    principal, opened = await run_in_threadpool(open_session)
    context.principal = principal
    log.info("login.succeeded", method="password", user=body.name, address=address_of(request))
    set_session_cookie(request, response, opened)
    _set_browser_cookie(request, response, user)
    return _new_session(principal, opened)


@router.get("/methods")
async def read_login_methods(state: AppStateDep, auth: AuthStateDep) -> LoginMethods:
    """How users can log in apart from password and one-time link; for the login page, without a login."""
    return LoginMethods(oidc=OidcMethod(name=state.settings.oidc_name) if auth.oidc else None)


@router.get("/me")
async def read_me(principal: Viewer, request: Request) -> Account:
    """The authenticated user and their role, and a ticket for addresses."""
    sent = secrets_of(request)
    ticket = None
    if principal.credential.kind == "session" and sent.cookie and sent.page:
        ticket = tickets.create(principal.credential.id, SessionSecrets(sent.cookie, sent.page))
    return Account(
        id=principal.id,
        name=principal.name,
        role=principal.role,
        ticket=ticket,
        missing_extras=missing_here(),
    )


@router.post("/password")
async def change_password(
    body: PasswordRequest,
    principal: LoggedIn,
    request: Request,
    response: Response,
    auth: AuthStateDep,
    session: LoginSession,
) -> NewSession:
    """Change your password. All your other browser sessions end; this one gets new secrets."""
    check = partial(service.check_change, user_id=principal.id, password=body.current)
    user = await _check_password(auth, request, principal.name, check)
    if user is None:
        named = FieldProblem(field="current", message="wrong password")
        raise Forbidden("wrong password", [named])

    def hash_new() -> str:
        require_uncommon("new", body.new, principal.name)
        return hash_password(body.new)

    password_hash = await auth.logins.run(network_of(request), hash_new)

    def change() -> tuple[Principal, SessionSecrets]:
        current = service.lock_unchanged(session, user)
        if current is None:
            raise Unauthenticated("your account was deleted or its password was changed: log in again")
        service.set_password(session, current, password_hash)
        _set_browser_cookie(request, response, current)
        return service.open_session(session, current, "password", browser_of(request))

    principal, opened = await run_in_threadpool(change)
    set_session_cookie(request, response, opened)
    return _new_session(principal, opened)


@router.get("/sessions")
def list_sessions(
    principal: LoggedIn, session: ReadSession, state: AppStateDep, limit: Limit = 100, cursor: Cursor = None
) -> SessionPage:
    """Your browser sessions, latest first."""
    rows, next_cursor = repository.sessions_page(
        session, principal.id, state.settings.session_idle, limit=limit, cursor=cursor
    )
    items = [SessionOut.of(row, current=row.id == principal.credential.id) for row in rows]
    return SessionPage(items=items, next_cursor=next_cursor)


@router.delete("/sessions/{session_id}", status_code=204)
def end_session(session_id: SessionId, principal: LoggedIn, session: WriteSession) -> None:
    """End one of your browser sessions; its event streams close within 5 s."""
    if not repository.delete_session(session, session_id, principal.id):
        raise NotFound(f"you have no session {session_id}: it has ended, or is another user's")


@router.delete("/sessions", status_code=204)
def end_all_sessions(
    principal: LoggedIn, request: Request, response: Response, session: WriteSession
) -> None:
    """End all your browser sessions, including this one; their event streams close within 5 s."""
    repository.delete_sessions_of(session, principal.id)
    _delete_cookie(request, response)


@router.post("/logout", status_code=204)
def log_out(request: Request, response: Response, principal: Viewer, session: WriteSession) -> None:
    """End this browser's session."""
    if principal.credential.kind == "session":
        repository.delete_session(session, principal.credential.id, principal.id)
    _delete_cookie(request, response)


@link_router.get("/login", response_class=RedirectResponse)
def use_login_link(
    request: Request,
    state: AppStateDep,
    token: Annotated[str | None, Query(max_length=200)] = None,
    nonce: PageNonce = None,
) -> Response:
    """Log in by the one-time link that `callboard up` prints, and redirect to the first page. Without a nonce
    the answer is the page, which adds one."""
    if token is None or nonce is None:
        return frontend.page(request)
    address = address_of(request)
    with reading(state.db_engine) as session:
        # Not in a writing transaction: anyone may send unknown tokens.
        user = repository.login_link_user(session, hash_secret(token))
    if user is not None:
        with writing(state.db_engine) as session:
            new_login = service.log_in_by_link(session, token, browser_of(request))
            action = "use_login_link" if new_login else "use_login_link_failed"
            if new_login or login_limits.count_failure(session, "login link", network_of(request)):
                audit.record_login(
                    session, origin_of(request), action, user.id if new_login else None, user.name
                )
        if new_login is not None:
            log.info("login.succeeded", method="link", user=user.name, address=address)
            answer = RedirectResponse(page_address("/", new_login[1], nonce), 303)
            set_session_cookie(request, answer, new_login[1])
            return answer
    log.warning("login.failed", method="link", user=user.name if user else None, address=address)
    return RedirectResponse("/?login=expired", 303)


def page_address(path: str, opened: SessionSecrets, nonce: str) -> str:
    """The address of a page with its secret in the fragment, which a browser keeps to itself."""
    return f"{path}#page_secret={opened.page}&nonce={nonce}"


def _new_session(principal: Principal, opened: SessionSecrets) -> NewSession:
    return NewSession(
        id=principal.id,
        name=principal.name,
        role=principal.role,
        ticket=tickets.create(principal.credential.id, opened),
        missing_extras=missing_here(),
        page_secret=opened.page,
    )


def set_session_cookie(request: Request, response: Response, opened: SessionSecrets) -> None:
    """Set the session cookie."""
    response.set_cookie(
        cookie_name(request),
        opened.cookie,
        max_age=int(service.SESSION_LIFETIME.total_seconds()),
        httponly=True,
        samesite="strict",
        secure=is_secure(request),
    )


def _set_browser_cookie(request: Request, response: Response, user: User) -> None:
    """Let the browser be known when it logs in again."""
    response.set_cookie(
        cookie_name(request, known_browsers.COOKIE),
        known_browsers.cookie_of(user),
        max_age=known_browsers.LIFETIME_S,
        path="/api/v1/auth",
        httponly=True,
        samesite="strict",
        secure=is_secure(request),
    )


async def _check_password(
    auth: AuthState, request: Request, name: str, check: Callable[[Session], User | None]
) -> User | None:
    """Check a password within the limits of logins, before a writing transaction starts: hashing takes too
    long to hold SQLite's write lock. Failures are logged and recorded in the audit trail."""
    network, address = network_of(request), address_of(request)
    browser = request.cookies.get(cookie_name(request, known_browsers.COOKIE))
    try:
        user = await auth.logins.run(
            network, partial(login_limits.check_within_limits, auth.db_engine, network, name, check, browser)
        )
    except TooMany:
        log.warning("login.refused", method="password", user=name, address=address)
        raise
    if user is None:
        log.warning("login.failed", method="password", user=name, address=address)
        await run_in_threadpool(_record_failure, auth, request, name)
    return user


def _record_failure(auth: AuthState, request: Request, name: str) -> None:
    principal = context_of(request).principal
    with writing(auth.db_engine) as session:
        action = f"{request.scope['route'].name}_failed"
        audit.record_login(session, origin_of(request), action, principal.id if principal else None, name)


def browser_of(request: Request) -> service.Browser:
    """The browser of a login."""
    user_agent = request.headers.get("user-agent", "")[:MAX_USER_AGENT]
    return service.Browser(address_of(request), user_agent)


def network_of(request: Request) -> str:
    """The address that a login's failure counts for."""
    return addresses.network_of(address_of(request))


def _delete_cookie(request: Request, response: Response) -> None:
    response.delete_cookie(cookie_name(request), httponly=True, samesite="strict", secure=is_secure(request))


def is_secure(request: Request) -> bool:
    """Whether the client uses TLS, so that cookies can be limited to it."""
    return bool(request.scope["scheme"] == "https")
