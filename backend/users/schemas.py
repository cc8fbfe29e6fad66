"""Request and response bodies of users."""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from backend.auth.schemas import NewPassword, UserName
from backend.principals import Role
from backend.schemas import Page
from backend.specs.fields import Strict
from backend.text import Text

OidcSubject = Annotated[Text, Field(min_length=1, max_length=255)]


class UserRequest(Strict):
    """The body of `POST /users`."""

    name: UserName
    role: Role = Field(strict=False)
    password: NewPassword


class UserChanges(Strict):
    """The body of `PATCH /users/{id}`: fields that are left out do not change."""

    role: Role | None = Field(default=None, strict=False)
    password: NewPassword | None = None
    oidc_subject: OidcSubject | None = Field(
        default=None,
        description="Link the user to this subject of the OpenID Connect provider, by which they can then "
        "sign in; null: remove the link and end the sessions that were created through it.",
    )


class UserOut(BaseModel):
    """A user."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    name: str
    role: Role
    created_at: datetime
    oidc_issuer: str | None
    """The OpenID Connect provider by which they can sign in; null if they are linked to none."""
    oidc_subject: str | None
    """Who they are there."""


class UserPage(Page[UserOut]):
    """A page of users."""
