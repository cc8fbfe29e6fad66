"""Routes of `/tokens`."""

from typing import Annotated

from fastapi import APIRouter, Query

from backend.auth.access import Viewer
from backend.auth.roles import Role
from backend.dependencies import ReadSession, WriteSession
from backend.errors import Forbidden
from backend.ids import Ulid
from backend.pagination import Cursor, Limit
from backend.tokens import repository, service
from backend.tokens.schemas import NewToken, TokenOut, TokenPage, TokenRequest

router = APIRouter(prefix="/tokens", tags=["tokens"])


@router.get("")
def list_tokens(
    actor: Viewer,
    session: ReadSession,
    everyone: Annotated[bool, Query(description="Everyone's; for admins.")] = False,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> TokenPage:
    """Your tokens, the newest first; their secrets are not kept."""
    if everyone and actor.role != Role.ADMIN:
        raise Forbidden(f"you are {actor.role}; everyone's tokens are for admins")
    rows, next_cursor = repository.page(session, None if everyone else actor.id, limit=limit, cursor=cursor)
    return TokenPage(items=[TokenOut.model_validate(row) for row in rows], next_cursor=next_cursor)


@router.post("", status_code=201)
def create_token(body: TokenRequest, actor: Viewer, session: WriteSession) -> NewToken:
    """A new token of your own, that may do as much as you or less. Its secret is told only now."""
    token, secret = service.create(session, actor, body)
    return NewToken(**TokenOut.model_validate(token).model_dump(), token=secret)


@router.delete("/{token_id}", status_code=204)
def revoke_token(token_id: Ulid, actor: Viewer, session: WriteSession) -> None:
    """End a token: your own, or as an admin anyone's."""
    service.revoke(session, actor, token_id)
