"""The dependency that guards a route: who is asking, and may they?"""

from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import APIKeyCookie, HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy.orm import Session
from starlette.requests import HTTPConnection

from backend.auth import service
from backend.auth.roles import Role
from backend.auth.service import Actor
from backend.db.engine import reading
from backend.dependencies import ThisParts
from backend.errors import Forbidden, Unauthenticated

COOKIE = "callboard_session"

Bearer = Annotated[
    HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False, description="A token."))
]
Cookie = Annotated[
    str | None, Depends(APIKeyCookie(name=COOKIE, auto_error=False, description="A browser's session."))
]


def find_viewer(session: Session, connection: HTTPConnection) -> Actor | None:
    """Who opens a connection that has no dependencies of its own, such as a WebSocket."""
    scheme, _, secret = connection.headers.get("authorization", "").partition(" ")
    if scheme:
        return service.find_token_actor(session, secret) if scheme.lower() == "bearer" else None
    cookie = connection.cookies.get(COOKIE)
    return service.find_actor(session, cookie) if cookie else None


class Needs:
    """Lets a request through when its user covers `role`; gives the `Actor`."""

    def __init__(self, role: Role, *, logged_in: bool = False) -> None:
        """With `logged_in`, a token will not do: it may be less than its user, and has no session."""
        self.role = role
        self.logged_in = logged_in

    def __call__(self, request: Request, parts: ThisParts, bearer: Bearer, cookie: Cookie) -> Actor:
        """Find out who asks.

        Raises:
            Unauthenticated: nobody known.
            Forbidden: someone who may not.
        """
        with reading(parts.engine) as session:
            if bearer is not None:
                actor = service.find_token_actor(session, bearer.credentials)
            # A cookie beside a foreign authorization does not count: it has not passed the check of origin.
            elif cookie and "authorization" not in request.headers:
                actor = service.find_actor(session, cookie)
            else:
                raise Unauthenticated
        if actor is None:
            raise Unauthenticated("this token or session is unknown, ended or too old: log in again")
        if not actor.role.covers(self.role):
            raise Forbidden(f"you are {actor.role}; this needs {self.role}")
        if self.logged_in and bearer is not None:
            raise Forbidden("a token cannot do this: log in with a browser")
        request.state.actor = actor
        return actor


Viewer = Annotated[Actor, Depends(Needs(Role.VIEWER))]
LoggedIn = Annotated[Actor, Depends(Needs(Role.VIEWER, logged_in=True))]
Operator = Annotated[Actor, Depends(Needs(Role.OPERATOR))]
Admin = Annotated[Actor, Depends(Needs(Role.ADMIN))]
