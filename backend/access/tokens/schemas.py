"""Request and response bodies of tokens."""

from datetime import datetime
from typing import Literal, Self

from pydantic import ConfigDict, Field

from backend.db import Token, User
from backend.platform.principals import Role
from backend.platform.schemas import Id, Page
from backend.platform.text import Text
from backend.specs.fields import Schema, Strict

MAX_DAYS = 3650


class TokenRequest(Strict):
    """The body of `POST /tokens`."""

    name: Text = Field(min_length=1, max_length=100, description="Name of the token.")
    role: Role | None = Field(
        default=None, strict=False, description="Upper limit of its permissions; default: your role."
    )
    scope: Literal["external_runs"] | None = Field(
        default=None,
        description="`external_runs`: it may only create external runs and write to those that it created.",
    )
    expires_in_days: int | None = Field(
        default=None,
        ge=1,
        le=MAX_DAYS,
        description="Days after which the token expires; null: never. A token created by another one expires "
        "with it at the latest.",
    )


class TokenOut(Schema):
    """An API token."""

    model_config = ConfigDict(from_attributes=True)

    id: Id
    """Id of the token, with which it is revoked."""
    user_id: Id
    """Id of the user whose permissions the token has."""
    user_name: str
    """Name of the user whose permissions the token has."""
    name: str = Field(examples=["nightly sweep"])
    """Name of the token, which says what it is for."""
    role: Role
    """Upper limit of its permissions; never more than its user's role."""
    scope: str | None
    """`external_runs`: it may only create external runs, and write those that it has created; `run`: it may
    only write the run whose script has it; null: all that its role allows."""
    created_at: datetime
    """When the token was created."""
    created_with: str | None
    """What created it: the user's browser `session`, another `token`, the `command line`, or a `run` for its
    script; null if it is not known."""
    parent_id: str | None
    """Id of the token that created it and with which it is revoked; null for none."""
    parent_name: str | None
    """Name of that token; null for none."""
    expires_at: datetime | None
    """When the token stops being valid; null if it does not expire."""
    last_used_at: datetime | None
    """When it was used last, to about a minute; null: never."""
    last_used_address: str | None
    """Address of the client that used the token last; null: none."""

    @classmethod
    def of(cls, token: Token, user: User, parent: Token | None) -> Self:
        """Build it from its rows."""
        return cls(
            id=token.id,
            user_id=user.id,
            user_name=user.name,
            name=token.name,
            role=Role(token.role).at_most(Role(user.role)),
            scope=token.scope,
            created_at=token.created_at,
            created_with=token.created_with,
            parent_id=token.parent_id,
            parent_name=parent.name if parent else None,
            expires_at=token.expires_at,
            last_used_at=token.last_used_at,
            last_used_address=token.last_used_address,
        )


class NewToken(TokenOut):
    """An API token with its secret."""

    token: str = Field(examples=["cb_3q2-7w"])
    """Returned only here; send it as `Authorization: Bearer`."""


class TokenPage(Page):
    """A page of tokens."""

    items: list[TokenOut]
    """Tokens of this page."""
