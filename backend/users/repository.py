"""Users in the database, as those who manage them need it."""

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from backend.auth.roles import Role
from backend.db import User, keyset


def page(session: Session, *, limit: int, cursor: str | None) -> tuple[list[User], str | None]:
    """One page of all users by name, and the next page's cursor."""
    return keyset.page(
        session, select(User), by=User.name, row_id=User.id, descending=False, limit=limit, cursor=cursor
    )


def count_admins(session: Session) -> int:
    """How many admins there are."""
    return session.scalars(select(func.count()).select_from(User).where(User.role == Role.ADMIN)).one()


def delete(session: Session, user: User) -> None:
    """Delete a user with their sessions and tokens; what they started stays."""
    session.delete(user)
    session.flush()
