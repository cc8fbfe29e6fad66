"""Routes of `/runs/{id}/settings`."""

from datetime import datetime
from typing import Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from backend.http.access import Operator, Viewer
from backend.http.dependencies import ReadSession, WriteSession
from backend.http.pages import Ulid
from backend.live_settings import repository, service
from backend.runs import service as runs
from backend.schemas import Number, Page
from backend.specs.fields import Strict
from backend.text import Text

router = APIRouter(prefix="/runs/{run_id}/settings", tags=["runs"])


class SettingsRequest(Strict):
    """The body of `PATCH /runs/{id}/settings`."""

    config: dict[Text, JsonValue] = Field(
        min_length=1,
        description="Changes to the algorithm's settings; only settings marked `live` in its schema.",
    )


class SettingsOut(BaseModel):
    """One change to a run's settings."""

    model_config = ConfigDict(from_attributes=True)

    version: int
    requested_at: datetime
    requested_by: str | None
    changes: dict[str, Any]
    state: Literal["asked", "applied", "refused"]
    agent_steps: int | None
    """Agent steps at which the change took effect."""
    frames: int | None
    wall_time_s: Number
    refused: str | None
    """Why the change was rejected."""


class SettingsPage(Page[SettingsOut]):
    """Every change to a run's settings."""


@router.get("")
def list_settings(run_id: Ulid, principal: Viewer, session: ReadSession) -> SettingsPage:
    """Every change to a run's settings, latest first."""
    runs.get(session, run_id)
    rows = repository.all_versions(session, run_id)
    return SettingsPage(items=[SettingsOut.model_validate(row) for row in rows])


@router.patch("")
def change_settings(
    run_id: Ulid, body: SettingsRequest, principal: Operator, session: WriteSession
) -> SettingsOut:
    """Change settings of a run during training. `asked` until the engine has answered; applied
    immediately to a run that waits for a host. Settings of a run that has ended cannot be changed."""
    return SettingsOut.model_validate(service.request(session, run_id, body.config, principal.id))
