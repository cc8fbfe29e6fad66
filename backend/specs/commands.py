"""What a supervisor may say to its engine: JSON lines on the socket pair they share."""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from backend.specs.fields import Frozen


class Stop(Frozen):
    """Save a last checkpoint and end. `handback` when the run goes back to the queue."""

    type: Literal["stop"] = "stop"
    reason: str = "asked to stop"


AnyCommand = Annotated[Stop, Field()]

COMMAND: TypeAdapter[AnyCommand] = TypeAdapter(AnyCommand)
"""Reads one command line."""
