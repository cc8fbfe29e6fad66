"""PAAC: parallel advantage actor-critic (Clemente et al. 2017, Algorithm 1)."""

from typing import Literal

from backend.specs.algorithms.base import Algorithm, AlgorithmConfig, Preset
from backend.specs.algorithms.common import BETA, GAMMA, LEARNING_RATE_SCHEDULE, REWARD_CLIP, RMSPROP_EPS
from backend.specs.fields import setting


class PaacConfig(AlgorithmConfig):
    """Settings of PAAC; the defaults are those of the paper's section 5.1."""

    network: Literal["nips", "nature", "mlp"] = setting(
        "nips",
        title="Network",
        group="network",
        description="nips: Mnih 2013's; nature: Mnih 2015's, larger; mlp: for vector observations.",
    )
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
    value_coefficient: float = setting(
        1.0,
        ge=0,
        le=10,
        title="Value loss weight",
        live=True,
        group="optimisation",
        description="Weight of the value loss (R - V)²; the paper has no weight, which is 1.",
    )
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
    beta: float = BETA
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


PAAC = Algorithm(
    id="paac",
    title="PAAC",
    summary="Many environments in step, one network, synchronous advantage actor-critic updates.",
    paper="Clemente, Castejón and Chandra 2017, Efficient Parallel Methods for Deep Reinforcement Learning",
    config=PaacConfig,
    observations=("pixels", "vector"),
    presets=(
        Preset(
            id="two-cpu-cores",
            title="two CPU cores",
            description="For a small machine: one worker process a core; half the paper's batch and a small "
            "RMSProp epsilon, which learn from fewer agent steps; an evaluation every half million.",
            observation="pixels",
            config={
                "n_e": 16,
                "n_w": 2,
                "learning_rate": 7e-4,
                "learning_rate_schedule": "linear",
                "rmsprop_eps": 1e-10,
                "value_coefficient": 0.5,
                "max_grad_norm": 0.5,
                "evaluation_interval_agent_steps": 500_000,
            },
            stop={"agent_steps": 10_000_000},
        ),
    ),
    vector_defaults={
        "network": "mlp",
        "learning_rate": 0.003,
        "rmsprop_eps": 1e-5,
        "value_coefficient": 0.1,
        "max_grad_norm": 0.5,
        "reward_clip": 0.0,
        "n_e": 16,
        "n_w": 1,
        "evaluation_interval_agent_steps": 100_000,
    },
)
