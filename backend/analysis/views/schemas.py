"""Request and response bodies of views."""

import re
from datetime import datetime
from typing import Annotated, Self

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints

from backend.analysis.views.document import ViewDocument, read
from backend.db import View, ViewState
from backend.db.view import MAX_VIEW_NAME
from backend.platform.schemas import Id, Page
from backend.specs.fields import LABEL, ULID, Schema, Strict
from backend.specs.run_fields import ProjectName


def _for_an_address(name: str) -> str:
    if "/" in name or re.fullmatch(ULID, name):
        raise ValueError("must not contain slashes or be an id: it stands in the address of a page")
    return name


ViewName = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_VIEW_NAME, pattern=LABEL),
    AfterValidator(_for_an_address),
]


class ViewRequest(Strict):
    """The body of `POST /views`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "baselines",
                    "document": {"version": 1, "filter": "tag:baseline", "grouping": "seed"},
                }
            ]
        }
    )

    name: ViewName | None = None
    """Name of the view; its owner has no other of this name in its project. Null: it is private, and the
    oldest of these are deleted once there are many."""
    project: ProjectName | None = None
    """The project whose runs it shows; null for those of all."""
    shared: bool = False
    """Whether everybody may open it, and operators may change it; requires the role operator and a name."""
    document: ViewDocument
    """What it shows, and how."""


class ViewChanges(Strict):
    """The body of `PATCH /views/{id}`: fields that are left out do not change."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "baselines of June", "shared": True}]})

    name: ViewName | None = None
    """New name; null changes nothing."""
    shared: bool | None = None
    """Whether everybody may open it; null changes nothing."""
    document: ViewDocument | None = None
    """New document; null changes nothing. The former one is kept as a state."""


class ViewSummary(Schema):
    """A view without its document."""

    id: Id
    """Id of the view."""
    name: str | None = Field(examples=["baselines"])
    """Name of the view; null for the state of an address that would be too long."""
    project: str | None = Field(examples=["default"])
    """The project whose runs it shows; null for those of all."""
    owner: str = Field(examples=["ada"])
    """Name of the user whose it is."""
    mine: bool
    """Whether that is who asks."""
    shared: bool
    """Whether everybody may open it, and operators may change it."""
    version: int = Field(examples=[3])
    """Its entity tag, which `If-Match` names. It rises with every change."""
    created_at: datetime
    """When it was created."""
    changed_at: datetime
    """When it was changed last."""

    @classmethod
    def of(cls, view: View, owner: str, user_id: str) -> Self:
        """From a row, for a user."""
        return cls.model_validate(_summary(view, owner, user_id))


class ViewOut(ViewSummary):
    """A view."""

    document: ViewDocument
    """What it shows, and how. Of a document that cannot be read in full, what can be."""
    read_only: bool
    """Whether its document is that of another version of Callboard, or damaged: it cannot be replaced."""

    @classmethod
    def of(cls, view: View, owner: str, user_id: str) -> Self:
        """From a row, for a user."""
        document, is_whole = read(view.document)
        return cls.model_validate(
            _summary(view, owner, user_id) | {"document": document, "read_only": not is_whole}
        )


class ViewPage(Page):
    """A page of views."""

    items: list[ViewSummary]
    """Views of this page, those changed last first."""


class ViewStateOut(Schema):
    """A former document of a view."""

    version: int
    """The version of the view that had it last."""
    saved_at: datetime
    """When it was saved."""
    document: ViewDocument
    """The document: send it as `document` of a PATCH to restore it."""

    @classmethod
    def of(cls, state: ViewState) -> Self:
        """From a row."""
        return cls(version=state.version, saved_at=state.saved_at, document=read(state.document)[0])


class ViewStates(Schema):
    """The last former documents of a view."""

    items: list[ViewStateOut]
    """The documents, the latest first."""


def _summary(view: View, owner: str, user_id: str) -> dict[str, object]:
    row = {name: getattr(view, name) for name in ViewSummary.model_fields if hasattr(view, name)}
    return row | {"project": view.project or None, "owner": owner, "mine": view.owner_id == user_id}
