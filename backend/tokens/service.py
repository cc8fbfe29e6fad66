"""Making and revoking tokens."""

from datetime import timedelta

from sqlalchemy.orm import Session

from backend.auth import repository as auth_rows
from backend.auth import service as auth
from backend.auth.roles import Role
from backend.auth.service import Actor
from backend.db import Token
from backend.errors import Forbidden, NotFound, Unauthenticated
from backend.tokens import repository
from backend.tokens.schemas import TokenRequest


def create(session: Session, actor: Actor, asked: TokenRequest) -> tuple[Token, str]:
    """A new token of one's own and its secret.

    Raises:
        Forbidden: it would be allowed more than who asks.
    """
    role = asked.role or actor.role
    if not actor.role.covers(role):
        raise Forbidden(f"you are {actor.role}: your tokens cannot be {role}")
    user = auth_rows.user_by_id(session, actor.id)
    if user is None:
        raise Unauthenticated
    lifetime = timedelta(days=asked.expires_in_days) if asked.expires_in_days else None
    return auth.create_token(session, user, asked.name, role, lifetime)


def revoke(session: Session, actor: Actor, token_id: str) -> None:
    """End a token: one's own, or as an admin anyone's.

    Raises:
        NotFound: there is none that one may see.
        Forbidden: it may do more than who asks.
    """
    token = repository.get(session, token_id)
    if token is None or (token.user_id != actor.id and actor.role != Role.ADMIN):
        raise NotFound(f"there is no token {token_id}")
    user = auth_rows.user_by_id(session, token.user_id)
    may = Role(token.role).at_most(Role(user.role)) if user else Role(token.role)
    if not actor.role.covers(may):
        raise Forbidden(f"you are {actor.role}; this token is {may}")
    repository.delete(session, token)
