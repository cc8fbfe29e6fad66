"""Evaluation protocols: how episodes start, what ends them, and how the agent acts in them.

A protocol is part of the name of every score, as in `eval/noop_starts/mean_return`. The rest of what a score
depends on, such as observation size, crop and action set, stays in the environment config: scores are
comparable if protocol and evaluation config agree.

A protocol with a set of starts names the set and its version, as in `agent_starts:pong@2` or, greedy,
`agent_starts_greedy:pong@2`. So its scores are never those of another set, nor those of published human
starts.
"""

import re
from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, Field, WithJsonSchema

from backend.specs.fields import SET_NAME, Frozen
from backend.specs.problems import quoted

C = TypeVar("C", bound=BaseModel)

GREEDY = "_greedy"
"""Suffix of the protocols in which the agent always takes its best action."""

STARTS_PROTOCOL = rf"^(agent|human)_starts(_greedy)?:{SET_NAME}(@[1-9][0-9]{{0,4}})?$"
"""A protocol with a start set: its latest version, or the one after the @."""

MAX_FRAMES = 108_000
"""30 minutes of play."""
MAX_FRAMES_5MIN = 18_000
"""5 minutes of play."""

FIXED_CHOICES = (
    "auto",
    "noop_starts",
    "noop_starts_greedy",
    "noop_starts_5min",
    "noop_starts_5min_greedy",
    "random_seeds",
    "random_seeds_greedy",
    "sticky_actions_5min",
    "sticky_actions_5min_greedy",
    "sticky_actions_30min",
    "sticky_actions_30min_greedy",
    "plain",
    "plain_greedy",
)
"""What the setting `evaluation_protocol` may be without a start set: every available protocol, or the default
of the run."""


def _check_choice(choice: str) -> str:
    if choice not in FIXED_CHOICES and not re.match(STARTS_PROTOCOL, choice):
        listed = ", ".join(FIXED_CHOICES)
        raise ValueError(
            f"must be one of {listed}, or start from a set, as in agent_starts:NAME or human_starts:NAME"
        )
    return choice


ProtocolChoice = Annotated[
    str,
    AfterValidator(_check_choice),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "enum": list(FIXED_CHOICES)},
                {"type": "string", "pattern": STARTS_PROTOCOL},
            ]
        }
    ),
]
"""What the setting `evaluation_protocol` may be: one of `FIXED_CHOICES`, or a protocol with a start set."""


def _with_set(choice: str) -> str:
    if not re.match(STARTS_PROTOCOL, choice):
        raise ValueError("must start from a set, as in agent_starts:NAME or human_starts:NAME")
    return choice


StartsChoice = Annotated[
    str, AfterValidator(_with_set), WithJsonSchema({"type": "string", "pattern": STARTS_PROTOCOL})
]
"""A protocol with a start set."""


class UnsupportedProtocolError(ValueError):
    """The environment does not have this protocol; the message states why and lists the ones it has."""


class Protocol(Frozen):
    """One way to score an agent."""

    id: str
    """Id of the protocol, which is part of a score's name."""
    title: str
    """In words, for legends and tables."""
    description: str
    """How episodes start and end under the protocol."""
    environment_settings: dict[str, Any] = Field(default={})
    """Environment settings that it fixes; the others are those of training."""
    greedy: bool = False
    """Whether the agent takes its best action: highest Q, highest probability, or mean of a Gaussian. If not,
    it acts as in the papers: epsilon-greedy with 0.05, or sampled from its policy."""
    unavailable: str | None = None
    """Why it cannot be used; None if it can."""

    def evaluation_config(self, config: C) -> C:
        """The environment config of an evaluation, given that of training."""
        return type(config).model_validate(config.model_dump() | self.environment_settings)


_EXACT = {"frame_maximum": "rgb", "life_loss_terminal": False, "fire_at_reset": False}
"""The papers' preprocessing and whole games."""
_STICKY = _EXACT | {"noop_max": 0, "sticky_actions": 0.25}
_NOOPS = _EXACT | {"noop_max": 30, "sticky_actions": 0.0}
_STARTS = _EXACT | {"noop_max": 0, "sticky_actions": 0.0, "max_frames": MAX_FRAMES}

