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
        title="a small task, two CPU cores",
        description="Two actor-learners and a small network, exploring for 20,000 frames: minutes.",
        observation="pixels",
        families=("small",),
        config=SMALL_PIXELS
        | {"learning_rate": 0.0003, "target_update_frames": 1_000, "exploration_anneal_frames": 20_000},
        stop={"agent_steps": 100_000},
    ),
    Preset(
        id="two-cpu-cores",
        title="two CPU cores",
        description="The paper's agent with four actor-learners, exploring for one million frames.",
        observation="pixels",
        config={
            "n_actors": 4,
            "exploration_anneal_frames": 1_000_000,
            "evaluation_interval_agent_steps": 500_000,
        },
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
        action_values=True,
        devices=("cpu",),
        presets=_PRESETS,
        vector_defaults=_VECTOR_DEFAULTS,
    )


N_STEP_Q = _algorithm(
    "n_step_q", "n-step Q", "Asynchronous Q-learning towards returns over up to t_max rewards."
)
ONE_STEP_Q = _algorithm(
    "one_step_q", "One-step Q", "Asynchronous Q-learning towards one reward and the best next action."
)
ONE_STEP_SARSA = _algorithm(
    "one_step_sarsa", "One-step Sarsa", "Asynchronous learning towards one reward and the action taken next."
)
