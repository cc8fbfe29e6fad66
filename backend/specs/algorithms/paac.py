"""PAAC: parallel advantage actor-critic (Clemente et al. 2017, Algorithm 1)."""

from backend.specs.algorithms.base import Algorithm, Preset
from backend.specs.algorithms.common import BETA
from backend.specs.algorithms.synchronous import PAPER, SynchronousConfig
from backend.specs.fields import setting


class PaacConfig(SynchronousConfig):
    """Settings of PAAC."""

    value_coefficient: float = setting(
        1.0,
        ge=0,
        le=10,
        title="Value loss weight",
        live=True,
        group="optimisation",
        description="Weight of the value loss (R - V)²; the paper has no weight, which is 1.",
    )
    beta: float = BETA


PAAC = Algorithm(
    id="paac",
    title="PAAC",
    summary="Many environments in step, one network, synchronous advantage actor-critic updates.",
    paper=PAPER,
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
