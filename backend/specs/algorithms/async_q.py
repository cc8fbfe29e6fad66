"""Asynchronous value methods: one-step Q-learning, one-step Sarsa, n-step Q (Mnih et al. 2016)."""

from backend.specs.algorithms.asynchronous import PAPER, SMALL_PIXELS, AsynchronousConfig
from backend.specs.algorithms.base import Algorithm, Preset
from backend.specs.algorithms.value import ValueConfig


class AsyncQConfig(ValueConfig, AsynchronousConfig):
    """Settings of the asynchronous value methods."""


_VECTOR_DEFAULTS = {
    "network": "mlp",
    "n_actors": 2,
    "learning_rate": 0.001,
    "rmsprop_eps": 0.001,
    "learning_rate_schedule": "constant",
    "max_grad_norm": 10.0,
    "reward_clip": 0.0,
    "target_update_frames": 1_000,
    "exploration_anneal_frames": 20_000,
    "evaluation_interval_agent_steps": 100_000,
}

_PRESETS = (
    Preset(
        id="small-pixels",
        title="Small environment, 2 CPU cores",
        description="Two actor-learners and a small network that explore for 20,000 frames; trains in "
        "minutes.",
        observation="pixels",
        families=("small",),
        config=SMALL_PIXELS
        | {"learning_rate": 0.0003, "target_update_frames": 1_000, "exploration_anneal_frames": 20_000},
        stop={"agent_steps": 100_000},
        measured="Catch, plain, standardised, at 60,000 agent steps, three seeds: n-step Q 0.87, 0.93, 0.93; "
        "one-step Q 0.40, 0.33, 1.00; Sarsa 0.93, 0.27, 0.73. Random play −0.60.",
    ),
    Preset(
        id="two-cpu-cores",
        title="2 CPU cores",
        description="The paper's agent with four actor-learners that explore for one million frames.",
        observation="pixels",
        config={
            "n_actors": 4,
            "exploration_anneal_frames": 1_000_000,
            "evaluation_interval_agent_steps": 500_000,
        },
        stop={"agent_steps": 10_000_000},
        measured="n-step Q on Boxing, noop_starts, full frame, not standardised, one seed: −21.2 at 250,000 "
        "agent steps, −2.3 at 500,000, not run longer. Random play 0.1.",
    ),
    Preset(
        id="paper",
        title="As in the paper",
        description="The defaults: sixteen actor-learners that explore for four million frames, for 10 "
        "million agent steps.",
        observation="pixels",
        families=("atari",),
        stop={"agent_steps": 10_000_000},
    ),
)


def _algorithm(algorithm: str, title: str, summary: str) -> Algorithm:
    return Algorithm(
        id=algorithm,
        title=title,
        summary=summary,
        paper=PAPER,
        config=AsyncQConfig,
        observations=("pixels", "vector"),
        reproducibility="none",
        action_values=True,
        devices=("cpu",),
        presets=_PRESETS,
        vector_defaults=_VECTOR_DEFAULTS,
    )


N_STEP_Q = _algorithm(
    "n_step_q", "n-step Q", "Asynchronous Q-learning with n-step returns of up to t_max rewards."
)
ONE_STEP_Q = _algorithm("one_step_q", "One-step Q", "Asynchronous Q-learning with one-step targets.")
ONE_STEP_SARSA = _algorithm("one_step_sarsa", "One-step Sarsa", "Asynchronous Sarsa with one-step targets.")
