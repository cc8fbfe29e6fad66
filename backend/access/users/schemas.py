"""Request and response bodies of users."""

from datetime import datetime
from typing import Annotated

from pydantic import ConfigDict, Field

from backend.access.auth.schemas import NewPassword, UserName
from backend.platform.principals import Role
from backend.platform.schemas import Id, Page
from backend.platform.text import Text
from backend.specs.fields import Schema, Strict

OidcSubject = Annotated[Text, Field(min_length=1, max_length=255)]


class UserRequest(Strict):
    """The body of `POST /users`."""

    name: UserName
    """Name with which the user logs in; no two users have the same."""
    role: Role = Field(strict=False)
    """What the user may do: `viewer` reads, `operator` also creates and controls runs, `admin` also manages
    users and the installation."""
    password: NewPassword
    """Initial password, of at least 10 characters."""


class UserChanges(Strict):
    """The body of `PATCH /users/{id}`: fields that are left out do not change."""

    role: Role | None = Field(default=None, strict=False)
    """New role; null changes nothing."""
    password: NewPassword | None = None
    """New password, of at least 10 characters; null changes nothing."""
    oidc_subject: OidcSubject | None = Field(
        default=None,
        description="Link the user to this subject of the OpenID Connect provider, by which they can then "
        "sign in; null: remove the link and end the sessions that were created through it.",
    )


class UserOut(Schema):
    """A user."""

    model_config = ConfigDict(from_attributes=True)

    id: Id
    """Id of the user."""
    name: str = Field(examples=["ada"])
    """Name with which the user logs in."""
    role: Role
    """What the user may do: `viewer` reads, `operator` also creates and controls runs, `admin` also manages
    users and the installation."""
    created_at: datetime
    """When the user was created."""
    oidc_issuer: str | None
    """The OpenID Connect provider by which they can sign in; null if they are linked to none."""
    oidc_subject: str | None
    """Subject by which that provider knows the user; null if they are linked to none."""


class UserPage(Page):
    """A page of users."""

    items: list[UserOut]
    """Users of this page."""
