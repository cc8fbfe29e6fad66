"""Request body of forks."""

from pydantic import Field, JsonValue

from backend.specs.fields import Strict, Text
from backend.specs.run import StopSpec
from backend.specs.run_fields import (
    ChosenName,
    Device,
    GroupName,
    HostName,
    Notes,
    Priority,
    ProjectName,
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
    name: ChosenName | None = None
    """Name shown on pages; by default it is composed of the parent's name and the changes."""
    seed: Seed | None = None
    """Seed of all random numbers of the fork."""
    device: Device | None = None
    """Device of the network: `auto` is CUDA on hosts that have it."""
    queue: Queue | None = None
    """Queue from which hosts claim the fork."""
    host: HostName | None = None
    """Id of the only host that may claim the fork; null for any host, by default the parent's."""
    priority: Priority | None = None
    """Runs with a higher priority are claimed first."""
    group: GroupName | None = None
    """Name of the group that the fork belongs to."""
    project: ProjectName | None = None
    """Project that the fork is filed under."""
    tags: Tags | None = None
    """Labels of the fork, which replace the parent's."""
    notes: Notes | None = None
    """Free text about the fork, in Markdown, which replaces the parent's."""
