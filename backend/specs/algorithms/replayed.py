"""What the methods with a deep Q-network and a replay memory have in common."""

from typing import ClassVar, Literal

from pydantic import ValidationInfo, field_validator

from backend.specs.algorithms.base import AlgorithmConfig
from backend.specs.algorithms.common import GAMMA, PRECISION, REWARD_CLIP, Network, network_setting
from backend.specs.fields import setting

CHECKPOINTED_REPLAY_BYTES = 256 * 2**20
"""A larger replay is not stored with a checkpoint."""


class ReplayedQConfig(AlgorithmConfig):
    """Settings of Q-learning from replayed experience; the defaults are those of Mnih et al. 2015."""

    scores_best_kept: ClassVar[bool] = True

    network: Network = network_setting("nature")
    optimizer: Literal["centred_rmsprop", "adagrad"] = setting(
        "centred_rmsprop",
        title="Optimizer",
        group="optimisation",
        description="centred_rmsprop: DQN's; adagrad: Gorila's, whose steps shrink as gradients add up.",
    )
    learning_rate: float = setting(
        0.00025,
        gt=0,
        le=10,
        symbol="η",
        title="Learning rate",
        live=True,
        group="optimisation",
        description="Step size for gradients summed over a minibatch; Gorila's paper prints none.",
    )
    rmsprop_decay: float = setting(
        0.95,
        ge=0,
        lt=1,
        title="RMSProp decay",
        group="optimisation",
        description="How slowly centred_rmsprop's running means of gradients and their squares forget.",
    )
    rmsprop_eps: float = setting(
        0.01,
        gt=0,
        le=1,
        symbol="ε",
        title="Minimum squared gradient",
        group="optimisation",
        description="Added inside the square root that divides the gradient, by both optimizers.",
    )
    gamma: float = GAMMA
    reward_clip: float = REWARD_CLIP
    batch_size: int = setting(
        32,
        ge=1,
        le=4_096,
        title="Minibatch",
        group="optimisation",
        unit="agent steps",
        description="Decisions replayed for one update.",
    )
    agent_steps_per_update: int = setting(
        4,
        ge=1,
        le=10_000,
        title="Decisions an update",
        live=True,
        group="optimisation",
        unit="agent steps",
        description="Decisions of an actor between two updates of the learner that goes with it.",
    )
    precision: Literal["fp32", "bf16"] = PRECISION
    target_update_updates: int = setting(
        10_000,
        ge=1,
        le=10**9,
        symbol="N",
        title="Target network period",
        group="optimisation",
        unit="updates",
        description="Updates of θ, by all learners together, between two copies of it to the target network.",
    )
    replay_capacity: int = setting(
        1_000_000,
        ge=100,
        le=10**9,
        symbol="D",
        title="Replay capacity",
        group="optimisation",
        unit="agent steps",
        description="Decisions remembered in all; an Atari one takes 7 kB. Up to 256 MB are kept with a "
        "checkpoint; a larger replay is filled again after a resume, before learning goes on.",
    )
    learning_starts_agent_steps: int = setting(
        50_000,
        ge=1,
        le=10**9,
        title="Learning starts after",
        group="optimisation",
        unit="agent steps",
        description="Decisions to be remembered before the first update.",
    )
    exploration_eps: float = setting(
        0.1,
        ge=0,
        le=1,
        symbol="ε",
        title="Exploration",
        live=True,
        group="exploration",
        description="Share of random actions in the end.",
    )
    evaluation_max_frames: int = setting(
        18_000,
        ge=1,
        le=108_000,
        title="Longest evaluation episode",
        group="evaluation",
        unit="frames",
        description="Of Atari games: 18,000 are the papers' five minutes.",
    )

    @field_validator("learning_starts_agent_steps")
    @classmethod
    def _fits(cls, value: int, info: ValidationInfo) -> int:
        if value > info.data.get("replay_capacity", value):
            raise ValueError(f"more than replay_capacity, {info.data['replay_capacity']:,}, can hold")
        return value