_BASE = (
    Protocol(
        id="noop_starts",
        title="no-op starts",
        description="1 to 30 no-op frames at the start; at most 108,000 frames (30 minutes).",
        environment_settings=_NOOPS | {"max_frames": MAX_FRAMES},
    ),
    Protocol(
        id="noop_starts_5min",
        title="no-op starts, 5 min",
        description="1 to 30 no-op frames at the start; at most 18,000 frames (5 minutes), as in Mnih et "
        "al. 2015 and Nair et al. 2015.",
        environment_settings=_NOOPS | {"max_frames": MAX_FRAMES_5MIN},
    ),
    Protocol(
        id="random_seeds",
        title="random seeds",
        description="Each game has a random seed of its own (Babaeizadeh et al. 2017, table 3). The paper "
        "states neither starts nor a limit: here games start at once, without no-ops, so that the seed "
        "affects the sampled actions only, and end after at most 108,000 frames (30 minutes).",
        environment_settings=_EXACT | {"noop_max": 0, "sticky_actions": 0.0, "max_frames": MAX_FRAMES},
    ),
    Protocol(
        id="human_starts",
        title="human starts",
        description="Starts from recorded states of games that people played; at most 108,000 frames, "
        "including those before the start (Nair et al. 2015, section 5.2).",
        environment_settings=_STARTS,
        unavailable="it needs a start set of games played by people, as in human_starts:NAME",
    ),
    Protocol(
        id="agent_starts",
        title="agent starts",
        description="Starts from recorded states of games that a stored agent played; at most 108,000 "
        "frames, including those before the start.",
        environment_settings=_STARTS,
        unavailable="it needs a start set, as in agent_starts:NAME",
    ),
    Protocol(
        id="sticky_actions_5min",
        title="sticky actions, 5 min",
        description="Each frame repeats the previous action with probability 0.25; no no-ops; at most 18,000 "
        "frames (5 minutes), as in Machado et al. 2018.",
        environment_settings=_STICKY | {"max_frames": MAX_FRAMES_5MIN},
    ),
    Protocol(
        id="sticky_actions_30min",
        title="sticky actions, 30 min",
        description="Each frame repeats the previous action with probability 0.25; no no-ops; at most "
        "108,000 frames (30 minutes), as in Castro et al. 2018 (Dopamine).",
        environment_settings=_STICKY | {"max_frames": MAX_FRAMES},
    ),
    Protocol(
        id="plain",
        title="standard resets",
        description="The environment's resets and time limit.",
    ),
)

PROTOCOLS: dict[str, Protocol] = {
    protocol.id: protocol
    for base in _BASE
    for protocol in (
        base,
        base.model_copy(
            update={
                "id": base.id + GREEDY,
                "title": f"{base.title}, greedy",
                "description": f"{base.description} The agent always takes its best action.",
                "greedy": True,
            }
        ),
    )
}
"""Every protocol, by id."""

ATARI_PROTOCOLS = (
    "noop_starts",
    "noop_starts_5min",
    "random_seeds",
    "sticky_actions_5min",
    "sticky_actions_30min",
    "human_starts",
    "agent_starts",
)
"""The protocols of Atari games; each also greedy. The first is the default."""


def protocols_of(supported: Sequence[str]) -> list[Protocol]:
    """The protocols of an environment, those that are unavailable and the greedy ones included."""
    return [PROTOCOLS[name] for base in supported for name in (base, base + GREEDY)]


class StartsProtocol(Frozen):
    """The parts of the id of a protocol with a start set."""

    base: str
    """`agent_starts` or `human_starts`, with `_greedy` where the agent takes its best action."""
    set_name: str
    """Name of the set."""
    version: int | None
    """Version of the set; None: the latest."""

    def id(self) -> str:
        """The protocol's id."""
        return f"{self.base}:{self.set_name}" + ("" if self.version is None else f"@{self.version}")


def starts_protocol(name: str) -> StartsProtocol | None:
    """The parts of the id of a protocol with a start set; None for any other protocol."""
    if not re.match(STARTS_PROTOCOL, name):
        return None
    base, _, chosen = name.partition(":")
    set_name, _, version = chosen.partition("@")
    return StartsProtocol(base=base, set_name=set_name, version=int(version) if version else None)


def environment_settings(name: str | None) -> dict[str, Any]:
    """The environment settings that a protocol fixes; none if it is unknown."""
    starts = None if name is None else starts_protocol(name)
    known = PROTOCOLS.get(name or "") if starts is None else PROTOCOLS[starts.base]
    return {} if known is None else known.environment_settings


def at_limit(
    name: str, lengths_frames: Sequence[int], cut_frames: int | None = None
) -> tuple[int | None, int | None]:
    """The frames after which a protocol ends an episode, and how many of these episodes it has ended.

    Args:
        name: id of a protocol.
        lengths_frames: frames of each episode without the no-ops before it, which count towards the limit.
        cut_frames: frames after which an evaluation cuts an episode of an environment without a limit.
    """
    settings = environment_settings(name)
    max_frames: int | None = settings.get("max_frames", cut_frames)
    if max_frames is None or not lengths_frames or starts_protocol(name) is not None:
        return max_frames, None
    at_least = max_frames - settings.get("noop_max", 0)
    return max_frames, sum(length >= at_least for length in lengths_frames)


def find_protocol(name: str, supported: Sequence[str], environment: str) -> Protocol:
    """The protocol of this id. Whether its start set exists is not checked.

    Raises:
        UnsupportedProtocolError: the environment, which supports `supported`, cannot be evaluated under it.
    """
    known = {protocol.id: protocol for protocol in protocols_of(supported)}
    starts = starts_protocol(name)
    if starts is not None and starts.base in known:
        update = {"id": name, "title": protocol_title(name), "unavailable": None}
        return known[starts.base].model_copy(update=update)
    usable = ", ".join(protocol.id for protocol in known.values() if protocol.unavailable is None)
    if name not in known:
        raise UnsupportedProtocolError(f"{environment} has no protocol {quoted(name)}: use one of {usable}")
    if known[name].unavailable is not None:
        raise UnsupportedProtocolError(
            f"{name} is not available: {known[name].unavailable}; use one of {usable}"
        )
    return known[name]


def protocol_title(name: str) -> str:
    """The protocol in words; an unknown id with spaces."""
    starts = starts_protocol(name)
    if starts is not None:
        version = "" if starts.version is None else f" v{starts.version}"
        return f"{PROTOCOLS[starts.base].title}, {starts.set_name}{version}"
    return PROTOCOLS[name].title if name in PROTOCOLS else name.replace("_", " ")
