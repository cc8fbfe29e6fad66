"""What every algorithm's settings share, and how an algorithm presents itself."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from backend.specs.fields import Strict, setting

Observation = Literal["pixels", "vector"]
Actions = Literal["discrete", "continuous"]
Device = Literal["cpu", "cuda"]


class AlgorithmConfig(Strict):
    """Settings every algorithm has: when to evaluate and when to save."""

    scores_best_kept: ClassVar[bool] = False
    """Whether a finished run scores, beside its last parameters, the best of all that were evaluated."""

    evaluation_interval_agent_steps: int = setting(
        1_000_000,
        ge=0,
        le=10**12,
        title="Evaluate every",
        live=True,
        group="evaluation",
        unit="agent steps",
        description="How often the agent is scored from fresh starts; 0 scores it only at the end.",
    )
    evaluation_episodes: int = setting(
        30,
        ge=0,
        le=1_000,
        title="Evaluation episodes",
        live=True,
        group="evaluation",
        unit="episodes",
        description="Episodes in one evaluation; 0 switches evaluation off. The papers use 30.",
    )
    checkpoint_interval_s: float = setting(
        40.0,
        ge=1,
        le=86_400,
        title="Checkpoint every",
        live=True,
        group="evaluation",
        unit="s",
        description="Training time between checkpoints: the most that a killed run loses.",
    )


@dataclass(frozen=True)
class Preset:
    """A named set of changes to the defaults, with the reason it exists."""

    id: str
    title: str
    description: str
    observation: Observation
    """What the worlds that it is meant for are seen as."""
    families: tuple[str, ...] = ()
    """The families of these worlds, where it is not meant for all."""
    config: dict[str, Any] = field(default_factory=dict)
    environment_config: dict[str, Any] = field(default_factory=dict)
    stop: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Algorithm:
    """An algorithm as the catalogue shows it."""

    id: str
    title: str
    summary: str
    paper: str
    config: type[AlgorithmConfig]
    observations: tuple[Observation, ...]
    actions: tuple[Actions, ...] = ("discrete",)
    """The kinds of actions it can choose."""
    devices: tuple[Device, ...] = ("cpu", "cuda")
    """Where it can train."""
    presets: tuple[Preset, ...] = ()
    vector_defaults: dict[str, Any] = field(default_factory=dict)
    """Defaults that differ for worlds with vector observations."""
    continuous_defaults: dict[str, Any] = field(default_factory=dict)
    """Defaults that differ, further, for worlds with continuous actions."""
    action_values: bool = False
    """It learns Q: its replays hold Q(s, .) where those of others hold a policy."""

    def defaults(self, observation: Observation, actions: Actions = "discrete") -> dict[str, Any]:
        """The defaults for worlds of this kind, as plain JSON values."""
        plain = self.config().model_dump(mode="json")
        return (
            plain
            | (self.vector_defaults if observation == "vector" else {})
            | (self.continuous_defaults if actions == "continuous" else {})
        )
