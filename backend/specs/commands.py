"""Commands from a supervisor to its engine: JSON lines on their socket pair.

The other direction is `events`.
"""

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from backend.specs.fields import Frozen


class Stop(Frozen):
    """Save a last checkpoint and exit."""

    type: Literal["stop"] = "stop"
    reason: str = "stop requested"


class ChangeSettings(Frozen):
    """Change live fields of the config; the engine answers with the event `settings`."""

    type: Literal["settings"] = "settings"
    version: int
    """Version of the desired settings; the engine ignores older ones."""
    changes: dict[str, Any]
    """Config field -> value, live fields only."""


class SaveCheckpoint(Frozen):
    """Save a checkpoint at the next update, and go on."""

    type: Literal["checkpoint"] = "checkpoint"


class Watch(Frozen):
    """A viewer started or stopped watching the agent play."""

    type: Literal["watch"] = "watch"
    on: bool


AnyCommand = Annotated[Stop | ChangeSettings | SaveCheckpoint | Watch, Field(discriminator="type")]

COMMAND: TypeAdapter[AnyCommand] = TypeAdapter(AnyCommand)
"""Parses and serialises one command."""
