"""Play: which environments people can play, with which settings, and the messages of their browsers."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from backend.specs.environments import Environment, EnvironmentConfig
from backend.specs.fields import Frozen, Strict

HUMAN_PLAY = "human_play"
"""Protocol of the games of people: no score of an agent has it."""
SCRIPTED = "scripted"
"""Protocol of games that a script has played or may have played."""


class Act(Strict):
    """Hold an action down until the next such message."""

    type: Literal["action"]
    action: int | None = Field(ge=0, le=1_000)
    """Index of the action. Null: nothing is held, which is `no_op`; where there is none, the game waits."""
    seq: int = Field(default=0, ge=0, le=2**53)
    """Comes back with the first frame of the decision that has read it."""


class Pause(Strict):
    """Pause the game, or continue it."""

    type: Literal["pause"]
    paused: bool
    """Whether it is paused."""


class SetSpeed(Strict):
    """Change the pace."""

    type: Literal["speed"]
    speed: float = Field(ge=0.1, le=4.0)
    """Multiple of the console's speed."""


class NewGame(Strict):
    """End the present game and start another one, paused, with another seed."""

    type: Literal["new_game"]


PlayerMessage = Act | Pause | SetSpeed | NewGame
PLAYER_MESSAGE: TypeAdapter[PlayerMessage] = TypeAdapter(
    Annotated[PlayerMessage, Field(discriminator="type")]
)


class PlaySetup(Frozen):
    """What the engine needs to know of a session."""

    environment: str
    environment_config: dict[str, int | float | str | bool | None]
    """Complete settings of the environment."""


NO_OPS = ("NOOP", "STAY", "NOTHING", "STRAIGHT_COAST", "NO TORQUE")
"""Names of actions of who holds nothing."""


def no_op(action_names: Sequence[str]) -> int | None:
    """Index of the action of who holds nothing; None if agents always have to act."""
    return next((index for index, name in enumerate(action_names) if name in NO_OPS), None)


def play_refusal(environment: Environment) -> str | None:
    """Why people cannot play an environment; None if they can."""
    if environment.actions != "discrete":
        return (
            f"{environment.title} has continuous actions, which no keys stand for: watch an agent play it, "
            "or choose an environment with discrete actions"
        )
    return None


def play_config(environment: Environment, *, every_frame: bool) -> EnvironmentConfig:
    """The environment's settings for a person: the defaults, but without no-ops at the start.

    Args:
        environment: a playable one.
        every_frame: whether actions are read at every frame, not every `frame_skip` frames.
    """
    fields = environment.config.model_fields
    wanted = {"noop_max": 0} | ({"frame_skip": 1} if every_frame else {})
    return environment.config.model_validate(
        {name: value for name, value in wanted.items() if name in fields}
    )
