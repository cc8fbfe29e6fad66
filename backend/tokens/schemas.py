"""Tokens as REST shows them and takes them."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from backend.auth.roles import Role
from backend.pagination import Page
from backend.specs.fields import Strict
from backend.text import Text

MAX_DAYS = 3650


class TokenRequest(Strict):
    """The body of `POST /tokens`."""

    name: Text = Field(min_length=1, max_length=100, description="What it is for.")
    role: Role | None = Field(
        default=None, strict=False, description="What it may do at most; your own role by default."
    )
    expires_in_days: int | None = Field(
        default=None, ge=1, le=MAX_DAYS, description="It never ends by itself without."
    )


class TokenOut(BaseModel):
    """A script's key."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    user_id: str
    name: str
    role: Role
    created_at: datetime
    expires_at: datetime | None


class NewToken(TokenOut):
    """A script's key, with the secret."""

    token: str
    """Shown only now; send it as `Authorization: Bearer`."""


class TokenPage(Page[TokenOut]):
    """A page of tokens."""
