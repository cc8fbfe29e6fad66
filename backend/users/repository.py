"""Users in the database, as those who manage them need it."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.auth.roles import Role
from backend.db import User, keyset


def page(session: Session, *, limit: int, cursor: str | None) -> tuple[list[User], str | None]:
    """One page of all users by name, and the next page's cursor."""
    return keyset.page(
        session, select(User), by=User.name, row_id=User.id, descending=False, limit=limit, cursor=cursor
    )


def lock_admins(session: Session) -> list[User]:
    """All admins, locked in one order: of two who change them at once, the second sees what the first did."""
    statement = select(User).where(User.role == Role.ADMIN).order_by(User.id)
    return list(session.scalars(statement.with_for_update().execution_options(populate_existing=True)))


def delete(session: Session, user: User) -> None:
    """Delete a user with their sessions and tokens; what they started stays."""
    session.delete(user)
    session.flush()
