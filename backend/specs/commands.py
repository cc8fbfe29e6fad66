"""What a supervisor may say to its engine: JSON lines on the socket pair they share."""

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from backend.specs.fields import Frozen


class Stop(Frozen):
    """Save a last checkpoint and end."""

    type: Literal["stop"] = "stop"
    reason: str = "asked to stop"


class Settings(Frozen):
    """Train on with other settings; answered by the event `settings`."""

    type: Literal["settings"] = "settings"
    version: int
    """Of the desired settings; the engine passes over versions it has passed."""
    changes: dict[str, Any]
    """Setting of the algorithm -> value, live fields only."""


class Watch(Frozen):
    """Someone began, or ceased, to watch the agent play while it trains."""

    type: Literal["watch"] = "watch"
    on: bool


AnyCommand = Annotated[Stop | Settings | Watch, Field(discriminator="type")]

COMMAND: TypeAdapter[AnyCommand] = TypeAdapter(AnyCommand)
"""Reads and writes one command line."""
