"""The dependency that guards a route: who is asking, and may they?"""

from typing import Annotated

from fastapi import Depends, Request

from backend.auth import service
from backend.auth.roles import Role
from backend.auth.service import Actor
from backend.db.engine import reading
from backend.dependencies import ThisParts
from backend.errors import Forbidden, Unauthenticated

COOKIE = "callboard_session"


class Needs:
    """Lets a request through when its user covers `role`; gives the `Actor`."""

    def __init__(self, role: Role) -> None:
        self.role = role

    def __call__(self, request: Request, parts: ThisParts) -> Actor:
        """Find out who asks.

        Raises:
            Unauthenticated: nobody known.
            Forbidden: someone who may not.
        """
        secret = request.cookies.get(COOKIE)
        if not secret:
            raise Unauthenticated
        with reading(parts.engine) as session:
            actor = service.find_actor(session, secret)
        if actor is None:
            raise Unauthenticated("your session is over: log in again")
        if not actor.role.covers(self.role):
            raise Forbidden(f"you are {actor.role}; this needs {self.role}")
        return actor


Viewer = Annotated[Actor, Depends(Needs(Role.VIEWER))]
Operator = Annotated[Actor, Depends(Needs(Role.OPERATOR))]
Admin = Annotated[Actor, Depends(Needs(Role.ADMIN))]
