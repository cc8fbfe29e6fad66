"""PAAC: parallel advantage actor-critic (Clemente et al. 2017, Algorithm 1)."""

from typing import Any

from backend.specs.algorithms.base import Algorithm, Preset
from backend.specs.algorithms.common import (
    BETA,
    CROPPED_GAMES,
    LUMINANCE_THEN,
    PAPER_FRAMES,
    STANDARDISE,
    VALUE_COEFFICIENT,
    scaling_conflicts,
)
from backend.specs.algorithms.memory import RunFacts
from backend.specs.algorithms.synchronous import (
    PAPER,
    SYNCHRONOUS_SOURCES,
    TIME_METRICS,
    TIME_PANEL,
    RmsPropConfig,
)
from backend.specs.constants import CLEMENTE_2017, Source, ours

_SMALL_MACHINE: dict[str, Any] = {
    "n_e": 16,
    "n_w": 2,
    "learning_rate": 7e-4,
    "learning_rate_schedule": "linear",
    "rmsprop_eps": 1e-10,
    "value_coefficient": 0.5,
    "max_grad_norm": 0.5,
}

_CENTRED = _SMALL_MACHINE | {
    "n_e": 32,
    "learning_rate": 1.4e-3,
    "max_grad_norm": 5.0,
    "centre": True,
    "evaluation_interval_agent_steps": 200_000,
}

_AUTHORS_CODE: dict[str, Any] = {
    "learning_rate_schedule": "linear",
    "rmsprop_initial_g": 1.0,
    "gradient_scale": 5.0,
    "value_coefficient": 0.25,
    "max_grad_norm": 3.0,
    "beta": 0.02,
}
"""What the authors' published code has instead of the paper's constants."""


class PaacConfig(RmsPropConfig):
    """Settings of PAAC."""

    standardise: bool = STANDARDISE
    value_coefficient: float = VALUE_COEFFICIENT(
        1.0,
        description="Weight of the value loss (R - V)². The paper has no such weight, which means 1; its "
        "authors' code has 0.25.",
    )
    beta: float = BETA

    def conflicts(self, run: RunFacts) -> dict[str, str]:
        """Errors of the framework's settings and of the scaling of observations."""
        scaling = scaling_conflicts(standardise=self.standardise, centre=self.centre)
        return super().conflicts(run) | scaling


