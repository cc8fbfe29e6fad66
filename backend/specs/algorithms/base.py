"""Settings shared by all algorithms, and the description of an algorithm in the catalogue."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import ConfigDict

from backend.specs.algorithms.memory import (
    ENGINE_BYTES,
    ENV_PROCESS_BYTES,
    MAX_EVALUATION_ENVIRONMENTS,
    RANDOM_ENVIRONMENTS,
    RunFacts,
)
from backend.specs.constants import Sources, ours
from backend.specs.fields import Strict, setting
from backend.specs.metrics import Metric, Panel
from backend.specs.protocols import ProtocolChoice
from backend.specs.spaces import Actions, Observation

if TYPE_CHECKING:
    from backend.specs.environments.base import Environment

Device = Literal["cpu", "cuda"]
Reproducibility = Literal["bitwise", "resumes_agree", "none"]
"""What two runs of one spec on one host have in common.

- `bitwise`: the same seed gives the same series, bit for bit, resumed or not. A replay memory of more than
  256 MiB is not in the checkpoint: a resume refills it, and resumes of one checkpoint agree.
- `resumes_agree`: the same seed gives the same series, and resumes of one checkpoint agree. A resume begins
  new episodes where the environment cannot quickly be replayed.
- `none`: processes work concurrently, and nothing repeats exactly.
"""

OPERATION_SOURCES: Sources = {
    "centre": ours("Not in the papers."),
    "evaluation_interval_agent_steps": ours("The papers do not state how often they evaluate."),
    "evaluation_protocol": ours("auto: the paper's; see the page on evaluation protocols."),
    "checkpoint_interval_s": ours("Operation only: does not affect learning."),
}
"""Sources of settings that every algorithm has alike."""


class AlgorithmConfig(Strict, ABC):
    """Settings of every algorithm: evaluation and checkpoints."""

    # `setting` describes them: reading docstrings would cost each process of an engine a tenth of a second.
    model_config = ConfigDict(use_attribute_docstrings=False)

    scores_best_kept: ClassVar[bool] = False
    """Whether a finished run also evaluates the best parameters of all evaluated checkpoints."""

    evaluation_interval_agent_steps: int = setting(
        1_000_000,
        ge=0,
        le=10**12,
        title="Evaluation interval",
        live=True,
        common=True,
        group="evaluation",
        unit="agent steps",
        description="How often the agent is evaluated. 0: only at the end of the run.",
    )
    evaluation_episodes: int = setting(
        30,
        ge=0,
        le=1_000,
        title="Evaluation episodes",
        live=True,
        group="evaluation",
        unit="episodes",
        description="Episodes per evaluation. 0 disables evaluation. The papers use 30.",
    )
    evaluation_protocol: ProtocolChoice = setting(
        "auto",
        title="Evaluation protocol",
        group="evaluation",
        description="How episodes of an evaluation start and end. auto: as in the algorithm's paper on "
        "Atari, no-op starts for GA3C; sticky_actions_5min for an agent trained with sticky actions; plain "
        "in other environments. With _greedy the agent always takes its best action. agent_starts:SET and "
        "human_starts:SET start from a start set of the game.",
    )
    checkpoint_interval_s: float = setting(
        40.0,
        ge=1,
        le=86_400,
        title="Checkpoint interval",
        live=True,
        group="evaluation",
        unit="s",
        description="Training time between checkpoints: the most that a killed run loses.",
    )

    @property
    @abstractmethod
    def env_processes(self) -> int:
        """Processes that step environments in training; at most as many step those of an evaluation."""

    @property
    def ray_processes(self) -> int:
        """Processes that Ray runs, all on one machine; each takes seconds to start."""
        return 0

    @abstractmethod
    def training_bytes(self, run: RunFacts) -> int:
        """Upper estimate of the memory that training needs in addition to the engine's process."""

    def memory_bytes(self, run: RunFacts) -> int:
        """Upper estimate of the memory of the engine and all its processes, also during an evaluation."""
        evaluated = min(self.evaluation_episodes, MAX_EVALUATION_ENVIRONMENTS)
        if getattr(self, "centre", False):
            evaluated = max(evaluated, RANDOM_ENVIRONMENTS)  # the random play needs as much
        processes = min(self.env_processes, evaluated)
        evaluation = processes * ENV_PROCESS_BYTES + evaluated * run.emulator_bytes
        return ENGINE_BYTES + self.training_bytes(run) + evaluation

    def gpu_memory_advice(self) -> list[str]:
        """What to change so that training needs less memory on a GPU, the most effective first."""
        return []

    def conflicts(self, run: RunFacts) -> dict[str, str]:
        """Errors of settings that do not fit the rest of the run, by field, such as `config.network`."""
        return {}


