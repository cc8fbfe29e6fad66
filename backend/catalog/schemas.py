"""The catalogue as REST shows it."""

from typing import Any

from pydantic import BaseModel

from backend.pagination import Page
from backend.specs.algorithms import Actions, Observation


class PresetOut(BaseModel):
    """A named set of changes to the defaults."""

    id: str
    title: str
    description: str
    observation: Observation
    families: list[str]
    """Of the worlds that it is meant for; empty for all that are seen so."""
    config: dict[str, Any]
    environment_config: dict[str, Any]
    stop: dict[str, Any]


class AlgorithmOut(BaseModel):
    """An algorithm one may ask for."""

    id: str
    title: str
    summary: str
    paper: str
    observations: list[Observation]
    """The worlds it can learn from."""
    actions: list[Actions]
    """The kinds of actions it can choose."""
    config_schema: dict[str, Any]
    """JSON Schema of `config`; each field has title, description, bounds, `group`, and may have `symbol` and
    `unit`."""
    defaults: dict[str, dict[str, Any]]
    """By kind of observation, after `continuous ` for continuous actions: `config` where nothing is given."""
    presets: list[PresetOut]


class PublishedScoreOut(BaseModel):
    """A score someone published for this world."""

    label: str
    score: float
    protocol: str
    source: str


class EnvironmentOut(BaseModel):
    """A world one may ask for."""

    id: str
    title: str
    family: str
    summary: str
    observation: Observation
    observation_shape: list[int] | None
    """(H, W, C) bytes or (D,) numbers, with the default settings; null for a host's own world."""
    config_schema: dict[str, Any]
    """JSON Schema of `environment_config`, as for algorithms."""
    defaults: dict[str, Any]
    evaluation_protocol: str
    frames_per_agent_step: int
    actions: Actions
    action_names: list[str]
    """Of each discrete action, or of each number of a continuous one, with the default settings."""
    published: list[PublishedScoreOut]
    config_defaults: dict[str, Any]
    """Settings of algorithms, of those that have them, whose defaults differ in this world."""
    hosts: list[str]
    """Where a host's own world is; empty for those that come with Callboard."""


class AlgorithmPage(Page[AlgorithmOut]):
    """All algorithms."""


class EnvironmentPage(Page[EnvironmentOut]):
    """All worlds."""
