"""Response bodies of the catalogue."""

from typing import Any

from pydantic import Field

from backend.platform.schemas import Page
from backend.specs.algorithms import Reproducibility
from backend.specs.fields import Schema
from backend.specs.spaces import Actions, Observation


class PresetOut(Schema):
    """A named set of changes to the defaults."""

    id: str
    """Id of the preset; no two presets of an algorithm have the same."""
    title: str
    """Name of the preset, as pages show it."""
    description: str
    """What the preset is for."""
    observation: Observation
    """Kind of observation that the preset is meant for."""
    actions: list[Actions]
    """The kinds of actions it is meant for; empty for all."""
    families: list[str]
    """Families of the environments it is meant for; empty for all with this kind of observation."""
    environments: list[str]
    """Ids of the environments it is meant for; empty for all of these families."""
    config: dict[str, Any]
    """Settings of the algorithm that the preset changes."""
    environment_config: dict[str, Any]
    """Settings of the environment that the preset changes."""
    stop: dict[str, Any]
    """Limits of a run with the preset."""
    measured_on: str
    """Machine on which `measured` was reached."""
    measured: str
    """What runs of it reached there; empty if no run is recorded."""


class AlgorithmOut(Schema):
    """An algorithm of the catalogue."""

    id: str = Field(examples=["paac"])
    """Id of the algorithm, as a request for a run names it."""
    title: str = Field(examples=["PAAC"])
    """Name of the algorithm, as pages show it."""
    summary: str
    """One sentence that says how the algorithm works."""
    paper: str
    """Paper that introduced the algorithm."""
    observations: list[Observation]
    """The kinds of observations it supports."""
    actions: list[Actions]
    """The kinds of actions it supports."""
    reproducibility: Reproducibility
    """bitwise: the same seed gives the same series on the same host, resumed or not. resumes_agree: the same
    seed gives the same series, and resumes of one checkpoint agree. none: nothing repeats exactly."""
    config_schema: dict[str, Any]
    """JSON Schema of `config`; each field has title, description, bounds, `group`, and may have `symbol` and
    `unit`."""
    defaults: dict[str, dict[str, Any]]
    """Default `config` by kind of observation, with the prefix `continuous ` for continuous actions."""
    evaluation_protocol: str = Field(examples=["noop_starts"])
    """Protocol of its evaluations on Atari games."""
    presets: list[PresetOut]
    """Named settings to start from."""
    extra: str | None = Field(examples=["gorila"])
    """Extra of Callboard that a host needs for it in addition to `worker`; null for no other."""


class PublishedScoreOut(Schema):
    """A published score for an environment."""

    label: str
    """Name of the agent, as charts show it."""
    score: float = Field(examples=[17.4])
    """Score as the source states it."""
    protocol: str = Field(examples=["noop_starts"])
    """Id of the protocol under which the agent was evaluated."""
    source: str
    """Paper, table and page of the score."""


class EnvironmentOut(Schema):
    """An environment of the catalogue."""

    id: str = Field(examples=["ALE/Pong-v5"])
    """Id of the environment, as a request for a run names it."""
    title: str = Field(examples=["Pong"])
    """Name of the environment, as pages show it."""
    family: str
    """Family of environments that share settings and preprocessing."""
    summary: str
    """One sentence that says what the agent does in the environment."""
    observation: Observation
    """What the agent observes: `pixels`, or a `vector` of numbers."""
    observation_shape: list[int] | None
    """Shape of an observation: (H, W, C) bytes or (D,) numbers, with default settings; null for a custom
    environment."""
    config_schema: dict[str, Any]
    """JSON Schema of `environment_config`, as for algorithms."""
    defaults: dict[str, Any]
    """Default of each setting of `environment_config`."""
    evaluation_protocol: str = Field(examples=["noop_starts"])
    """Protocol of evaluations, unless the algorithm or the run has another."""
    evaluation_protocols: list[str]
    """Every protocol under which agents can be evaluated here."""
    frames_per_agent_step: int
    """Emulator frames of an agent step, with default settings."""
    actions: Actions
    """Whether actions are discrete or continuous."""
    action_names: list[str]
    """Names of the discrete actions, or of the dimensions of a continuous action; with default settings."""
    published: list[PublishedScoreOut]
    """Scores that papers have published for the environment."""
    config_defaults: dict[str, Any]
    """Algorithm settings whose defaults differ in this environment."""
    crop_hides: float | None
    """Share of the changing pixels that Atari's `crop` hides, from 0 to 1; null if it was not measured."""
    hosts: list[str]
    """The hosts that have a custom environment; empty for built-in environments."""
    extra: str | None = Field(examples=["racing"])
    """Extra of Callboard that a host needs for it in addition to `worker`; null for no other."""


class CommandOut(Schema):
    """A command of hosts that runs start."""

    name: str = Field(examples=["train"])
    """Name of the command, as a request for a run has it."""
    title: str
    """What forms call it."""
    summary: str
    """What it does, in the words of its host."""
    algorithm: str
    """Name of the method of its runs."""
    environment: str
    """Environment of its runs; `unknown` where the script names it."""
    has_seed: bool
    """Whether its runs have seeds."""
    config_schema: dict[str, Any]
    """JSON Schema of `config`: its parameters with their bounds."""
    defaults: dict[str, Any]
    """Default of each parameter."""
    definition: str
    """Digest of the definition: hosts with another one do not claim its runs."""
    hosts: list[str]
    """The hosts that define it so."""
    other_hosts: list[str]
    """Those that define it otherwise: they claim runs whose `host` they are."""


class CommandPage(Page):
    """All commands."""

    items: list[CommandOut]
    """Every command, by name."""


class AlgorithmPage(Page):
    """All algorithms."""

    items: list[AlgorithmOut]
    """Every algorithm."""


class EnvironmentPage(Page):
    """All environments."""

    items: list[EnvironmentOut]
    """Every environment, those that only some hosts have included."""
