"""Routes of the sign-in by OpenID Connect: to the provider and back."""

from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlencode

import structlog
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy.exc import IntegrityError
from starlette.concurrency import run_in_threadpool

from backend.access.audit import service as audit
from backend.access.audit.requests import origin_of
from backend.access.auth import login_limits
from backend.access.auth import service as auth
from backend.access.auth.endpoints import (
    PageNonce,
    browser_of,
    is_secure,
    network_of,
    page_address,
    set_session_cookie,
)
from backend.access.auth.oidc import service
from backend.access.auth.oidc.attempt import LIFETIME_S, SignInAttempt, own_path
from backend.access.auth.oidc.identity import Code, Identity, ProviderUnavailable, Refused
from backend.access.auth.secrets import SessionSecrets
from backend.access.auth.state import AuthState, AuthStateDep
from backend.db.engine import writing
from backend.http.addresses import address_of
from backend.http.dependencies import AppState, AppStateDep
from backend.platform.errors import NotFound, TooMany

if TYPE_CHECKING:
    from backend.access.auth.oidc.provider import Provider

COOKIE = "callboard_oidc"
PATH = "/login/oidc"
MAX_REASON_CHARACTERS = 200

ACTION = "log_in_with_oidc"
"""Name of a sign-in in the audit trail."""

log = structlog.get_logger(__name__)

router = APIRouter(prefix=PATH, include_in_schema=False)


@router.get("", response_class=RedirectResponse)
async def start_oidc_login(
    request: Request,
    state: AppStateDep,
    auth_state: AuthStateDep,
    page: Annotated[str | None, Query(alias="from")] = None,
    nonce: PageNonce = None,
) -> Response:
    """Redirect to the provider, from which the browser returns to `/login/oidc/callback`. Without a nonce the
    login page, which has one, comes first."""
    provider, attempt = _provider(auth_state), SignInAttempt.start(own_path(page), nonce or "")
    if nonce is None:
        return _redirect("/login")
    try:
        url = await provider.authorization_url(attempt, _redirect_uri(request, state))
    except (ProviderUnavailable, TooMany) as error:
        log.warning("login.failed", method="oidc", reason=str(error), address=address_of(request))
        return _to_login_page("wait" if isinstance(error, TooMany) else "unavailable", attempt)
    answer = _redirect(url)
    # Not "strict": the browser comes back from the provider's site.
    answer.set_cookie(
        COOKIE,
        attempt.cookie,
        max_age=LIFETIME_S,
        path=PATH,
        httponly=True,
        samesite="lax",
        secure=is_secure(request),
    )
    return answer


@router.get("/callback", response_class=RedirectResponse)
async def finish_oidc_login(
    request: Request,
    state: AppStateDep,
    auth_state: AuthStateDep,
    code: str = "",
    error: str = "",
    iss: str | None = None,
    returned_state: Annotated[str, Query(alias="state")] = "",
) -> Response:
    """Verify the provider's answer, open a session, and redirect to the page of the start."""
    provider, address = _provider(auth_state), address_of(request)
    attempt = SignInAttempt.resume(request.cookies.get(COOKIE), returned_state)
    identity = None
    try:
        await run_in_threadpool(_begin, state, request)
        if attempt is None:
            raise Refused("expired", "the sign-in has expired, or another browser has started it")
        if error:
            raise Refused("denied", f"the provider refused: {error!r:.100}")
        if iss is not None and iss.rstrip("/") != provider.issuer:
            raise Refused("failed", f"the response is from another issuer: {iss!r:.100}")
        identity = await provider.identify(attempt, code, _redirect_uri(request, state))
        name, opened = await run_in_threadpool(_log_in, state, request, identity)
    except TooMany as refusal:
        log.warning("login.refused", method="oidc", reason=str(refusal), address=address)
        return _to_login_page("wait", attempt)
    except (ProviderUnavailable, Refused) as refusal:
        reason = str(refusal)[:MAX_REASON_CHARACTERS]
        log.warning("login.failed", method="oidc", reason=reason, address=address)
        await run_in_threadpool(_record_failure, state, request, identity, reason)
        return _to_login_page(refusal.code if isinstance(refusal, Refused) else "unavailable", attempt)
    log.info("login.succeeded", method="oidc", user=name, address=address)
    answer = _redirect(page_address(attempt.path.partition("#")[0], opened, attempt.page_nonce))
    set_session_cookie(request, answer, opened)
    _delete_cookie(request, answer)
    return answer


def _begin(state: AppState, request: Request) -> None:
    with writing(state.db_engine) as session:
        login_limits.begin(session, ACTION, network_of(request))


def _log_in(state: AppState, request: Request, identity: Identity) -> tuple[str, SessionSecrets]:
    """Open a session for the user of an identity. Returns their name and the session's secrets."""
    try:
        return _log_in_once(state, request, identity)
    except IntegrityError:
        # A concurrent first sign-in has added the user.
        return _log_in_once(state, request, identity)


def _log_in_once(state: AppState, request: Request, identity: Identity) -> tuple[str, SessionSecrets]:
    with writing(state.db_engine) as session:
        user = service.user_of(session, state.settings, identity)
        _, opened = auth.open_session(session, user, "oidc", browser_of(request))
        login_limits.succeed(session, ACTION, network_of(request))
        audit.record_login(
            session, origin_of(request), ACTION, user.id, user.name, _details(identity) | {"role": user.role}
        )
        return user.name, opened


def _record_failure(state: AppState, request: Request, identity: Identity | None, reason: str) -> None:
    name = service.name_of(identity) if identity else None
    with writing(state.db_engine) as session:
        details = (_details(identity) if identity else {}) | {"reason": reason}
        audit.record_login(session, origin_of(request), f"{ACTION}_failed", None, name, details)


def _details(identity: Identity) -> dict[str, str]:
    return {"issuer": identity.issuer, "subject": identity.subject}


def _provider(state: AuthState) -> "Provider":
    if state.oidc is None:
        raise NotFound("sign-in by OpenID Connect is not configured: set CALLBOARD_OIDC_ISSUER on the server")
    return state.oidc


def _redirect_uri(request: Request, state: AppState) -> str:
    """Where the provider sends the browser back: it must be registered there."""
    base = state.settings.public_url or f"{request.scope['scheme']}://{request.headers['host']}"
    return f"{base}{state.settings.prefix}{PATH}/callback"


def _to_login_page(code: Code, attempt: SignInAttempt | None) -> Response:
    page = {"from": attempt.path} if attempt is not None and attempt.path != "/" else {}
    return _redirect("/login?" + urlencode({"error": code} | page))


def _redirect(url: str) -> Response:
    return RedirectResponse(url, 303, {"Cache-Control": "no-store"})


def _delete_cookie(request: Request, response: Response) -> None:
    response.delete_cookie(COOKIE, path=PATH, httponly=True, samesite="lax", secure=is_secure(request))