@dataclass(frozen=True)
class Preset:
    """A named set of changes to the defaults."""

    id: str
    title: str
    description: str
    observation: Observation
    """The kind of observation of the environments it is meant for."""
    actions: tuple[Actions, ...] = ()
    """The kinds of actions it is meant for; empty for all."""
    families: tuple[str, ...] = ()
    """The environment families it is meant for; empty for all."""
    environments: tuple[str, ...] = ()
    """The ids of the environments it is meant for; empty for all of these families."""
    config: dict[str, Any] = field(default_factory=dict)
    environment_config: dict[str, Any] = field(default_factory=dict)
    stop: dict[str, Any] = field(default_factory=dict)
    measured_on: str = "two cores"
    """The machine of `measured`."""
    measured: str = ""
    """What runs of it reached there (RESULTS.md); empty if no run is recorded."""

    def suits(self, environment: "Environment") -> bool:
        """Whether it is meant for this environment."""
        return (
            self.observation == environment.observation
            and environment.actions in (self.actions or (environment.actions,))
            and environment.family in (self.families or (environment.family,))
            and environment.id in (self.environments or (environment.id,))
        )


@dataclass(frozen=True)
class Algorithm:
    """An algorithm of the catalogue."""

    id: str
    title: str
    summary: str
    paper: str
    config: type[AlgorithmConfig]
    sources: Sources
    """The source of every setting's default for Atari."""
    observations: tuple[Observation, ...]
    reproducibility: Reproducibility
    """What it promises in every environment."""
    actions: tuple[Actions, ...] = ("discrete",)
    """The kinds of actions it supports."""
    devices: tuple[Device, ...] = ("cpu", "cuda")
    """The devices it can train on."""
    authors_code: dict[str, Any] = field(default_factory=dict)
    """What its authors' published code has instead of the paper's constants."""
    presets: tuple[Preset, ...] = ()
    vector_defaults: dict[str, Any] = field(default_factory=dict)
    """Defaults that differ for vector observations."""
    continuous_defaults: dict[str, Any] = field(default_factory=dict)
    """Defaults that differ, in addition, for continuous actions."""
    continuous_sources: Sources = field(default_factory=dict)
    """The source of each of `continuous_defaults`."""
    learns: bool = True
    """Whether it trains anything. If not, it neither has updates nor regards what it observes."""
    action_values: bool = False
    """Whether it learns Q: its replays hold Q(s, .) instead of a policy."""
    evaluation_protocol: str = "noop_starts"
    """The protocol of its paper for Atari games. A3C's human starts need recordings: no-op starts instead."""
    metrics: dict[str, Metric] = field(default_factory=dict)
    """Titles of metrics that it reports, by name; those that many methods report have theirs already."""
    panels: tuple[Panel, ...] = ()
    """Figures of its diagnostics, in order. Algorithms may share a panel."""
    package: str | None = None
    """The distribution that it is of with its version, as pip names them; None for Callboard. Set by
    `backend.specs.algorithms.packages`."""
    extra: str | None = None
    """The extra of the distribution that a host needs in addition to `worker`; None: no other."""

    def defaults(self, observation: Observation, actions: Actions = "discrete") -> dict[str, Any]:
        """The defaults for environments of this kind, as JSON values."""
        plain = self.config().model_dump(mode="json")
        return (
            plain
            | (self.vector_defaults if observation == "vector" else {})
            | (self.continuous_defaults if actions == "continuous" else {})
        )
