"""Request and response bodies of shares."""

from datetime import datetime
from typing import Annotated, Self

from pydantic import ConfigDict, Field, StringConstraints

from backend.analysis.views.document import ViewDocument
from backend.db import Share
from backend.db.view import MAX_VIEW_NAME
from backend.platform.schemas import Id, Page
from backend.specs.fields import NAME, Schema, Strict
from backend.specs.run_fields import ProjectName

MAX_DAYS = 90
MAX_RUNS = 100
"""Runs of one page."""

_Title = Annotated[str, StringConstraints(min_length=1, max_length=MAX_VIEW_NAME, pattern=NAME)]


class FrozenRequest(Strict):
    """The body of `POST /shares/frozen`: what a page shows."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"title": "baselines", "document": {"filter": "tag:baseline", "grouping": "seed"}}]
        }
    )

    title: _Title = "Runs"
    """Title of the page; not shown without names."""
    project: ProjectName | None = None
    """The project whose runs match the document's filter; null for those of all."""
    document: ViewDocument
    """Its runs, or the filter of its runs, of which those that match now are shown, at most 100; and how."""
    groups: tuple[Annotated[str, StringConstraints(max_length=500)], ...] = Field(
        default=(), max_length=MAX_RUNS, strict=False
    )
    """Keys of groups of the document's grouping, as in `GET /comparisons/groups`: only the matching runs in
    these are shown. Empty for all."""
    names: bool = True
    """Whether the page has the names of runs and groups, paths and notes. Without, they are replaced on the
    server; settings, scores, algorithms, environments and metrics stay."""


class ShareRequest(FrozenRequest):
    """The body of `POST /shares`."""

    expires_in_days: int = Field(default=7, ge=1, le=MAX_DAYS)
    """Days after which the link stops working."""


class ShareOut(Schema):
    """A link to a page of certain runs, which needs no login."""

    id: Id
    """Id of the share, with which it is revoked."""
    title: str = Field(examples=["baselines"])
    """Title of the page."""
    owner: str = Field(examples=["ada"])
    """Name of the user who has created it."""
    runs: list[Id]
    """Ids of the runs on the page; those deleted since are left out there."""
    names: bool
    """Whether the page has names of runs and groups, paths and notes."""
    created_at: datetime
    """When it was created."""
    expires_at: datetime
    """When it stops working."""

    @classmethod
    def of(cls, share: Share, owner: str) -> Self:
        """From a row."""
        row = {name: getattr(share, name) for name in ShareOut.model_fields if name != "owner"}
        return cls.model_validate(row | {"owner": owner})


class NewShare(ShareOut):
    """A new link."""

    path: str = Field(examples=["/s/3q2-7w"])
    """Address of the page on this server, with its secret. Returned only here."""


class SharePage(Page):
    """A page of shares."""

    items: list[ShareOut]
    """Shares of this page."""
