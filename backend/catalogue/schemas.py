"""Response bodies of the catalogue."""

from typing import Any

from pydantic import BaseModel

from backend.schemas import Page
from backend.specs.algorithms import Reproducibility
from backend.specs.spaces import Actions, Observation


class PresetOut(BaseModel):
    """A named set of changes to the defaults."""

    id: str
    title: str
    description: str
    observation: Observation
    actions: list[Actions]
    """The kinds of actions it is meant for; empty for all."""
    families: list[str]
    """Families of the environments it is meant for; empty for all with this kind of observation."""
    environments: list[str]
    """Ids of the environments it is meant for; empty for all of these families."""
    config: dict[str, Any]
    environment_config: dict[str, Any]
    stop: dict[str, Any]
    measured_on: str
    """The machine of `measured`."""
    measured: str
    """What runs of it reached there; empty if no run is recorded."""


class AlgorithmOut(BaseModel):
    """An algorithm of the catalogue."""

    id: str
    title: str
    summary: str
    paper: str
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
    evaluation_protocol: str
    """Protocol of its evaluations on Atari games."""
    presets: list[PresetOut]


class PublishedScoreOut(BaseModel):
    """A published score for an environment."""

    label: str
    score: float
    protocol: str
    source: str


class EnvironmentOut(BaseModel):
    """An environment of the catalogue."""

    id: str
    title: str
    family: str
    summary: str
    observation: Observation
    observation_shape: list[int] | None
    """(H, W, C) bytes or (D,) numbers, with default settings; null for a custom environment."""
    config_schema: dict[str, Any]
    """JSON Schema of `environment_config`, as for algorithms."""
    defaults: dict[str, Any]
    evaluation_protocol: str
    """Protocol of evaluations, unless the algorithm or the run has another."""
    evaluation_protocols: list[str]
    """Every protocol under which agents can be evaluated here."""
    frames_per_agent_step: int
    actions: Actions
    action_names: list[str]
    """Names of the discrete actions, or of the dimensions of a continuous action; with default settings."""
    published: list[PublishedScoreOut]
    config_defaults: dict[str, Any]
    """Algorithm settings whose defaults differ in this environment."""
    crop_hides: float | None
    """Share of the changing pixels that Atari's `crop` hides, from 0 to 1; null if it was not measured."""
    hosts: list[str]
    """The hosts that have a custom environment; empty for built-in environments."""


class AlgorithmPage(Page[AlgorithmOut]):
    """All algorithms."""


class EnvironmentPage(Page[EnvironmentOut]):
    """All environments."""