PAAC = Algorithm(
    id="paac",
    title="PAAC",
    summary="Many environments stepped in parallel, one network, synchronous advantage actor-critic updates.",
    paper=PAPER,
    config=PaacConfig,
    sources=SYNCHRONOUS_SOURCES
    | {
        "standardise": ours("Not in the paper."),
        "value_coefficient": Source("Clemente 2017, algorithm 1"),
        "beta": Source(CLEMENTE_2017),
    },
    authors_code=_AUTHORS_CODE,
    observations=("pixels", "vector"),
    reproducibility="resumes_agree",
    metrics=TIME_METRICS,
    panels=(TIME_PANEL,),
    presets=(
        Preset(
            id="full-frame-centred",
            title="Full frame, centred, 2 CPU cores",
            description="For a small machine, and the soonest to learn on a full frame: observations centred "
            "by the mean image of random play, in which what moves is as large as it can be, and settings "
            "that a search on Pong found.",
            observation="pixels",
            families=("atari",),
            config=_CENTRED,
            stop={"agent_steps": 2_000_000},
            measured="Pong, noop_starts, full frame, centred, three seeds: 18.4, 19.0 and 18.0 at 0.8, 0.8 "
            "and 0.98 million agent steps (348, 348 and 362 s).",
        ),
        Preset(
            id="paper",
            title="As in the paper",
            description="The paper's constants as printed, for its 115 million agent steps: 32 environments "
            "on 8 workers, learning rate 0.0224, RMSProp epsilon 0.1. Averaged over 32 × 5 agent steps, the "
            "rate is 0.00014 for each: a fifth of the paper's own rule, 0.0007 nₑ, which its authors' code "
            "follows by multiplying the loss by 5. Expect it to learn slowly.",
            observation="pixels",
            families=("atari",),
            environment_config=PAPER_FRAMES,
            stop={"agent_steps": 115_000_000},
            measured=f"{LUMINANCE_THEN} Pong, noop_starts, full frame, not standardised, one seed: −20.2 at "
            "2 million agent steps; Breakout, noop_starts, full frame, not standardised, one seed: 2.20.",
        ),
        Preset(
            id="authors-code",
            title="As in the authors' code",
            description="What the published code has instead of the printed constants: the gradient times 5, "
            "value weight 0.25, entropy weight 0.02, gradients clipped to 3, the learning rate annealed over "
            "80 million agent steps, RMSProp's mean square from 1. Its README says that the paper's runs had "
            "other values of some.",
            observation="pixels",
            families=("atari",),
            config=_AUTHORS_CODE,
            environment_config=PAPER_FRAMES,
            stop={"agent_steps": 80_000_000},
            measured="Pong, noop_starts, full frame, not standardised, one seed: −19.0 at 3 million agent "
            "steps, −14.8 at 5 million, stopped there.",
        ),
        Preset(
            id="full-frame",
            title="NIPS network, full frame, 2 CPU cores",
            description="For a small machine: the papers' observations, one worker process per core, half "
            "the paper's batch, and a small RMSProp epsilon.",
            observation="pixels",
            config=_SMALL_MACHINE | {"evaluation_interval_agent_steps": 500_000},
            stop={"agent_steps": 10_000_000},
            measured="Pong, noop_starts, full frame, not standardised, one seed: −8.1 at 2 million agent "
            "steps, 17.6 at 2.5 million (20 minutes), 19.6 at 3 million (24 minutes).",
        ),
        Preset(
            id="gpu-host",
            title="NIPS network, full frame, GPU and 16 CPU cores",
            description="For a host with a GPU: 64 environments on 16 workers, twice the learning rate of "
            "the preset for 2 CPU cores, and normalised observations.",
            observation="pixels",
            config=_SMALL_MACHINE
            | {
                "n_e": 64,
                "n_w": 16,
                "learning_rate": 1.4e-3,
                "standardise": True,
                "evaluation_interval_agent_steps": 1_000_000,
            },
            stop={"agent_steps": 6_000_000},
            measured_on="16 cores with an H200",
            measured="Pong, noop_starts, full frame, standardised, two runs of seed 0: 18.4, 19.9 at 3.1 "
            "million agent steps (180 s); the last 100 training episodes averaged 18 after 164 and 120 s.",
        ),
        Preset(
            id="compact-cropped",
            title="Compact network, cropped frame, 2 CPU cores",
            description="For Pong: the playing field only, without score and walls, as 42×42 normalised "
            "observations, and four small convolutions.",
            observation="pixels",
            families=("atari",),
            environments=CROPPED_GAMES,
            config=_SMALL_MACHINE | {"network": "compact", "evaluation_interval_agent_steps": 100_000},
            environment_config={"observation_size": "42x42", "crop": True},
            stop={"agent_steps": 3_000_000},
            measured="Pong, noop_starts, cropped frame, standardised, three seeds: 19.3 at 0.7 million agent "
            "steps (204 s), 18.6 at 1.2 million (327 s), 11.7 at 1.1 million, stopped there.",
        ),
        Preset(
            id="nips-cropped",
            title="NIPS network, cropped frame, 2 CPU cores",
            description="For Pong: the first preset with cropped, normalised observations, which needs fewer "
            "agent steps.",
            observation="pixels",
            families=("atari",),
            environments=CROPPED_GAMES,
            config=_SMALL_MACHINE | {"standardise": True, "evaluation_interval_agent_steps": 250_000},
            environment_config={"crop": True},
            stop={"agent_steps": 10_000_000},
            measured="Pong, noop_starts, cropped frame, standardised, one seed: 18.9 at 0.7 million agent "
            "steps (204 s).",
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
