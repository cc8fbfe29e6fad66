"""n-step Q-learning in PAAC's framework (Clemente et al. 2017, section 3)."""

from backend.specs.algorithms.base import Algorithm, Preset
from backend.specs.algorithms.common import LUMINANCE_THEN, PAPER_FRAMES
from backend.specs.algorithms.synchronous import (
    PAPER,
    SYNCHRONOUS_SOURCES,
    TIME_METRICS,
    TIME_PANEL,
    RmsPropConfig,
)
from backend.specs.algorithms.value import VALUE_PANELS, VALUE_SOURCES, ValueConfig


class PaacQConfig(ValueConfig, RmsPropConfig):
    """Settings of n-step Q-learning in PAAC's framework."""


PAAC_Q = Algorithm(
    id="paac_q",
    title="PAAC, n-step Q",
    summary="Many environments stepped in parallel, each with its own epsilon; n-step Q-learning.",
    paper=PAPER,
    config=PaacQConfig,
    sources=SYNCHRONOUS_SOURCES | VALUE_SOURCES,
    observations=("pixels", "vector"),
    reproducibility="resumes_agree",
    action_values=True,
    metrics=TIME_METRICS,
    panels=(TIME_PANEL, *VALUE_PANELS),
    presets=(
        Preset(
            id="two-cpu-cores",
            title="2 CPU cores",
            description="For a small machine: one worker process per core, half the paper's batch, "
            "exploration for one million frames.",
            observation="pixels",
            config={
                "n_e": 16,
                "n_w": 2,
                "learning_rate": 7e-4,
                "learning_rate_schedule": "linear",
                "rmsprop_eps": 1e-5,
                "exploration_anneal_frames": 1_000_000,
                "evaluation_interval_agent_steps": 500_000,
            },
            stop={"agent_steps": 10_000_000},
            measured="Assault, noop_starts, full frame, not standardised, one seed: 137 at 250,000 agent "
            "steps, 406 at 500,000, 429 at 1 million, 540 at 1.42 million (8 minutes). Random play 222 (5 "
            "minutes). Boxing, noop_starts, full frame, not standardised, one seed: −10.5 at 250,000 agent "
            "steps, −4.4 at 500,000, not run longer. Random play 0.1.",
        ),
        Preset(
            id="paper",
            title="As in the papers",
            description="The constants of PAAC's framework, with the target network and exploration of Mnih "
            "et al. 2016. The paper names this method but does not measure it.",
            observation="pixels",
            families=("atari",),
            environment_config=PAPER_FRAMES,
            stop={"agent_steps": 115_000_000},
            measured=f"{LUMINANCE_THEN} Assault, noop_starts, full frame, not standardised, one seed: 153 "
            "at 250,000 agent steps, 75 at 500,000, best 381 at 750,000, 148 at 1 million, last 329 at 1.16 "
            "million. Random play 222 (5 minutes).",
        ),
    ),
    vector_defaults={
        "network": "mlp",
        "learning_rate": 0.005,
        "rmsprop_eps": 1e-5,
        "reward_clip": 0.0,
        "n_e": 16,
        "n_w": 1,
        "target_update_frames": 500,
        "exploration_anneal_frames": 20_000,
        "evaluation_interval_agent_steps": 100_000,
    },
)
