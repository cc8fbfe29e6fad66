"""What every world's settings share, and how a world presents itself."""

from dataclasses import dataclass

from backend.specs.algorithms.base import Observation
from backend.specs.fields import Strict


class EnvironmentConfig(Strict):
    """Base of a family's settings."""


@dataclass(frozen=True)
class PublishedScore:
    """A score someone published for this world, with the protocol it was measured by."""

    label: str
    score: float
    protocol: str
    source: str


@dataclass(frozen=True)
class Environment:
    """A world as the catalogue shows it."""

    id: str
    title: str
    family: str
    summary: str
    observation: Observation
    config: type[EnvironmentConfig]
    evaluation_protocol: str
    """How an agent is scored here: `noop_starts`, or `plain` where there are no no-ops."""
    frames_per_agent_step: int
    """With the default settings."""
    published: tuple[PublishedScore, ...] = ()
