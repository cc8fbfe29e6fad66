"""Settings shared by the methods with a deep Q-network and a replay memory."""

from functools import partial
from typing import ClassVar, Literal

from pydantic import ValidationInfo, field_validator

from backend.specs.algorithms.base import OPERATION_SOURCES, AlgorithmConfig
from backend.specs.algorithms.common import (
    CENTRE,
    GAMMA,
    LEARNING_RATE,
    OPTIMIZER,
    PRECISION,
    REWARD_CLIP,
    lower_advice,
    network_conflicts,
    network_setting,
    precision_advice,
)
from backend.specs.algorithms.memory import Network, RunFacts
from backend.specs.algorithms.value import VALUE_PANELS
from backend.specs.constants import MNIH_2015, Source, Sources, ours
from backend.specs.fields import setting
from backend.specs.metrics import Panel

CHECKPOINTED_REPLAY_BYTES = 256 * 2**20
"""A larger replay memory is not stored in a checkpoint."""

REPLAYED_SOURCES: Sources = OPERATION_SOURCES | {
    "evaluation_episodes": Source(MNIH_2015),
    "network": Source(MNIH_2015),
    "optimizer": Source(MNIH_2015),
    "learning_rate": Source(MNIH_2015),
    "rmsprop_decay": Source(MNIH_2015),
    "rmsprop_eps": Source(MNIH_2015),
    "gamma": Source(MNIH_2015),
    "reward_clip": Source(MNIH_2015),
    "batch_size": Source(MNIH_2015),
    "agent_steps_per_update": Source(MNIH_2015),
    "precision": ours("Not stated in the papers; fp32 is usual."),
    "target_update_updates": Source(MNIH_2015),
    "replay_capacity": Source(MNIH_2015),
    "learning_starts_agent_steps": Source(MNIH_2015),
    "exploration_eps": Source(MNIH_2015),
}
"""Sources of the settings of Q-learning from a replay memory."""

REPLAYED_PANELS = (
    *VALUE_PANELS,
    Panel("replay", "Replay memory", "Fraction filled", {"replay/fill": "filled", "gorila/replay_fill": ""}),
)

REPLAY_CAPACITY = partial(
    setting,
    title="Replay capacity",
    group="optimisation",
    symbol="D",
    unit="agent steps",
    ge=100,
    le=10**9,
    common=True,
)
LEARNING_STARTS = partial(
    setting, title="Learning starts after", group="optimisation", unit="agent steps", ge=1, le=10**9
)
TARGET_UPDATE = partial(
    setting, title="Target network period", group="optimisation", symbol="N", unit="updates", ge=1, le=10**9
)
"""Settings whose defaults differ between DQN and Gorila."""


class ReplayedQConfig(AlgorithmConfig):
    """Settings of Q-learning from a replay memory. The defaults are those of Mnih et al. 2015."""

    scores_best_kept: ClassVar[bool] = True

    network: Network = network_setting("nature")
    centre: bool = CENTRE
    optimizer: Literal["centred_rmsprop", "adagrad"] = OPTIMIZER(
        "centred_rmsprop",
        description="centred_rmsprop: DQN's. adagrad: Gorila's; its steps shrink as squared gradients "
        "accumulate.",
    )
    learning_rate: float = LEARNING_RATE(
        0.00025,
        description="Step size for gradients summed over a minibatch. Gorila's paper gives none.",
    )
    rmsprop_decay: float = setting(
        0.95,
        ge=0,
        lt=1,
        title="RMSProp decay",
        group="optimisation",
        description="Decay of centred_rmsprop's running means of gradients and squared gradients.",
    )
    rmsprop_eps: float = setting(
        0.01,
        gt=0,
        le=1,
        symbol="ε",
        title="Minimum squared gradient",
        group="optimisation",
        description="Added inside the square root that divides the gradient, in both optimizers.",
    )
    gamma: float = GAMMA
    reward_clip: float = REWARD_CLIP
    batch_size: int = setting(
        32,
        ge=1,
        le=4_096,
        title="Batch size",
        common=True,
        group="optimisation",
        unit="agent steps",
        description="Replayed agent steps per update.",
    )
    agent_steps_per_update: int = setting(
        4,
        ge=1,
        le=10_000,
        title="Agent steps per update",
        live=True,
        group="optimisation",
        unit="agent steps",
        description="Agent steps of an actor between two updates of its learner.",
    )
    precision: Literal["fp32", "bf16"] = PRECISION
    target_update_updates: int = TARGET_UPDATE(
        10_000,
        description="Updates of θ, by all learners together, between two updates of the target network.",
    )
    replay_capacity: int = REPLAY_CAPACITY(
        1_000_000,
        description="Maximum number of agent steps in the replay memory; one of Atari takes 7 kB. Up to 256 "
        "MB are stored in a checkpoint; a larger replay memory is filled again after a resume, before "
        "learning continues.",
    )
    learning_starts_agent_steps: int = LEARNING_STARTS(
        50_000,
        description="Agent steps in the replay memory before the first update.",
    )
    exploration_eps: float = setting(
        0.1,
        ge=0,
        le=1,
        symbol="ε",
        title="Final epsilon",
        live=True,
        group="exploration",
        description="Final probability of a random action.",
    )

    @field_validator("learning_starts_agent_steps")
    @classmethod
    def _fits(cls, value: int, info: ValidationInfo) -> int:
        if value > info.data.get("replay_capacity", value):
            raise ValueError(f"must not exceed replay_capacity ({info.data['replay_capacity']:,})")
        return value

    def gpu_memory_advice(self) -> list[str]:
        """A smaller minibatch, or half its activations."""
        return [*lower_advice(batch_size=self.batch_size), *precision_advice(self.precision)]

    def conflicts(self, run: RunFacts) -> dict[str, str]:
        """Errors of the network."""
        return network_conflicts(self.network, run, centre=self.centre)

    def replay_bytes(self, run: RunFacts) -> int:
        """Maximum size of the replay memory in this run."""
        capacity = self.replay_capacity
        if run.agent_steps is not None:
            capacity = min(capacity, run.agent_steps)
        return capacity * run.replayed_step_bytes
