"""Routes of `/runs/{id}/settings`."""

from datetime import datetime
from typing import Any, Literal

from pydantic import ConfigDict, Field, JsonValue

from backend.http.access import Operator, Viewer
from backend.http.dependencies import ReadSession, WriteSession
from backend.http.pages import RunId
from backend.http.routing import ResourceRouter, WritingRoute
from backend.platform.schemas import Number, Page
from backend.platform.text import Text
from backend.runs.live_settings import repository, service
from backend.runs.runs import service as runs
from backend.specs.fields import Schema, Strict

router = ResourceRouter(prefix="/runs/{run_id}/settings", tags=["runs"], route_class=WritingRoute)


class SettingsRequest(Strict):
    """The body of `PATCH /runs/{id}/settings`."""

    config: dict[Text, JsonValue] = Field(
        min_length=1,
        description="Changes to the algorithm's settings; only settings marked `live` in its schema.",
    )


class SettingsOut(Schema):
    """One change to a run's settings."""

    model_config = ConfigDict(from_attributes=True)

    version: int
    """Number of the change, from 1."""
    requested_at: datetime
    """When the change was requested."""
    requested_by: str | None
    """Id of the user who requested the change; null if that user has been deleted."""
    changes: dict[str, Any]
    """New value of each changed setting."""
    state: Literal["asked", "applied", "refused"]
    """`asked` until the engine has answered, then `applied` or `refused`."""
    agent_steps: int | None = Field(examples=[1_000_000])
    """Agent steps at which the change took effect."""
    frames: int | None = Field(examples=[4_000_000])
    """Emulator frames at which the change took effect; null before."""
    wall_time_s: Number = Field(examples=[294.5])
    """Training time in seconds at which the change took effect; null before."""
    refused: str | None
    """Why the change was rejected."""


class SettingsPage(Page):
    """Every change to a run's settings."""

    items: list[SettingsOut]
    """Every change, latest first."""


@router.get("")
def list_settings(run_id: RunId, principal: Viewer, session: ReadSession) -> SettingsPage:
    """Every change to a run's settings, latest first."""
    runs.get(session, run_id)
    rows = repository.all_versions(session, run_id)
    return SettingsPage(items=[SettingsOut.model_validate(row) for row in rows])


@router.patch("")
def change_settings(
    run_id: RunId, body: SettingsRequest, principal: Operator, session: WriteSession
) -> SettingsOut:
    """Change settings of a run during training. `asked` until the engine has answered; applied
    immediately to a run that waits for a host. Settings of a run that has ended cannot be changed."""
    return SettingsOut.model_validate(service.request(session, run_id, body.config, principal.id))
