"""PAAC: parallel advantage actor-critic (Clemente et al. 2017, Algorithm 1)."""

from typing import Any

from backend.specs.algorithms.base import Algorithm, Preset
from backend.specs.algorithms.common import BETA, STANDARDISE
from backend.specs.algorithms.synchronous import PAPER, SynchronousConfig
from backend.specs.fields import setting

_SMALL_MACHINE: dict[str, Any] = {
    "n_e": 16,
    "n_w": 2,
    "learning_rate": 7e-4,
    "learning_rate_schedule": "linear",
    "rmsprop_eps": 1e-10,
    "value_coefficient": 0.5,
    "max_grad_norm": 0.5,
}


class PaacConfig(SynchronousConfig):
    """Settings of PAAC."""

    standardise: bool = STANDARDISE
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
            id="compact",
            title="compact network, two CPU cores",
            description="The quickest on a small machine: cropped and standardised pictures of 42×42, and "
            "four small convolutions; the rest as with nips. Look whether the crop suits another game than "
            "Pong.",
            observation="pixels",
            families=("atari",),
            config=_SMALL_MACHINE | {"network": "compact", "evaluation_interval_agent_steps": 100_000},
            environment_config={"picture_size": "42x42", "crop": True},
            stop={"agent_steps": 3_000_000},
        ),
        Preset(
            id="two-cpu-cores",
            title="nips, two CPU cores",
            description="For a small machine: one worker process a core; half the paper's batch, a small "
            "RMSProp epsilon, and cropped and standardised pictures, which learn from fewer agent steps. "
            "Look whether the crop suits another game than Pong.",
            observation="pixels",
            families=("atari",),
            config=_SMALL_MACHINE | {"standardise": True, "evaluation_interval_agent_steps": 250_000},
            environment_config={"crop": True},
            stop={"agent_steps": 10_000_000},
        ),
        Preset(
            id="whole-pictures",
            title="nips, two CPU cores, whole pictures",
            description="The same over pictures as the papers have them, for every world with pixels.",
            observation="pixels",
            config=_SMALL_MACHINE | {"evaluation_interval_agent_steps": 500_000},
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
