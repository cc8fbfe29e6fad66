"""Request body of forks."""

from pydantic import Field, JsonValue

from backend.specs.fields import Strict, Text
from backend.specs.run import StopSpec
from backend.specs.run_fields import (
    Device,
    GivenName,
    GroupName,
    HostName,
    Notes,
    Priority,
    Queue,
    Seed,
    Tags,
)


class ForkRequest(Strict):
    """The body of `POST /runs/{id}/fork`: fields that are left out keep the parent's values."""

    checkpoint: Text | None = Field(
        default=None, max_length=26, description="Id of a checkpoint of the parent; default: the latest."
    )
    config: dict[Text, JsonValue] = Field(default={}, description="Changes to the algorithm's settings.")
    environment_config: dict[Text, JsonValue] = Field(
        default={}, description="Changes to the environment's settings."
    )
    stop: StopSpec | None = Field(
        default=None, description="New limits, which replace all limits of the parent."
    )
    name: GivenName | None = None
    seed: Seed | None = None
    device: Device | None = None
    queue: Queue | None = None
    host: HostName | None = None
    priority: Priority | None = None
    group: GroupName | None = None
    tags: Tags | None = None
    notes: Notes | None = None
