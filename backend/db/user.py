"""Tables `users`, `sessions`, `login_links`, `login_limits` and `tokens`."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from backend.db.base import Base


class User(Base):
    """A person. Roles: `viewer` < `operator` < `admin`."""

    __tablename__ = "users"
    __table_args__ = (Index(None, "oidc_issuer", "oidc_subject", unique=True),)

    id: Mapped[str] = mapped_column(String(26), primary_key=True)
    name: Mapped[str] = mapped_column(String(100), unique=True)
    role: Mapped[str] = mapped_column(String(20))
    password_hash: Mapped[str | None] = mapped_column(String(300))
    """Argon2; None for the owner of an embedded installation, who logs in by link, and for users created by
    OpenID Connect."""
    oidc_issuer: Mapped[str | None] = mapped_column(String(500))
    oidc_subject: Mapped[str | None] = mapped_column(String(255))
    """With the issuer, the user's linked identity at an OpenID Connect provider."""
    created_at: Mapped[datetime]


class LoginSession(Base):
    """A logged-in browser. The cookie holds one of its two secrets and the page the other one; `token_hash`
    has half of each secret's hash, one half after the other."""

    __tablename__ = "sessions"

    token_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    id: Mapped[str] = mapped_column(String(26), unique=True)
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    """When it ends even if it is used."""
    last_used_at: Mapped[datetime]
    address: Mapped[str | None] = mapped_column(String(64))
    """Client's address at its latest use."""
    user_agent: Mapped[str | None] = mapped_column(String(300))
    method: Mapped[str | None] = mapped_column(String(20))
    """How its user logged in: `link`, `password` or `oidc`; None before these were recorded."""


class LoginLink(Base):
    """A one-time login link printed by `callboard up`."""

    __tablename__ = "login_links"

    token_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]


class LoginLimit(Base):
    """Failed logins: from one address, of one user name from it or from all, or of a known browser."""

    __tablename__ = "login_limits"

    key: Mapped[str] = mapped_column(String(64), primary_key=True)
    """Hash of whom it counts for."""
    failures: Mapped[int]
    """Attempts that failed, or whose result is not known yet."""
    blocked_until: Mapped[datetime]
    expires_at: Mapped[datetime] = mapped_column(index=True)


class Token(Base):
    """An API token. Its secret is shown once, on creation; the table holds its hash."""

    __tablename__ = "tokens"

    id: Mapped[str] = mapped_column(String(26), primary_key=True)
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    name: Mapped[str] = mapped_column(String(100))
    role: Mapped[str] = mapped_column(String(20))
    """Upper limit of its permissions; never more than its user has."""
    scope: Mapped[str | None] = mapped_column(String(20))
    """`external_runs`: it may only create external runs, and write those; `run`: only write the run whose
    `token_id` it is; None: all that its role allows."""
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    parent_id: Mapped[str | None] = mapped_column(ForeignKey("tokens.id", ondelete="CASCADE"), index=True)
    """The token that created it, and with which it is revoked."""
    created_with: Mapped[str | None] = mapped_column(String(20))
    """`session`, `token`, `command line` or `run`; None before these were recorded."""
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    last_used_address: Mapped[str | None] = mapped_column(String(64))
