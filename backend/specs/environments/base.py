"""What every world's settings share, and how a world presents itself."""

from dataclasses import dataclass, field
from typing import Any

from backend.specs.algorithms.base import Actions, Observation
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
    action_names: tuple[str, ...]
    """Of each discrete action, or of each number of a continuous one, with the default settings."""
    actions: Actions = "discrete"
    observation_shape: tuple[int, ...] | None = None
    """(H, W, C) bytes or (D,) numbers, with the default settings; unknown of a host's own world."""
    published: tuple[PublishedScore, ...] = ()
    replayable: bool = False
    """Whether an episode is soon played again from its seed and actions: a resumed run can go on in it."""
    config_defaults: dict[str, Any] = field(default_factory=dict)
    """Settings of algorithms, of those that have them, whose defaults differ in this world."""
    memory_bytes: int = 64 * 2**10
    """What one environment takes beside the process it is in; a process of its own included."""
    allowed: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Of settings that take other values in each world of a family: those it takes here."""

    def refusals(self, config: EnvironmentConfig) -> dict[str, str]:
        """Setting -> what is wrong with its value in this world."""
        asked = config.model_dump()
        return {
            name: f"{self.title} takes {_listed(allowed)}, got {asked[name]}"
            for name, allowed in self.allowed.items()
            if asked[name] is not None and asked[name] not in allowed
        }


def _listed(numbers: tuple[int, ...]) -> str:
    shown = [str(number) for number in numbers]
    return ", ".join(shown if len(shown) <= 40 else [*shown[:3], "…", shown[-1]])
