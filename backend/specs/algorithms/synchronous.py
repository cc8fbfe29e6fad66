"""What the methods of PAAC's framework have in common (Clemente et al. 2017, section 3)."""

from typing import Literal

from backend.specs.algorithms.base import AlgorithmConfig
from backend.specs.algorithms.common import (
    GAMMA,
    LEARNING_RATE_SCHEDULE,
    PRECISION,
    REWARD_CLIP,
    RMSPROP_EPS,
    Network,
    network_setting,
)
from backend.specs.fields import setting

PAPER = "Clemente, Castejón and Chandra 2017, Efficient Parallel Methods for Deep Reinforcement Learning"


class SynchronousConfig(AlgorithmConfig):
    """Settings of the framework; the defaults are those of the paper's section 5.1."""

    network: Network = network_setting("nips")
    precision: Literal["fp32", "bf16"] = PRECISION
    learning_rate: float = setting(
        0.0224,
        gt=0,
        le=10,
        symbol="α",
        title="Learning rate",
        live=True,
        group="optimisation",
        description="Step size of RMSProp. The paper uses 0.0007 for each of 32 environments.",
    )
    scale_learning_rate: bool = setting(
        False,
        title="Learning rate proportional to nₑ",
        group="optimisation",
        description="The learning rate is that of 32 environments: it is multiplied by nₑ/32, as where the "
        "paper compares numbers of environments (0.0007 nₑ).",
    )
    learning_rate_schedule: Literal["constant", "linear"] = LEARNING_RATE_SCHEDULE
    gamma: float = GAMMA
    rmsprop_decay: float = setting(
        0.99,
        ge=0,
        lt=1,
        title="RMSProp decay",
        group="optimisation",
        description="How slowly the running mean of squared gradients forgets.",
    )
    rmsprop_eps: float = RMSPROP_EPS
    gradient_scale: float = setting(
        1.0,
        gt=0,
        le=1_000,
        title="Gradient scale",
        live=True,
        group="optimisation",
        description="Multiplies the averaged gradient before clipping: 1 in the paper's text, "
        "5 (t_max) in its authors' code.",
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
    n_e: int = setting(
        32,
        ge=1,
        le=512,
        symbol="nₑ",
        title="Environments",
        group="parallelism",
        description="Environments stepped together; the batch of one decision.",
    )
    n_w: int = setting(
        8,
        ge=1,
        le=64,
        symbol="n_w",
        title="Workers",
        group="parallelism",
        description="Processes that step the environments; more than the machine has cores gains nothing.",
    )
    t_max: int = setting(
        5,
        ge=1,
        le=1_000,
        symbol="t_max",
        title="Rollout length",
        group="parallelism",
        unit="agent steps",
        description="Decisions of each environment between two updates.",
    )
