"""Logging in, as REST shows it and takes it."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from backend.auth.passwords import MAX_CHARACTERS, MIN_CHARACTERS
from backend.auth.roles import Role
from backend.specs.fields import Strict
from backend.text import Text

UserName = Annotated[Text, Field(min_length=1, max_length=100)]
NewPassword = Annotated[Text, Field(min_length=MIN_CHARACTERS, max_length=MAX_CHARACTERS)]
OldPassword = Annotated[Text, Field(max_length=MAX_CHARACTERS)]


class LoginRequest(Strict):
    """The body of `POST /auth/login`."""

    name: UserName
    password: OldPassword


class PasswordRequest(Strict):
    """The body of `POST /auth/password`."""

    current: OldPassword = Field(default="", description="Not needed by those who have none yet.")
    new: NewPassword


class Me(BaseModel):
    """Who you are."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    name: str
    role: Role
