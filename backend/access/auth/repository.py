"""Users, sessions, login links and tokens in the database. Secrets are stored as hashes only."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Executable, bindparam, delete, or_, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from backend.db import LoginLimit, LoginLink, LoginSession, Token, User, View, keyset
from backend.db.base import new_id
from backend.db.clock import database_now, utc_now
from backend.db.view import MAX_VIEW_NAME
from backend.platform.principals import Role

# The statements of each request, built once: to build one takes a third as long as to execute it.
_SESSION_USERS = select(
    LoginSession.id,
    LoginSession.token_hash,
    User.id,
    User.name,
    User.role,
    LoginSession.expires_at,
    LoginSession.last_used_at,
    utc_now(),
).join(User, User.id == LoginSession.user_id)
_SESSION_USER = _SESSION_USERS.where(LoginSession.token_hash == bindparam("token_hash"))
_SESSION_USER_BY_ID = _SESSION_USERS.where(LoginSession.id == bindparam("id"))
_TOKEN_USER = (
    select(Token, User)
    .join(User, User.id == Token.user_id)
    .where(Token.token_hash == bindparam("token_hash"))
    .where(or_(Token.expires_at.is_(None), Token.expires_at > utc_now()))
)


def user_by_name(session: Session, name: str) -> User | None:
    """The user with this name, or None."""
    return session.scalars(select(User).where(User.name == name)).one_or_none()


def user_by_id(session: Session, user_id: str, *, for_update: bool = False) -> User | None:
    """The user with this id, or None."""
    return session.get(User, user_id, with_for_update=for_update or None, populate_existing=for_update)


def lock_user(session: Session, user_id: str) -> None:
    """Let transactions that call this for one user follow each other."""
    session.execute(select(User.id).where(User.id == user_id).with_for_update(key_share=True))


def user_by_identity(session: Session, issuer: str, subject: str) -> User | None:
    """The user with this identity at an OpenID Connect provider, or None."""
    statement = select(User).where(User.oidc_issuer == issuer, User.oidc_subject == subject)
    return session.scalars(statement).one_or_none()


def set_identity(session: Session, user: User, identity: tuple[str, str] | None) -> None:
    """Set issuer and subject of a user at an OpenID Connect provider; None: they have none."""
    user.oidc_issuer, user.oidc_subject = identity or (None, None)
    session.flush()


def add_user(session: Session, name: str, role: Role, password_hash: str | None = None) -> User:
    """Add a user."""
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
    """Set a user's password."""
    user.password_hash = password_hash
    session.flush()


def has_admin_with_password(session: Session) -> bool:
    """Whether any admin can log in with a password."""
    statement = select(User.id).where(User.role == Role.ADMIN, User.password_hash.is_not(None)).limit(1)
    return session.scalars(statement).one_or_none() is not None


def add_login_link(session: Session, token_hash: str, user_id: str, expires_at: datetime) -> None:
    """Add a link that logs in once."""
    session.add(LoginLink(token_hash=token_hash, user_id=user_id, expires_at=expires_at, used_at=None))
    session.flush()


def login_link_user(session: Session, token_hash: str) -> User | None:
    """The user of a link, also of one that has expired or was used; None if it is unknown."""
    statement = select(User).join(LoginLink, LoginLink.user_id == User.id)
    return session.scalars(statement.where(LoginLink.token_hash == token_hash)).one_or_none()


def use_login_link(session: Session, token_hash: str) -> User | None:
    """Use a link. Returns its user, or None if it is unknown, expired or used; of two concurrent uses, one
    succeeds."""
    usable = (
        (LoginLink.token_hash == token_hash)
        & LoginLink.used_at.is_(None)
        & (LoginLink.expires_at > utc_now())
    )
    user_id = session.scalars(
        update(LoginLink).where(usable).values(used_at=utc_now()).returning(LoginLink.user_id)
    ).one_or_none()
    return session.get(User, user_id) if user_id else None


def add_session(session: Session, added: LoginSession) -> None:
    """Add a browser session."""
    session.add(added)
    session.flush()


def sessions_by_last_use(session: Session, user_id: str) -> Sequence[str]:
    """Ids of a user's browser sessions, the one that was used last first."""
    ids = select(LoginSession.id).where(LoginSession.user_id == user_id)
    return session.scalars(ids.order_by(LoginSession.last_used_at.desc(), LoginSession.id.desc())).all()


