"""GA3C: A3C with one model, served by predictors and taught by trainers (Babaeizadeh et al. 2017)."""

from typing import Literal

from backend.specs.algorithms.base import Algorithm, AlgorithmConfig, Preset
from backend.specs.algorithms.common import (
    BETA,
    GAMMA,
    LEARNING_RATE_SCHEDULE,
    REWARD_CLIP,
    RMSPROP_DECAY,
    RMSPROP_EPS,
)
from backend.specs.fields import setting

MAX_AGENTS = 256
MAX_THREADS = 16
MAX_WALKED_AGENTS = 32
"""How far N_A is adjusted, unless more are asked for."""


class Ga3cConfig(AlgorithmConfig):
    """Settings of GA3C; the defaults are the paper's, and its authors' code's where the paper is silent."""

    network: Literal["nips", "nature", "large", "mlp"] = setting(
        "nips",
        title="Network",
        group="network",
        shape=True,
        description="nips: Mnih 2013's, the paper's small one; nature: Mnih 2015's; large: the paper's, with "
        "three convolutions; mlp: for vector observations.",
    )
    first_layer_stride: int = setting(
        4,
        ge=1,
        le=4,
        title="First layer stride",
        group="network",
        shape=True,
        unit="pixels",
        description="Of the large network's first convolution: 4 to 1, each smaller one costs more.",
    )
    learning_rate: float = setting(
        0.0003,
        gt=0,
        le=10,
        symbol="η",
        title="Learning rate",
        live=True,
        group="optimisation",
        description="Step size for gradients summed over a batch; the paper has 0.0003 and 0.0001.",
    )
    learning_rate_schedule: Literal["constant", "linear"] = LEARNING_RATE_SCHEDULE
    gamma: float = GAMMA
    rmsprop_decay: float = RMSPROP_DECAY
    rmsprop_eps: float = RMSPROP_EPS
    value_coefficient: float = setting(
        1.0,
        ge=0,
        le=10,
        title="Value loss weight",
        live=True,
        group="optimisation",
        description="Weight of the value loss (R - V)²: 1 in the paper's text, 0.5 in its authors' code.",
    )
    max_grad_norm: float = setting(
        0.0,
        ge=0,
        le=1e6,
        title="Gradient norm clip",
        live=True,
        group="optimisation",
        description="Gradients with a larger norm are scaled down to it; 0, as in the paper, for no clip.",
    )
    reward_clip: float = REWARD_CLIP
    log_eps: float = setting(
        1e-6,
        gt=0,
        le=0.1,
        symbol="ε",
        title="Logarithm epsilon",
        group="optimisation",
        description="Added to probabilities before their logarithm: bounds the gradient of lagging policies.",
    )
    beta: float = BETA
    n_actors: int = setting(
        32,
        ge=1,
        le=MAX_AGENTS,
        symbol="N_A",
        title="Agents",
        live=True,
        group="parallelism",
        description="Processes that each play one environment; they need no network.",
    )
    n_predictors: int = setting(
        2,
        ge=1,
        le=MAX_THREADS,
        symbol="N_P",
        title="Predictors",
        live=True,
        group="parallelism",
        description="Threads that answer the agents, each taking all requests that wait.",
    )
    n_trainers: int = setting(
        2,
        ge=1,
        le=MAX_THREADS,
        symbol="N_T",
        title="Trainers",
        live=True,
        group="parallelism",
        description="Threads that update the network from what agents submit.",
    )
    min_training_batch: int = setting(
        1,
        ge=1,
        le=1_024,
        title="Minimum training batch",
        live=True,
        group="parallelism",
        unit="agent steps",
        description="A trainer gathers at least so many experiences for an update; 20 to 40 is the paper's "
        "advice for stability, one submission its default.",
    )
    t_max: int = setting(
        5,
        ge=1,
        le=255,
        symbol="t_max",
        title="Rollout length",
        group="parallelism",
        unit="agent steps",
        description="Experiences an agent submits at once; fewer at an episode's end.",
    )
    adjustment_interval_s: float = setting(
        60.0,
        ge=0,
        le=3_600,
        title="Adjust every",
        live=True,
        group="parallelism",
        unit="s",
        description="How often one of N_A, N_P and N_T is changed by one, and kept if trainings a second "
        "rise; 0 keeps to the numbers above, and it takes at least two seconds. It goes up to 32 agents, or "
        "as many as are asked for where that is more.",
    )

    @property
    def most_actors(self) -> int:
        """The most agents there will be, for which a run claims memory."""
        return max(self.n_actors, MAX_WALKED_AGENTS) if self.adjustment_interval_s else self.n_actors


GA3C = Algorithm(
    id="ga3c",
    title="GA3C",
    summary="Many agents without a network, one model behind two queues: predictors answer, trainers learn.",
    paper="Babaeizadeh et al. 2017, Reinforcement Learning through Asynchronous Advantage Actor-Critic "
    "on a GPU",
    config=Ga3cConfig,
    observations=("pixels", "vector"),
    presets=(
        Preset(
            id="two-cpu-cores",
            title="two CPU cores",
            description="For a small machine: sixteen agents, one predictor, one trainer, batches of 40, a "
            "small RMSProp epsilon, which learns from fewer agent steps; an evaluation every half million.",
            observation="pixels",
            config={
                "n_actors": 16,
                "n_predictors": 1,
                "n_trainers": 1,
                "min_training_batch": 40,
                "adjustment_interval_s": 0.0,
                "learning_rate": 7e-4,
                "learning_rate_schedule": "linear",
                "rmsprop_eps": 1e-10,
                "value_coefficient": 0.5,
                "evaluation_interval_agent_steps": 500_000,
            },
            stop={"agent_steps": 10_000_000},
        ),
    ),
    vector_defaults={
        "network": "mlp",
        "learning_rate": 0.001,
        "rmsprop_eps": 1e-5,
        "value_coefficient": 0.1,
        "reward_clip": 0.0,
        "n_actors": 8,
        "n_predictors": 1,
        "n_trainers": 1,
        "min_training_batch": 40,
        "adjustment_interval_s": 0.0,
        "evaluation_interval_agent_steps": 100_000,
    },
)
