"""Request and response bodies of `/auth`."""

from datetime import datetime
from typing import Annotated, Self

from pydantic import ConfigDict, Field

from backend.access.auth.passwords import MAX_CHARACTERS, MIN_CHARACTERS
from backend.db import LoginSession
from backend.platform.principals import Role
from backend.platform.schemas import Id, Page
from backend.platform.text import Text
from backend.specs.fields import Schema, Strict

UserName = Annotated[Text, Field(min_length=1, max_length=100)]
NewPassword = Annotated[Text, Field(min_length=MIN_CHARACTERS, max_length=MAX_CHARACTERS)]
OldPassword = Annotated[Text, Field(max_length=MAX_CHARACTERS)]


class LoginRequest(Strict):
    """The body of `POST /auth/login`."""

    name: UserName
    """Name with which you log in."""
    password: OldPassword
    """Password of this user."""


class PasswordRequest(Strict):
    """The body of `POST /auth/password`."""

    current: OldPassword = Field(
        default="", description="Current password; not required for users without one."
    )
    new: NewPassword
    """New password, of at least 10 characters."""


class OidcMethod(Schema):
    """Sign-in by an OpenID Connect provider, which begins at `/login/oidc`."""

    name: str
    """What the login page calls the provider."""


class LoginMethods(Schema):
    """How users can log in apart from password and one-time link."""

    oidc: OidcMethod | None
    """The OpenID Connect provider; null if none is configured."""


class Me(Schema):
    """The authenticated user."""

    model_config = ConfigDict(from_attributes=True)

    id: Id
    """Id of the user."""
    name: str = Field(examples=["ada"])
    """Name with which the user logs in."""
    role: Role
    """What the user or, with a token, the token may do: `viewer` reads, `operator` also creates and controls
    runs, `admin` also manages users and the installation."""


class Account(Me):
    """The authenticated user, and a ticket for addresses."""

    ticket: str | None
    """For the parameter `ticket` of an address to which a browser sends no header, such as that of a stream,
    a video or a download: for an hour, to read, and beside the session's cookie only. Null for a token and
    for a request that was authenticated by a ticket."""
    missing_extras: list[str] = Field(examples=[["parquet"]])
    """Extras of Callboard that the web process lacks, such as `parquet`, without which it writes neither CSV
    nor Parquet files."""


class NewSession(Account):
    """The user who has logged in, and what only the page may know."""

    page_secret: str
    """The session's second secret, which the page keeps and sends as the header `X-Page-Secret`: the cookie
    alone is not accepted."""


class SessionOut(Schema):
    """A logged-in browser."""

    model_config = ConfigDict(from_attributes=True)

    id: Id
    """Id of the session."""
    current: bool
    """Whether it is the session of this request."""
    method: str | None
    """How you logged in: `link`, `password` or `oidc` (OpenID Connect); null if it is not known."""
    created_at: datetime
    """When the browser logged in."""
    last_used_at: datetime
    """Time of the latest use, to about a minute."""
    expires_at: datetime
    """When it ends even if it is used."""
    address: str | None
    """The client's address at the latest use."""
    user_agent: str | None
    """The browser, from its `User-Agent` header."""

    @classmethod
    def of(cls, row: LoginSession, *, current: bool) -> Self:
        """Build it from its row."""
        return cls(
            id=row.id,
            current=current,
            method=row.method,
            created_at=row.created_at,
            last_used_at=row.last_used_at,
            expires_at=row.expires_at,
            address=row.address,
            user_agent=row.user_agent,
        )


class SessionPage(Page):
    """A page of sessions."""

    items: list[SessionOut]
    """Sessions of this page."""
