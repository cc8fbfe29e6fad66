"""Users as REST shows them and takes them."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from backend.auth.roles import Role
from backend.auth.schemas import NewPassword, UserName
from backend.pagination import Page
from backend.specs.fields import Strict


class UserRequest(Strict):
    """The body of `POST /users`."""

    name: UserName
    role: Role = Field(strict=False)
    password: NewPassword


class UserChanges(Strict):
    """The body of `PATCH /users/{id}`: what is left out stays as it is."""

    role: Role | None = Field(default=None, strict=False)
    password: NewPassword | None = None


class UserOut(BaseModel):
    """A person who may log in."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    name: str
    role: Role
    created_at: datetime


class UserPage(Page[UserOut]):
    """A page of users."""
