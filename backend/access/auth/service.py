"""Logging in and out."""

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from sqlalchemy.orm import Session

from backend.access.auth import passwords, repository
from backend.access.auth.secrets import SessionSecrets, hash_secret
from backend.db import LoginSession, Run, Token, User
from backend.db.base import new_id
from backend.db.clock import database_now
from backend.platform.errors import Forbidden
from backend.platform.principals import EXTERNAL_RUNS, RUN, Credential, Principal, Role

OWNER = "owner"
"""The user of an embedded installation, who logs in by link."""

TOKEN_PREFIX = "cb_"  # noqa: S105 - lets secret scanners recognise a token
LINK_LIFETIME = timedelta(days=1)
SESSION_LIFETIME = timedelta(days=30)
MAX_SESSIONS = 100
"""Maximum number of sessions of a user; another login ends the least recently used one."""


@dataclass(frozen=True)
class Browser:
    """Where a login comes from, as the request states."""

    address: str
    user_agent: str


@dataclass(frozen=True)
class TokenOrigin:
    """What creates a token."""

    created_with: Literal["session", "token", "command line", "run"]
    parent_id: str | None = None
    """The token that creates it."""


COMMAND_LINE = TokenOrigin("command line")


def set_owner_password(session: Session, password_hash: str) -> None:
    """Set the owner's password, which is required before the service accepts other machines, and end the
    owner's sessions."""
    set_password(session, _owner(session), password_hash)


def create_login_link(session: Session) -> str:
    """Create a token for `GET /login?token=...` that logs the owner in, once, within a day."""
    owner = _owner(session)
    token = secrets.token_urlsafe(32)
    repository.add_login_link(session, hash_secret(token), owner.id, database_now(session) + LINK_LIFETIME)
    return token


def log_in_by_link(session: Session, token: str, browser: Browser) -> tuple[Principal, SessionSecrets] | None:
    """Use a login link. Returns its user and the secrets of the new session, or None if the link is
    invalid."""
    user = repository.use_login_link(session, hash_secret(token))
    return open_session(session, user, "link", browser) if user else None


def check_password(session: Session, name: str, password: str) -> User | None:
    """The user, if name and password match."""
    user = repository.user_by_name(session, name)
    right = passwords.verify_password(password, user.password_hash if user else None)
    return user if right else None


def check_change(session: Session, user_id: str, password: str) -> User | None:
    """The user, if they may change their password: it matches, or they have none yet.

    Raises:
        Forbidden: they sign in by OpenID Connect only: a password would outlast their account there.
    """
    user = repository.user_by_id(session, user_id)
    if user is not None and user.password_hash is None and user.oidc_subject is not None:
        raise Forbidden("you sign in with OpenID Connect and have no local password: ask an admin to set one")
    if user is None or user.password_hash is None:
        return user
    return user if passwords.verify_password(password, user.password_hash) else None


def lock_unchanged(session: Session, user: User) -> User | None:
    """Lock the user whose password was checked before the transaction; None if they have been deleted or have
    another password since."""
    current = repository.user_by_id(session, user.id, for_update=True)
    return current if current is not None and current.password_hash == user.password_hash else None


def open_session(
    session: Session, user: User, method: Literal["link", "password", "oidc"], browser: Browser
) -> tuple[Principal, SessionSecrets]:
    """Create a session for a user. Returns them and its secrets, for the cookie and for the page.

    Expired sessions are deleted, and the user's least recently used ones beyond `MAX_SESSIONS`.
    """
    created, now = SessionSecrets.create(), database_now(session)
    opened = LoginSession(
        token_hash=created.hash,
        id=new_id(),
        user_id=user.id,
        created_at=now,
        expires_at=now + SESSION_LIFETIME,
        last_used_at=now,
        address=browser.address,
        user_agent=browser.user_agent,
        method=method,
    )
    # Of two logins at once, neither would count the other's session. Users are locked before their sessions.
    repository.lock_user(session, user.id)
    repository.delete_expired_sessions(session)
    repository.add_session(session, opened)
    repository.delete_sessions(session, repository.sessions_by_last_use(session, user.id)[MAX_SESSIONS:])
    return Principal(user.id, user.name, Role(user.role), Credential("session", opened.id)), created


