"""Tokens in the database, as those who manage them need it."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.db import Token, keyset


def page(
    session: Session, user_id: str | None, *, limit: int, cursor: str | None
) -> tuple[list[Token], str | None]:
    """One page of a user's tokens (of everyone's, without a user), the newest first."""
    statement = select(Token) if user_id is None else select(Token).where(Token.user_id == user_id)
    return keyset.page(
        session, statement, by=Token.id, row_id=Token.id, descending=True, limit=limit, cursor=cursor
    )


def get(session: Session, token_id: str) -> Token | None:
    """The token, or none."""
    return session.get(Token, token_id)


def delete(session: Session, token: Token) -> None:
    """Revoke a token."""
    session.delete(token)
    session.flush()
