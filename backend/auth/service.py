"""Logging in and out."""

import hashlib
import secrets
from dataclasses import dataclass
from datetime import timedelta

from pwdlib import PasswordHash
from sqlalchemy.orm import Session

from backend.auth import repository
from backend.auth.roles import Role
from backend.db import User
from backend.db.clock import database_now

OWNER = "owner"
"""The one user of an embedded installation; logs in by link."""

LINK_LIFETIME = timedelta(days=1)
SESSION_LIFETIME = timedelta(days=30)


@dataclass(frozen=True)
class Actor:
    """Who makes a request."""

    id: str
    name: str
    role: Role

    @classmethod
    def of(cls, user: User) -> "Actor":
        """From a user's row."""
        return cls(user.id, user.name, Role(user.role))


def set_owner_password(session: Session, password: str) -> None:
    """Give the owner a password, without which the service is not offered to other machines."""
    repository.set_password_hash(session, _owner(session), PasswordHash.recommended().hash(password))


def create_login_link(session: Session) -> str:
    """A token for `GET /login?token=...` that logs the owner in, once, within a day."""
    owner = _owner(session)
    token = secrets.token_urlsafe(32)
    repository.add_login_link(session, hash_secret(token), owner.id, database_now(session) + LINK_LIFETIME)
    return token


def log_in_by_link(session: Session, token: str) -> str | None:
    """Use up a link. The new session's secret for the cookie, or none when the link is no good."""
    user = repository.use_login_link(session, hash_secret(token))
    return _open_session(session, user) if user else None


def find_actor(session: Session, secret: str) -> Actor | None:
    """Who holds this session's secret."""
    user = repository.session_user(session, hash_secret(secret))
    return Actor.of(user) if user else None


def log_out(session: Session, secret: str) -> None:
    """End a session."""
    repository.delete_session(session, hash_secret(secret))


def hash_secret(secret: str) -> str:
    """What is stored of a secret. A plain hash will do: the secrets are long and random."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()


def _owner(session: Session) -> User:
    return repository.user_by_name(session, OWNER) or repository.add_user(session, OWNER, Role.ADMIN)


def _open_session(session: Session, user: User) -> str:
    secret = secrets.token_urlsafe(32)
    repository.add_session(session, hash_secret(secret), user.id, database_now(session) + SESSION_LIFETIME)
    return secret
