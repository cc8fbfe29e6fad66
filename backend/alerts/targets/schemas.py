"""Bodies of targets of alerts."""

from datetime import datetime
from typing import Literal, Self

from pydantic import ConfigDict, Field

from backend.db import AlertTarget
from backend.platform.schemas import Id, Page
from backend.platform.text import Text
from backend.specs.fields import NAME, Schema, Strict
from backend.specs.run_fields import MAX_NAME

TargetKind = Literal["json", "mail", "slack", "discord"]
MAX_URL = 2_000


class TargetRequest(Strict):
    """The body of `POST /alert-targets`."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "lab", "secret_url": "https://hooks.example/callboard"}]}
    )

    name: Text = Field(min_length=1, max_length=MAX_NAME, pattern=NAME)
    """Its name, by which users choose it."""
    secret_url: Text = Field(min_length=1, max_length=MAX_URL)
    """Its address, which is never returned. An `https://` address gets JSON by POST, or is that of a webhook
    of Slack or Discord; `mailtos://user:password@host?to=address` sends mail. Apprise's own forms `jsons://`,
    `slack://` and `discord://` are accepted too; without TLS, `json://` is for an address of the worker's own
    machine only."""


class TargetOut(Schema):
    """A target of alerts."""

    model_config = ConfigDict(from_attributes=True)

    id: Id
    """Id of the target."""
    name: str = Field(examples=["lab"])
    """Its name."""
    kind: TargetKind
    """What it is."""
    masked_url: str | None = Field(examples=["jsons://hooks.example/****"])
    """Its address without secrets; null but for admins."""
    created_at: datetime
    """When it was created."""

    @classmethod
    def of(cls, target: AlertTarget, *, for_admin: bool) -> Self:
        """From its row."""
        out = cls.model_validate(target)
        return out if for_admin else out.model_copy(update={"masked_url": None})


class TargetPage(Page):
    """A page of targets."""

    items: list[TargetOut]
    """Targets of this page."""