def set_role(session: Session, user: User, role: Role) -> None:
    """Change a user's role, and lower the roles of their tokens to it where they are higher."""
    user.role = role
    higher = [other for other in Role if not role.covers(other)]
    repository.change_token_roles(session, user.id, higher, role)


def set_password(session: Session, user: User, password_hash: str) -> None:
    """Change a user's password and end all of their sessions."""
    repository.set_password_hash(session, user, password_hash)
    repository.delete_sessions_of(session, user.id)


def find_principal(session: Session, sent: SessionSecrets, idle: timedelta) -> Principal | None:
    """The user of a session, by its secrets; None if it was not used for `idle`."""
    row = repository.session_user(session, sent.hash, idle)
    return principal_of(row) if row is not None else None


def principal_of(row: repository.SessionUser) -> Principal:
    """The user of a session."""
    return Principal(row.user_id, row.user_name, Role(row.role), Credential("session", row.session_id))


def find_token_principal(session: Session, secret: str) -> Principal | None:
    """The user of a token, with the lower role of user and token."""
    row = repository.token_user(session, hash_secret(secret))
    if row is None:
        return None
    token, user = row
    role = Role(token.role).at_most(Role(user.role))
    credential = Credential("token", token.id, repository.root_token_id(session, token))
    only_external_runs = token.scope in (EXTERNAL_RUNS, RUN)
    return Principal(user.id, user.name, role, credential, only_external_runs, token.scope == RUN)


def create_token(
    session: Session,
    user: User,
    name: str,
    role: Role,
    expires_at: datetime | None,
    origin: TokenOrigin = COMMAND_LINE,
    scope: str | None = None,
) -> tuple[Token, str]:
    """Create a token. Returns it and its secret, which is not stored."""
    secret = TOKEN_PREFIX + secrets.token_urlsafe(32)
    token = Token(
        id=new_id(),
        user_id=user.id,
        name=name,
        role=role,
        scope=scope,
        token_hash=hash_secret(secret),
        parent_id=origin.parent_id,
        created_with=origin.created_with,
        created_at=database_now(session),
        expires_at=expires_at,
    )
    return repository.add_token(session, token), secret


def create_token_of_run(session: Session, run: Run) -> str | None:
    """Create the token with which the script of a locked run writes that run, and return its secret; None if
    the user who started the run has been removed."""
    user = repository.user_by_id(session, run.created_by) if run.created_by else None
    if user is None:
        return None
    role = Role.OPERATOR.at_most(Role(user.role))
    token, secret = create_token(session, user, f"run {run.id}", role, None, TokenOrigin("run"), RUN)
    run.token_id = token.id
    return secret


def revoke_token_of_run(session: Session, run: Run) -> None:
    """Revoke the token of a locked run's attempt, if it has one."""
    token = repository.token_by_id(session, run.token_id) if run.token_id else None
    if token is not None and token.scope == RUN:
        repository.delete_token(session, token)


def create_token_for(
    session: Session,
    user_name: str,
    name: str,
    role: Role,
    lifetime: timedelta | None,
    scope: str | None = None,
) -> str | None:
    """Create a token on the command line for the user with this name, and return its secret; None if there is
    no such user. The owner is created if missing."""
    user = _owner(session) if user_name == OWNER else repository.user_by_name(session, user_name)
    if user is None:
        return None
    expires_at = database_now(session) + lifetime if lifetime else None
    return create_token(session, user, name, role, expires_at, COMMAND_LINE, scope)[1]


def _owner(session: Session) -> User:
    return repository.user_by_name(session, OWNER) or repository.add_user(session, OWNER, Role.ADMIN)
