"""API tokens, for scripts."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Path, Query
from sqlalchemy.orm import Session

from backend.access.auth import repository
from backend.access.tokens import service
from backend.access.tokens.schemas import NewToken, TokenOut, TokenPage, TokenRequest
from backend.db import Token
from backend.http.access import Viewer
from backend.http.dependencies import ReadSession, WriteSession
from backend.http.pages import Cursor, Limit
from backend.http.routing import ResourceRouter, WritingRoute
from backend.platform.errors import Forbidden
from backend.platform.principals import Role
from backend.specs.fields import ULID

router = ResourceRouter(prefix="/tokens", tags=["tokens"], route_class=WritingRoute)

TokenId = Annotated[str, Path(pattern=ULID, description="Id of the token.")]


@router.get("")
def list_tokens(
    principal: Viewer,
    session: ReadSession,
    everyone: Annotated[bool, Query(description="Tokens of all users; for admins.")] = False,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> TokenPage:
    """Your tokens, latest first, with what created them and their last use; their secrets are not stored."""
    if everyone and principal.role != Role.ADMIN:
        raise Forbidden(f"this requires the role admin; your role is {principal.role}")
    rows, next_cursor = repository.tokens_page(
        session, None if everyone else principal.id, limit=limit, cursor=cursor
    )
    return TokenPage(items=_tokens(session, rows), next_cursor=next_cursor)


@router.post("", status_code=201)
def create_token(body: TokenRequest, principal: Viewer, session: WriteSession) -> NewToken:
    """Create a token with your role or a lower one. Its secret is returned only here.

    A token created with a token expires with it at the latest, and is revoked with it.
    """
    token, secret = service.create(session, principal, body)
    [created] = _tokens(session, [token])
    return NewToken(**created.model_dump(), token=secret)


@router.delete("/{token_id}", status_code=204)
def revoke_token(token_id: TokenId, principal: Viewer, session: WriteSession) -> None:
    """Revoke a token, with those that it has created: your own, or as an admin any."""
    service.revoke(session, principal, token_id)


def _tokens(session: Session, tokens: Sequence[Token]) -> list[TokenOut]:
    """The tokens with the names of their users and of the tokens that created them."""
    users = repository.users_by_id(session, {token.user_id for token in tokens})
    parents = repository.tokens_by_id(session, {token.parent_id for token in tokens if token.parent_id})
    return [TokenOut.of(token, users[token.user_id], parents.get(token.parent_id or "")) for token in tokens]