def delete_expired_sessions(session: Session) -> None:
    """Delete the browser sessions of all users that have expired."""
    session.execute(delete(LoginSession).where(LoginSession.expires_at <= utc_now()))


def delete_sessions(session: Session, ids: Collection[str]) -> None:
    """Delete the browser sessions with these ids."""
    session.execute(delete(LoginSession).where(LoginSession.id.in_(ids)))


class SessionUser(NamedTuple):
    """A browser session and its user."""

    session_id: str
    token_hash: str
    user_id: str
    user_name: str
    role: str


def session_user(session: Session, token_hash: str, idle: timedelta) -> SessionUser | None:
    """A browser session and its user; None if it is unknown, has expired or was not used for `idle`."""
    return _valid(session, _SESSION_USER, {"token_hash": token_hash}, idle)


def session_user_by_id(session: Session, session_id: str, idle: timedelta) -> SessionUser | None:
    """A browser session by its id, and its user; None as from `session_user`."""
    return _valid(session, _SESSION_USER_BY_ID, {"id": session_id}, idle)


def _valid(
    session: Session, query: Executable, parameters: dict[str, str], idle: timedelta
) -> SessionUser | None:
    # Each request runs this. It bypasses the ORM session, whose own work takes longer than the query.
    row = session.connection().execute(query, parameters).one_or_none()
    if row is None:
        return None
    *columns, expires_at, last_used_at, now = row
    return SessionUser(*columns) if now < min(expires_at, last_used_at + idle) else None


def sessions_page(
    session: Session, user_id: str, idle: timedelta, *, limit: int, cursor: str | None
) -> tuple[list[LoginSession], str | None]:
    """One page of a user's valid browser sessions, latest first, and the cursor of the next page."""
    return keyset.page(
        session,
        select(LoginSession).where(
            LoginSession.user_id == user_id,
            LoginSession.expires_at > utc_now(),
            LoginSession.last_used_at > database_now(session) - idle,
        ),
        by=LoginSession.id,
        row_id=LoginSession.id,
        descending=True,
        limit=limit,
        cursor=cursor,
    )


def roles_of_sessions(session: Session, ids: Collection[str], idle: timedelta) -> dict[str, str]:
    """The roles of the browser sessions with these ids that are valid, by id."""
    statement = (
        select(LoginSession.id, User.role)
        .join(User, User.id == LoginSession.user_id)
        .where(
            LoginSession.id.in_(ids),
            LoginSession.expires_at > utc_now(),
            LoginSession.last_used_at > database_now(session) - idle,
        )
    )
    return dict(session.execute(statement).all())


def set_session_use(session: Session, session_id: str, address: str, at: datetime) -> None:
    """Record the latest use of a browser session."""
    used = update(LoginSession).where(LoginSession.id == session_id, LoginSession.last_used_at < at)
    session.execute(used.values(last_used_at=at, address=address))


def delete_session(session: Session, session_id: str, user_id: str) -> bool:
    """Delete a browser session of a user; False if there is none."""
    mine = (LoginSession.id == session_id) & (LoginSession.user_id == user_id)
    return session.scalars(delete(LoginSession).where(mine).returning(LoginSession.id)).first() is not None


def delete_sessions_of(session: Session, user_id: str, *, method: str | None = None) -> None:
    """Delete all browser sessions of a user, or those that began by `method`."""
    theirs = delete(LoginSession).where(LoginSession.user_id == user_id)
    session.execute(theirs if method is None else theirs.where(LoginSession.method == method))


def lock_login_limits(session: Session, keys: Sequence[str]) -> list[LoginLimit]:
    """The limits with these keys, created if missing and locked in a fixed order; expired ones are
    deleted."""
    session.execute(delete(LoginLimit).where(LoginLimit.expires_at <= utc_now()))
    locked = {key: _locked_limit(session, key) for key in sorted(keys)}
    return [locked[key] for key in keys]


def _locked_limit(session: Session, key: str) -> LoginLimit:
    stored = session.get(LoginLimit, key, with_for_update=True, populate_existing=True)
    if stored is not None:
        return stored
    now = database_now(session)
    limit = LoginLimit(key=key, failures=0, blocked_until=now, expires_at=now)
    try:
        with session.begin_nested():
            session.add(limit)
    except IntegrityError:
        # A concurrent attempt has added it.
        return session.get_one(LoginLimit, key, with_for_update=True, populate_existing=True)
    return limit


