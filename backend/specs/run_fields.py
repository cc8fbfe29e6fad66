"""The fields of a run apart from its algorithm, its environment and their settings.

Their types and bounds are declared here alone. `RunSpec`, the request bodies that create, fork
or change a run, the table's columns, imports, the OpenAPI document and, from it, the forms use them.
"""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, WithJsonSchema

from backend.specs.fields import LABEL, NAME, Strict, Text

CALLBOARD, EXTERNAL = "callboard", "external"
"""Origins of runs: trained by workers of this installation, or elsewhere."""

SECTIONS = ("config", "environment_config", "stop")
"""Parts of a run's request that have fields of their own."""
MAX_NAME = 200
MAX_GROUP = 200
MAX_PROJECT = 64
MAX_HOST = 200
MAX_ALGORITHM = 50
MAX_ENVIRONMENT = 200
MAX_NOTES = 20_000
MAX_STEP_NOTE = 500
"""Characters of a note at a step of a run."""
MAX_TAG = 50
MAX_TAGS = 50
MAX_SEED = 2**31 - 1
MAX_EXTERNAL_SEED = 2**63 - 1
"""The largest whole number that both databases store: a script may have any seed."""
SCORE_EPISODES = 100
"""The latest episodes, whose mean return is a run's score."""
DEFAULT_PROJECT = "default"
"""The project of a run for which none is named."""
MAX_SEEDS = 100
"""Seeds of one configuration."""

Origin = Literal["callboard", "external"]
Name = Annotated[Text, Field(max_length=MAX_NAME)]
GivenName = Annotated[Name, Field(min_length=1)]


def _not_blank(name: str) -> str:
    if not name.strip():
        raise ValueError(BLANK)
    return name


BLANK = "must not be blanks alone"
ChosenName = Annotated[GivenName, AfterValidator(_not_blank)]
"""A name that a request gives. What is stored may be older than this rule."""
GroupName = Annotated[Text, Field(max_length=MAX_GROUP)]
EMPTY_IS_NONE = BeforeValidator(lambda value: None if value == "" else value)
"""Forms send an empty text for none."""
ProjectName = Annotated[str, StringConstraints(min_length=1, max_length=MAX_PROJECT, pattern=LABEL)]
"""What a run is filed under: it neither decides which runs are compared, nor who may see them."""
HostName = Annotated[Text, Field(max_length=MAX_HOST)]
Notes = Annotated[Text, Field(max_length=MAX_NOTES)]
Tag = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TAG, pattern=NAME)]
"""A label to find runs by: any text without control characters."""
Tags = Annotated[tuple[Tag, ...], Field(max_length=MAX_TAGS, strict=False)]
Seed = Annotated[int, Field(ge=0, le=MAX_SEED)]


SEED_PATTERN = "^[0-9]{1,18}$"


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
                {"type": "string", "pattern": SEED_PATTERN},
            ],
        }
    ),
]
"""A whole number: `5`, `5.0` and `"5"` are the same."""
MIN_PRIORITY, MAX_PRIORITY = -100, 100
Priority = Annotated[int, Field(ge=MIN_PRIORITY, le=MAX_PRIORITY)]
Device = Literal["auto", "cpu", "cuda"]
Queue = Literal["cpu", "gpu"]
AnnealingSteps = Annotated[int, Field(ge=1, le=10**12)]


class StartOptions(Strict):
    """What specs and requests of all runs that workers start have, with defaults."""

    name: Name | None = None
    """Name shown on pages; by default it is composed of the algorithm, the environment and the settings."""
    queue: Queue = "cpu"
    """Queue from which hosts claim the run."""
    host: Annotated[HostName | None, EMPTY_IS_NONE] = None
    """Id of the only host that may claim the run; by default any host of the queue may."""
    priority: Priority = 0
    """Runs with a higher priority are claimed first."""
    group: Annotated[GroupName | None, EMPTY_IS_NONE] = None
    """Name of the group that the run belongs to."""
    project: ProjectName = DEFAULT_PROJECT
    """Project that the run is filed under."""
    tags: Tags = ()
    """Labels for finding and filtering runs."""
    notes: Notes = ""
    """Free text about the run, in Markdown."""


class RunOptions(StartOptions):
    """What a spec and a request to create a run of Callboard's own both have, with defaults."""

    annealing_agent_steps: AnnealingSteps | None = None
    """Agent steps over which a linear learning rate falls to 0; by default up to the agent-step limit."""
    device: Device = "auto"
    """Device of the network: `auto` is CUDA on hosts that have it."""
