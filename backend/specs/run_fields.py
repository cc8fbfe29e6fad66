"""The fields of a run apart from its algorithm, its environment and their settings.

Their types, bounds and descriptions are declared here alone. `RunSpec`, the request bodies that create, fork
or change a run, the table's columns, imports, the OpenAPI document and, from it, the forms use them.
"""

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StringConstraints, WithJsonSchema

from backend.specs.fields import NAME, Strict, Text

CALLBOARD, EXTERNAL = "callboard", "external"
"""Origins of runs: trained by workers of this installation, or elsewhere."""

MAX_NAME = 200
MAX_GROUP = 200
MAX_HOST = 200
MAX_ALGORITHM = 50
MAX_ENVIRONMENT = 200
MAX_NOTES = 20_000
MAX_TAG = 50
MAX_TAGS = 50
MAX_SEED = 2**31 - 1
MAX_EXTERNAL_SEED = 2**63 - 1
"""The largest whole number that both databases store: a script may have any seed."""
MAX_SEEDS = 100
"""Seeds of one configuration."""

Origin = Annotated[
    Literal["callboard", "external"],
    Field(description="Where it is trained: `callboard` is a worker of this installation."),
]
Name = Annotated[
    Text,
    Field(max_length=MAX_NAME, description="Name shown on pages; default: from algorithm and settings."),
]
GivenName = Annotated[Name, Field(min_length=1, description="Name shown on pages.")]
GroupName = Annotated[Text, Field(max_length=MAX_GROUP, description="Name of the run's group.")]
HostName = Annotated[Text, Field(max_length=MAX_HOST, description="Only this host may run it.")]
Notes = Annotated[Text, Field(max_length=MAX_NOTES, description="Free text, in Markdown.")]
Tag = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TAG, pattern=NAME)]
"""A label to find runs by: any text without control characters."""
Tags = Annotated[
    tuple[Tag, ...],
    Field(max_length=MAX_TAGS, strict=False, description="Labels for finding and filtering runs."),
]
Seed = Annotated[int, Field(ge=0, le=MAX_SEED, description="Seed of all random numbers.")]


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, str) and re.fullmatch("[0-9]{1,30}", value) else value


ExternalSeed = Annotated[
    int,
    BeforeValidator(_whole),
    Field(ge=0, le=MAX_EXTERNAL_SEED),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": MAX_EXTERNAL_SEED},
                {"type": "string", "pattern": "^[0-9]{1,18}$"},
            ],
            "description": "Seed of the script, as a number or, for programs whose numbers are exact up to "
            "2^53 only, as its digits.",
        }
    ),
]
"""A whole number: `5`, `5.0` and `"5"` are the same."""
Priority = Annotated[int, Field(ge=-100, le=100, description="Runs with a higher priority start first.")]
Device = Annotated[
    Literal["auto", "cpu", "cuda"],
    Field(description="Device of the network: `auto` is CUDA on hosts that have it."),
]
Queue = Annotated[Literal["cpu", "gpu"], Field(description="The queue from which hosts claim the run.")]
AnnealingSteps = Annotated[
    int,
    Field(
        ge=1,
        le=10**12,
        description="Agent steps over which a linear learning rate falls to 0; default: up to the agent-step "
        "limit.",
    ),
]


class RunOptions(Strict):
    """What a spec and a request to create a run both have, with defaults."""

    name: Name | None = None
    annealing_agent_steps: AnnealingSteps | None = None
    device: Device = "auto"
    queue: Queue = "cpu"
    host: HostName | None = None
    priority: Priority = 0
    group: GroupName | None = None
    tags: Tags = ()
    notes: Notes = ""