def add_token(session: Session, token: Token) -> Token:
    """Add an API token."""
    session.add(token)
    session.flush()
    return token


def change_token_roles(session: Session, user_id: str, before: Collection[Role], role: Role) -> None:
    """Give `role` to a user's tokens that have one of the roles `before`."""
    changed = update(Token).where(Token.user_id == user_id, Token.role.in_(before))
    session.execute(changed.values(role=role))


def roles_of_tokens(session: Session, ids: Collection[str]) -> dict[str, str]:
    """The roles of the tokens with these ids that are valid, by id."""
    unexpired = or_(Token.expires_at.is_(None), Token.expires_at > utc_now())
    statement = select(Token.id, Token.role).where(Token.id.in_(ids), unexpired)
    return dict(session.execute(statement).all())


def set_token_use(session: Session, token_id: str, address: str, at: datetime) -> None:
    """Record the latest use of a token."""
    used = update(Token).where(Token.id == token_id)
    session.execute(used.values(last_used_at=at, last_used_address=address))


def token_user(session: Session, token_hash: str) -> tuple[Token, User] | None:
    """A valid token and its user, or None."""
    row = session.execute(_TOKEN_USER, {"token_hash": token_hash}).one_or_none()
    return (row[0], row[1]) if row else None


def root_token_id(session: Session, token: Token) -> str:
    """Id of the first token in the chain of tokens that led to this one: each has created the next."""
    while token.parent_id is not None:
        token = session.get_one(Token, token.parent_id)
    return token.id


def users_page(session: Session, *, limit: int, cursor: str | None) -> tuple[list[User], str | None]:
    """One page of all users by name, and the cursor of the next page."""
    return keyset.page(
        session, select(User), by=User.name, row_id=User.id, descending=False, limit=limit, cursor=cursor
    )


def lock_admins(session: Session) -> list[User]:
    """All admins, locked in a fixed order: of two concurrent changes, the second sees the first."""
    statement = select(User).where(User.role == Role.ADMIN).order_by(User.id)
    return list(session.scalars(statement.with_for_update().execution_options(populate_existing=True)))


def pass_views(session: Session, user: User, heir: User) -> list[str]:
    """Give a user's named views to another one, under other names where the heir has those; returns their
    ids."""
    rows = session.execute(select(View.project, View.name).where(View.owner_id == heir.id))
    taken = {(project, name) for project, name in rows}
    named = select(View).where(View.owner_id == user.id, View.name.is_not(None)).order_by(View.id)
    views = session.scalars(named.with_for_update()).all()
    for view in views:
        name, n = view.name or "", 1
        while (view.project, view.name) in taken:
            end = f" ({user.name})" if n == 1 else f" ({user.name}, {n})"
            view.name, n = name[: MAX_VIEW_NAME - len(end)] + end, n + 1
        taken.add((view.project, view.name))
        view.owner_id = heir.id
        view.version += 1
    session.flush()
    return [view.id for view in views]


def delete_user(session: Session, user: User) -> None:
    """Delete a user with their sessions and tokens; their runs stay."""
    session.delete(user)
    session.flush()


def tokens_page(
    session: Session, user_id: str | None, *, limit: int, cursor: str | None
) -> tuple[list[Token], str | None]:
    """One page of a user's tokens, or of all users' if `user_id` is None, latest first."""
    statement = select(Token) if user_id is None else select(Token).where(Token.user_id == user_id)
    return keyset.page(
        session, statement, by=Token.id, row_id=Token.id, descending=True, limit=limit, cursor=cursor
    )


def token_by_id(session: Session, token_id: str, *, for_update: bool = False) -> Token | None:
    """The token with this id, or None."""
    return session.get(Token, token_id, with_for_update=for_update or None, populate_existing=for_update)


def tokens_by_id(session: Session, ids: Collection[str]) -> dict[str, Token]:
    """The tokens with these ids."""
    return {token.id: token for token in session.scalars(select(Token).where(Token.id.in_(ids)))}


def users_by_id(session: Session, ids: Collection[str]) -> dict[str, User]:
    """The users with these ids."""
    return {user.id: user for user in session.scalars(select(User).where(User.id.in_(ids)))}


def delete_token(session: Session, token: Token) -> None:
    """Revoke a token, with those that it has created."""
    session.delete(token)
    session.flush()
