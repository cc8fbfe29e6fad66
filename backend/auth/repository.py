"""Users, sessions and login links in the database. Secrets are stored as hashes only."""

from datetime import datetime

from sqlalchemy import delete, or_, select, update
from sqlalchemy.orm import Session

from backend.auth.roles import Role
from backend.db import LoginLink, Token, User
from backend.db import Session as LoginSession
from backend.db.clock import database_now, utc_now
from backend.db.ids import new_id


def user_by_name(session: Session, name: str) -> User | None:
    """The user of this name."""
    return session.scalars(select(User).where(User.name == name)).one_or_none()


def user_by_id(session: Session, user_id: str, *, for_update: bool = False) -> User | None:
    """The user of this id."""
    return session.get(User, user_id, with_for_update=for_update or None, populate_existing=for_update)


def add_user(session: Session, name: str, role: Role, password_hash: str | None = None) -> User:
    """A new user."""
    user = User(
        id=new_id(),
        name=name,
        role=role,
        password_hash=password_hash,
        created_at=database_now(session),
    )
    session.add(user)
    session.flush()
    return user


def set_password_hash(session: Session, user: User, password_hash: str) -> None:
    """Give a user a password."""
    user.password_hash = password_hash
    session.flush()


def has_admin_with_password(session: Session) -> bool:
    """Whether some admin could log in with a password."""
    statement = select(User.id).where(User.role == Role.ADMIN, User.password_hash.is_not(None)).limit(1)
    return session.scalars(statement).one_or_none() is not None


def add_login_link(session: Session, token_hash: str, user_id: str, expires_at: datetime) -> None:
    """A link that logs in once."""
    session.add(LoginLink(token_hash=token_hash, user_id=user_id, expires_at=expires_at, used_at=None))
    session.flush()


def use_login_link(session: Session, token_hash: str) -> User | None:
    """Use up a link. Its user, or none when it is unknown, too old or used; of two at once, one gets it."""
    usable = (
        (LoginLink.token_hash == token_hash)
        & LoginLink.used_at.is_(None)
        & (LoginLink.expires_at > utc_now())
    )
    user_id = session.scalars(
        update(LoginLink).where(usable).values(used_at=utc_now()).returning(LoginLink.user_id)
    ).one_or_none()
    return session.get(User, user_id) if user_id else None


def add_session(session: Session, token_hash: str, user_id: str, expires_at: datetime) -> None:
    """A browser that has logged in."""
    session.execute(delete(LoginSession).where(LoginSession.expires_at <= utc_now()))
    now = database_now(session)
    session.add(LoginSession(token_hash=token_hash, user_id=user_id, created_at=now, expires_at=expires_at))
    session.flush()


def session_user(session: Session, token_hash: str) -> User | None:
    """Whose browser this is, or none when it is unknown or its session is over."""
    return session.scalars(
        select(User)
        .join(LoginSession, LoginSession.user_id == User.id)
        .where(LoginSession.token_hash == token_hash, LoginSession.expires_at > utc_now())
    ).one_or_none()


def delete_session(session: Session, token_hash: str) -> None:
    """Log a browser out."""
    session.execute(delete(LoginSession).where(LoginSession.token_hash == token_hash))


def delete_sessions_of(session: Session, user_id: str) -> None:
    """Log a user out everywhere."""
    session.execute(delete(LoginSession).where(LoginSession.user_id == user_id))


def add_token(
    session: Session, user_id: str, name: str, role: Role, token_hash: str, expires_at: datetime | None
) -> Token:
    """A script's key."""
    token = Token(
        id=new_id(),
        user_id=user_id,
        name=name,
        role=role,
        token_hash=token_hash,
        created_at=database_now(session),
        expires_at=expires_at,
    )
    session.add(token)
    session.flush()
    return token


def token_user(session: Session, token_hash: str) -> tuple[Token, User] | None:
    """A token that is still good, and whose it is."""
    unexpired = or_(Token.expires_at.is_(None), Token.expires_at > utc_now())
    statement = select(Token, User).join(User, User.id == Token.user_id)
    row = session.execute(statement.where(Token.token_hash == token_hash, unexpired)).one_or_none()
    return (row[0], row[1]) if row else None
