"""Routes of `/tokens`."""

from typing import Annotated

from fastapi import APIRouter, Query

from backend.auth import repository
from backend.errors import Forbidden
from backend.http.access import Viewer
from backend.http.dependencies import ReadSession, WriteSession
from backend.http.pages import Cursor, Limit, Ulid
from backend.principals import Role
from backend.tokens import service
from backend.tokens.schemas import NewToken, TokenPage, TokenRequest

router = APIRouter(prefix="/tokens", tags=["tokens"])


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
    return TokenPage(items=service.described(session, rows), next_cursor=next_cursor)


@router.post("", status_code=201)
def create_token(body: TokenRequest, principal: Viewer, session: WriteSession) -> NewToken:
    """Create a token with your role or a lower one. Its secret is returned only here.

    A token created with a token expires with it at the latest, and is revoked with it.
    """
    token, secret = service.create(session, principal, body)
    [described] = service.described(session, [token])
    return NewToken(**described.model_dump(), token=secret)


@router.delete("/{token_id}", status_code=204)
def revoke_token(token_id: Ulid, principal: Viewer, session: WriteSession) -> None:
    """Revoke a token, with those that it has created: your own, or as an admin any."""
    service.revoke(session, principal, token_id)
