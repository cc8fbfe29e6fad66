"""Logging in and out."""

import hashlib
import secrets
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy.orm import Session

from backend.auth import passwords, repository
from backend.auth.roles import Role
from backend.db import Token, User
from backend.db.clock import database_now

OWNER = "owner"
"""The one user of an embedded installation; logs in by link."""

TOKEN_PREFIX = "cb_"  # noqa: S105 - lets secret scanners know one when they see it
LINK_LIFETIME = timedelta(days=1)
SESSION_LIFETIME = timedelta(days=30)


@dataclass(frozen=True)
class Actor:
    """Who makes a request."""

    id: str
    name: str
    role: Role


def set_owner_password(session: Session, password: str) -> None:
    """Give the owner a password, without which the service is not offered to other machines."""
    repository.set_password_hash(session, _owner(session), passwords.hash_password(password))


def create_login_link(session: Session) -> str:
    """A token for `GET /login?token=...` that logs the owner in, once, within a day."""
    owner = _owner(session)
    token = secrets.token_urlsafe(32)
    repository.add_login_link(session, hash_secret(token), owner.id, database_now(session) + LINK_LIFETIME)
    return token


def log_in_by_link(session: Session, token: str) -> str | None:
    """Use up a link. The new session's secret for the cookie, or none when the link is no good."""
    user = repository.use_login_link(session, hash_secret(token))
    return open_session(session, user) if user else None


def check_password(session: Session, name: str, password: str) -> User | None:
    """The user, where name and password are right."""
    user = repository.user_by_name(session, name)
    right = passwords.verify_password(password, user.password_hash if user else None)
    return user if right else None


def check_change(session: Session, user_id: str, password: str) -> User | None:
    """The user, where they may change their password: they know it, or have none yet."""
    user = repository.user_by_id(session, user_id)
    if user is None or user.password_hash is None:
        return user
    return user if passwords.verify_password(password, user.password_hash) else None


def open_session(session: Session, user: User) -> str:
    """Log a user in. The new session's secret, for the cookie."""
    secret = secrets.token_urlsafe(32)
    repository.add_session(session, hash_secret(secret), user.id, database_now(session) + SESSION_LIFETIME)
    return secret


def set_password(session: Session, user: User, password: str) -> None:
    """Give a user another password, and log out every browser that knew the old one."""
    repository.set_password_hash(session, user, passwords.hash_password(password))
    repository.delete_sessions_of(session, user.id)


def find_actor(session: Session, secret: str) -> Actor | None:
    """Who holds this session's secret."""
    user = repository.session_user(session, hash_secret(secret))
    return Actor(user.id, user.name, Role(user.role)) if user else None


def find_token_actor(session: Session, secret: str) -> Actor | None:
    """Who holds this token, with what both user and token may do."""
    found = repository.token_user(session, hash_secret(secret))
    if found is None:
        return None
    token, user = found
    return Actor(user.id, user.name, Role(token.role).at_most(Role(user.role)))


def create_token(
    session: Session, user: User, name: str, role: Role, lifetime: timedelta | None
) -> tuple[Token, str]:
    """A new token and its secret, which is told only now."""
    secret = TOKEN_PREFIX + secrets.token_urlsafe(32)
    expires_at = database_now(session) + lifetime if lifetime else None
    return repository.add_token(session, user.id, name, role, hash_secret(secret), expires_at), secret


def create_token_for(
    session: Session, user_name: str, name: str, role: Role, lifetime: timedelta | None
) -> str | None:
    """A new token's secret for the user of this name, none when there is no such user; the owner is made."""
    user = _owner(session) if user_name == OWNER else repository.user_by_name(session, user_name)
    return create_token(session, user, name, role, lifetime)[1] if user else None


def log_out(session: Session, secret: str) -> None:
    """End a session."""
    repository.delete_session(session, hash_secret(secret))


def hash_secret(secret: str) -> str:
    """What is stored of a secret. A plain hash will do: the secrets are long and random."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()


def _owner(session: Session) -> User:
    return repository.user_by_name(session, OWNER) or repository.add_user(session, OWNER, Role.ADMIN)
