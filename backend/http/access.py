"""Dependencies that check the role of who sends a request."""

import re
from typing import Annotated

from fastapi import Depends, FastAPI
from fastapi.routing import iter_route_contexts
from fastapi.security import APIKeyCookie, HTTPAuthorizationCredentials, HTTPBearer
from starlette.requests import HTTPConnection
from starlette.routing import compile_path

from backend.http.dependencies import COOKIE, PAGE_SECRET_HEADER, TICKET, Authenticated, authenticate
from backend.platform.errors import Forbidden, Unauthenticated
from backend.platform.principals import Principal, Role

_SESSION = (
    "A browser's session. The cookie alone is not accepted: the page's secret has to come with it, in the "
    f"header `{PAGE_SECRET_HEADER}`, or a ticket of `GET /auth/me` in the parameter `{TICKET}` of a GET."
)

# `Authenticated` reads the request itself: these two are in the API's schema, and nothing uses their values.
_Bearer = Annotated[
    HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False, description="A token."))
]
_Cookie = Annotated[str | None, Depends(APIKeyCookie(name=COOKIE, auto_error=False, description=_SESSION))]


def find_viewer(connection: HTTPConnection) -> Principal | None:
    """The user of a connection without dependencies, such as a WebSocket; None if they may not read."""
    try:
        principal = authenticate(connection)
    except Unauthenticated:
        return None
    return None if principal.only_external_runs else principal


class RequireRole:
    """Accepts requests of users with at least `role`, and returns the `Principal`."""

    def __init__(self, role: Role, *, logged_in: bool = False, external: bool = False) -> None:
        """With `logged_in`, a token is not accepted: it may have a lower role than its user, and has no
        session. With `external`, tokens are accepted that may only write their own external runs."""
        self.role = role
        self.logged_in = logged_in
        self.external = external

    async def __call__(self, principal: Authenticated, bearer: _Bearer, cookie: _Cookie) -> Principal:
        """Authorise the request.

        Raises:
            Unauthenticated: no valid token or session.
            Forbidden: the role is too low, or the token may only write external runs.
        """
        self.check(principal)
        return principal

    def check(self, principal: Principal) -> None:
        """Authorise a user.

        Raises:
            Forbidden: the role is too low, or the token may only write external runs.
        """
        if not principal.role.covers(self.role):
            raise Forbidden(f"this requires the role {self.role}; your role is {principal.role}")
        if self.logged_in and principal.credential.kind == "token":
            raise Forbidden("this requires a browser session; a token is not accepted")
        if principal.only_external_runs and not self.external:
            raise Forbidden("this token may only create external runs and write to them")


class Guards:
    """Who may send a request to an address: asked before the request's body is read."""

    def __init__(self, app: FastAPI) -> None:
        self._guards: dict[str, list[tuple[re.Pattern[str], RequireRole]]] = {}
        for route in iter_route_contexts(app.routes):
            dependant = getattr(route, "dependant", None)
            if not route.path or dependant is None:
                continue
            roles = [
                dependency.call
                for dependency in dependant.dependencies
                if isinstance(dependency.call, RequireRole)
            ]
            for method in route.methods or ():
                pattern = compile_path(route.path)[0]
                self._guards.setdefault(method, []).extend((pattern, role) for role in roles)

    def check(self, method: str, path: str, principal: Principal) -> None:
        """Authorise a user for the first route that matches.

        Raises:
            Forbidden: the role is too low, or the token may only write external runs.
        """
        matching = (role for pattern, role in self._guards.get(method, ()) if pattern.match(path))
        role = next(matching, None)
        if role is not None:
            role.check(principal)


Viewer = Annotated[Principal, Depends(RequireRole(Role.VIEWER))]
LoggedIn = Annotated[Principal, Depends(RequireRole(Role.VIEWER, logged_in=True))]
Operator = Annotated[Principal, Depends(RequireRole(Role.OPERATOR))]
LoggedInOperator = Annotated[Principal, Depends(RequireRole(Role.OPERATOR, logged_in=True))]
ExternalWriter = Annotated[Principal, Depends(RequireRole(Role.OPERATOR, external=True))]
Admin = Annotated[Principal, Depends(RequireRole(Role.ADMIN))]
