"""Play: which environments people can play, with which settings, and the messages of their browsers."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from backend.specs.environments import ENVIRONMENTS, Environment, EnvironmentConfig
from backend.specs.fields import Frozen, Strict
from backend.specs.protocols import PROTOCOLS

HUMAN_PLAY = "human_play"
"""Protocol of the games of people: no score of an agent has it."""
SCRIPTED = "scripted"
"""Protocol of games that a script has played or may have played."""
PRACTICE = "practice"
"""Protocol of games of people in which a frame was played at another speed than the console's: it is easier,
or harder, so that they count as nobody's score and are in no set of starts."""
JOINT = "joint"
"""Protocol of games that go on from another episode, or in which an agent could act: they are the score of
nobody, and no set of starts has them."""


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


class HandOver(Strict):
    """Hand the controls to the session's agent, or take them over."""

    type: Literal["control"]
    to: Literal["agent", "person"]
    """Who acts from the next decision on. With the agent a paused game goes on."""


PlayerMessage = Act | Pause | SetSpeed | NewGame | HandOver
PLAYER_MESSAGE: TypeAdapter[PlayerMessage] = TypeAdapter(
    Annotated[PlayerMessage, Field(discriminator="type")]
)


class Moment(Frozen):
    """The state of a recorded episode before one of its decisions, from which a session's games go on."""

    seed: int
    actions: list[int]
    """Index of the action of each decision before it."""
    rewards: list[float]
    """True reward of each, as recorded in single precision."""
    rom_sha256: str | None = None
    """SHA-256 of the ROM of the episode; None: it is not known, or there is none."""
    versions: dict[str, str] = Field(default={})
    """Version of the package that simulated the episode; empty if it is not known."""
    states: str | None = None
    """Name of the file of its emulator states in the session's folder; None: there are none."""


class PlayAgent(Frozen):
    """The agent to which the controls can be handed."""

    spec: dict[str, Any]
    """Specification of its run."""
    checkpoint: str
    """Name of the checkpoint's file in the session's folder."""
    actor: int
    """Its number among the actors of the session's games."""


class PlaySetup(Frozen):
    """What the engine needs to know of a session."""

    environment: str
    environment_config: dict[str, int | float | str | bool | None]
    """Complete settings of the environment."""
    moment: Moment | None = None
    """Where its games begin; None: at the start of an episode."""
    agent: PlayAgent | None = None


NO_OPS = ("NOOP", "STAY", "NOTHING", "STRAIGHT_COAST", "NO TORQUE")
"""Names of the action that is taken while a player holds nothing."""


def no_op(action_names: Sequence[str]) -> int | None:
    """Index of the action that is taken while a player holds nothing; None if there is no such action."""
    return next((index for index, name in enumerate(action_names) if name in NO_OPS), None)


SIMULATED_BY = {"atari": "ale-py", "labyrinth": "vizdoom", "racing": "gymnasium", "classic": "gymnasium"}
"""Family of environments -> the package that simulates it."""


def version_refusal(family: str, recorded: Mapping[str, str], installed: Mapping[str, str]) -> str | None:
    """Why an episode cannot be simulated again with the installed packages; None if it can be.

    Args:
        family: family of its environment.
        recorded: versions of the packages that simulated it; those that are missing are not compared.
        installed: versions of the packages that would simulate it.
    """
    package = SIMULATED_BY.get(family, "")
    ours, theirs = installed.get(package), recorded.get(package)
    if ours is None or theirs is None or ours == theirs:
        return None
    return f"it was simulated by {package} {theirs}, and there is {ours} now, which may play it otherwise"


def actions_of(environment: str, config: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the actions of an environment with these settings."""
    if config.get("full_action_set"):
        return FULL_ACTION_SET
    return ENVIRONMENTS[environment].action_names


FULL_ACTION_SET = ENVIRONMENTS["ALE/Adventure-v5"].action_names
"""ALE's actions with the setting `full_action_set`: Adventure has them all."""

_NOT_OBSERVED = {name for protocol in PROTOCOLS.values() for name in protocol.environment_settings}
"""Settings in which an evaluation differs from training: they change what happens, not what an agent sees."""


def agent_refusal(
    environment: Environment, trained: Mapping[str, Any], played: Mapping[str, Any]
) -> str | None:
    """Why an agent that was trained with some settings cannot act in a game with others; None if it can."""
    for name, field in environment.config.model_fields.items():
        if name not in _NOT_OBSERVED and trained.get(name) != played.get(name):
            return (
                f"it was trained with {(field.title or name).lower()} {trained.get(name)}, and the game has "
                f"{played.get(name)}"
            )
    return None


def play_refusal(environment: Environment) -> str | None:
    """Why people cannot play an environment; None if they can."""
    if environment.actions != "discrete":
        return (
            f"{environment.title} has continuous actions, which no keys stand for: watch an agent play it, "
            "or choose an environment with discrete actions"
        )
    return None


_SEEN_BY_PEOPLE = {"labyrinth": "a map of the maze"}


def seen_by_people(environment: Environment) -> str | None:
    """What people see beside the game that agents do not; None: nothing."""
    return _SEEN_BY_PEOPLE.get(environment.family)


def play_config(
    environment: Environment, *, every_frame: bool, trained: EnvironmentConfig | None = None
) -> EnvironmentConfig:
    """The environment's settings for a person: the defaults, but without no-ops at the start.

    Args:
        environment: a playable one.
        every_frame: whether actions are read at every frame, not every `frame_skip` frames.
        trained: settings with which the session's agent was trained, in place of the defaults.
    """
    fields = environment.config.model_fields
    wanted = {"noop_max": 0} | ({"frame_skip": 1} if every_frame else {})
    settings = {} if trained is None else trained.model_dump()
    return environment.config.model_validate(
        settings | {name: value for name, value in wanted.items() if name in fields}
    )
