"""What the asynchronous methods of Mnih et al. 2016 have in common."""

from typing import Any, Literal

from backend.specs.algorithms.base import AlgorithmConfig
from backend.specs.algorithms.common import (
    GAMMA,
    REWARD_CLIP,
    RMSPROP_DECAY,
    RMSPROP_EPS,
    Network,
    network_setting,
)
from backend.specs.fields import setting

PAPER = "Mnih et al. 2016, Asynchronous Methods for Deep Reinforcement Learning"
MAX_ACTORS = 64
SMALL_PIXELS: dict[str, Any] = {
    "n_actors": 2,
    "network": "compact",
    "t_max": 11,
    "optimizer": "shared_adam",
    "learning_rate_schedule": "constant",
    "evaluation_interval_agent_steps": 20_000,
}
"""For small tasks seen as pixels: minutes on two CPU cores."""


class AsynchronousConfig(AlgorithmConfig):
    """Settings of every asynchronous method; the defaults are those of the paper's supplement, section 8."""

    network: Network = network_setting("nips")
    n_actors: int = setting(
        16,
        ge=1,
        le=MAX_ACTORS,
        title="Actor-learners",
        live=True,
        group="parallelism",
        description="Processes that each play and learn by themselves; a few a core, for they never wait.",
    )
    optimizer: Literal["shared_rmsprop", "rmsprop", "momentum_sgd", "shared_adam"] = setting(
        "shared_rmsprop",
        title="Optimizer",
        group="optimisation",
        description="shared_rmsprop: one mean of squared gradients for all actors, the paper's choice; "
        "rmsprop, momentum_sgd: each actor its own; shared_adam: Adam, shared.",
    )
    learning_rate: float = setting(
        0.0007,
        gt=0,
        le=10,
        symbol="η",
        title="Learning rate",
        live=True,
        group="optimisation",
        description="Step size. The paper drew it between 0.0001 and 0.01; an author names 0.0007.",
    )
    learning_rate_schedule: Literal["linear", "constant"] = setting(
        "linear",
        title="Learning rate schedule",
        group="optimisation",
        description="linear: annealed to 0 at the run's agent-step bound, as in the paper.",
    )
    gamma: float = GAMMA
    rmsprop_decay: float = RMSPROP_DECAY
    rmsprop_eps: float = RMSPROP_EPS
    momentum: float = setting(
        0.99,
        ge=0,
        lt=1,
        symbol="α",
        title="Momentum",
        group="optimisation",
        description="How slowly momentum_sgd forgets past gradients.",
    )
    max_grad_norm: float = setting(
        40.0,
        gt=0,
        le=1e6,
        title="Gradient norm clip",
        live=True,
        group="optimisation",
        description="Gradients with a larger norm are scaled down to it.",
    )
    reward_clip: float = REWARD_CLIP
    t_max: int = setting(
        5,
        ge=0,
        le=1_000,
        symbol="t_max",
        title="Rollout length",
        group="parallelism",
        unit="agent steps",
        description="Decisions of an actor between two updates; 0: one update an episode, where returns end.",
    )
