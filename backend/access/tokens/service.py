"""Creating and revoking tokens. A token never outlives the token or the user that created it."""

from datetime import timedelta

from sqlalchemy.orm import Session

from backend.access.auth import repository
from backend.access.auth import service as auth
from backend.access.auth.service import TokenOrigin
from backend.access.tokens.schemas import TokenRequest
from backend.db import Token
from backend.db.clock import database_now
from backend.platform.errors import Conflict, Forbidden, Invalid, NotFound, Unauthenticated
from backend.platform.principals import Principal, Role

MAX_GENERATIONS = 10
"""Maximum length of a chain of tokens that create tokens: revoking the first one deletes them all."""


def create(session: Session, principal: Principal, request: TokenRequest) -> tuple[Token, str]:
    """Create a token and its secret.

    Raises:
        Forbidden: the token's role exceeds the caller's.
        Invalid: its role is too low for its scope.
        Conflict: too many tokens have created each other.
    """
    role = request.role or principal.role
    if not principal.role.covers(role):
        raise Forbidden(f"a token cannot have the role {role}: your role is {principal.role}")
    if request.scope is not None and not role.covers(Role.OPERATOR):
        raise Invalid.field("scope", f"requires the role {Role.OPERATOR}; the token has the role {role}")
    user = repository.user_by_id(session, principal.id)
    if user is None:
        raise Unauthenticated
    expires_at = None
    if request.expires_in_days is not None:
        expires_at = database_now(session) + timedelta(days=request.expires_in_days)
    origin = TokenOrigin("session")
    if principal.credential.kind == "token":
        parent = repository.token_by_id(session, principal.credential.id, for_update=True)
        if parent is None:
            raise Unauthenticated
        _check_generations(session, parent)
        expires_at = min(filter(None, (expires_at, parent.expires_at)), default=None)
        origin = TokenOrigin("token", parent.id)
    return auth.create_token(session, user, request.name, role, expires_at, origin, request.scope)


def revoke(session: Session, principal: Principal, token_id: str) -> None:
    """Revoke a token: one's own, or as an admin any.

    Raises:
        NotFound: there is no such token that the caller may see.
        Forbidden: the token's role exceeds the caller's.
    """
    token = repository.token_by_id(session, token_id)
    if token is None or (token.user_id != principal.id and principal.role != Role.ADMIN):
        raise NotFound(f"token {token_id} does not exist")
    user = repository.user_by_id(session, token.user_id)
    role = Role(token.role).at_most(Role(user.role)) if user else Role(token.role)
    if not principal.role.covers(role):
        raise Forbidden(f"this token has the role {role}; your role is {principal.role}")
    repository.delete_token(session, token)


def _check_generations(session: Session, parent: Token) -> None:
    token: Token | None = parent
    for _ in range(MAX_GENERATIONS):
        if token is None or token.parent_id is None:
            return
        token = repository.token_by_id(session, token.parent_id)
    raise Conflict(
        f"this token was created by a chain of {MAX_GENERATIONS} tokens: create the new one with an earlier "
        "token, or in a browser"
    )
