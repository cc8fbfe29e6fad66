"""Dependencies that authenticate a request and check its role."""

from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import APIKeyCookie, HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy.orm import Session
from starlette.requests import HTTPConnection

from backend.auth import service
from backend.auth.roles import Role
from backend.auth.service import Principal
from backend.db.engine import reading
from backend.errors import Forbidden, Unauthenticated
from backend.http.dependencies import AppStateDep, get_state
from backend.http.pages import address_of

COOKIE = "callboard_session"

Bearer = Annotated[
    HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False, description="A token."))
]
Cookie = Annotated[
    str | None, Depends(APIKeyCookie(name=COOKIE, auto_error=False, description="A browser's session."))
]


def find_viewer(session: Session, connection: HTTPConnection) -> Principal | None:
    """The user of a connection without dependencies, such as a WebSocket."""
    state = get_state(connection)
    scheme, _, secret = connection.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        principal = service.find_token_principal(session, secret)
    elif not scheme and (cookie := connection.cookies.get(COOKIE)):
        principal = service.find_principal(session, cookie, state.settings.session_idle)
    else:
        principal = None
    if principal is not None and principal.only_external_runs:
        return None
    if principal is not None:
        state.uses.record(principal.credential, address_of(connection))
    return principal


class RequireRole:
    """Accepts requests of users with at least `role`, and returns the `Principal`."""

    def __init__(self, role: Role, *, logged_in: bool = False, external: bool = False) -> None:
        """With `logged_in`, a token is not accepted: it may have a lower role than its user, and has no
        session. With `external`, tokens are accepted that may only write their own external runs."""
        self.role = role
        self.logged_in = logged_in
        self.external = external

    def __call__(self, request: Request, state: AppStateDep, bearer: Bearer, cookie: Cookie) -> Principal:
        """Authenticate and authorise the request.

        Raises:
            Unauthenticated: no valid token or session.
            Forbidden: the role is too low, or the token may only write external runs.
        """
        with reading(state.db_engine) as session:
            if bearer is not None:
                principal = service.find_token_principal(session, bearer.credentials)
            # A cookie next to another authorization scheme is ignored: its origin was not checked.
            elif cookie and "authorization" not in request.headers:
                principal = service.find_principal(session, cookie, state.settings.session_idle)
            else:
                raise Unauthenticated
        if principal is None:
            raise Unauthenticated(
                "the token or session is unknown, revoked or expired: log in again, or create another token"
            )
        state.uses.record(principal.credential, address_of(request))
        if not principal.role.covers(self.role):
            raise Forbidden(f"this requires the role {self.role}; your role is {principal.role}")
        if self.logged_in and bearer is not None:
            raise Forbidden("this requires a browser session; a token is not accepted")
        if principal.only_external_runs and not self.external:
            raise Forbidden("this token may only create external runs and write to them")
        request.state.principal = principal
        return principal


Viewer = Annotated[Principal, Depends(RequireRole(Role.VIEWER))]
LoggedIn = Annotated[Principal, Depends(RequireRole(Role.VIEWER, logged_in=True))]
Operator = Annotated[Principal, Depends(RequireRole(Role.OPERATOR))]
ExternalWriter = Annotated[Principal, Depends(RequireRole(Role.OPERATOR, external=True))]
Admin = Annotated[Principal, Depends(RequireRole(Role.ADMIN))]
