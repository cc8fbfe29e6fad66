"""Asynchronous value methods: one-step Q-learning, one-step Sarsa, n-step Q (Mnih et al. 2016)."""

from backend.specs.algorithms.asynchronous import (
    ASYNCHRONOUS_SOURCES,
    PAPER,
    SMALL_PIXELS,
    AsynchronousConfig,
)
from backend.specs.algorithms.base import Algorithm, Preset
from backend.specs.algorithms.common import LUMINANCE_THEN, PAPER_FRAMES, network_setting
from backend.specs.algorithms.memory import Network
from backend.specs.algorithms.value import VALUE_PANELS, VALUE_SOURCES, ValueConfig


class AsyncQConfig(ValueConfig, AsynchronousConfig):
    """Settings of the asynchronous value methods."""

    network: Network = network_setting("nips")


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


def _presets(two_cores: str, paper: str) -> tuple[Preset, ...]:
    """The presets of a method, with what those for Atari reached."""
    return (
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
            measured="Catch, plain, standardised, at 60,000 agent steps, three seeds: n-step Q 0.87, 0.93, "
            "0.93; one-step Q 0.40, 0.33, 1.00; Sarsa 0.93, 0.27, 0.73. Random play −0.60.",
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
            measured=two_cores,
        ),
        Preset(
            id="paper",
            title="As in the paper",
            description="The paper's constants: sixteen actor-learners that explore for four million frames, "
            "for 10 million agent steps.",
            observation="pixels",
            families=("atari",),
            environment_config=PAPER_FRAMES,
            stop={"agent_steps": 10_000_000},
            measured=f"{LUMINANCE_THEN} {paper}",
        ),
    )


def _algorithm(algorithm: str, title: str, summary: str, presets: tuple[Preset, ...]) -> Algorithm:
    return Algorithm(
        id=algorithm,
        title=title,
        summary=summary,
        paper=PAPER,
        config=AsyncQConfig,
        sources=ASYNCHRONOUS_SOURCES | VALUE_SOURCES,
        observations=("pixels", "vector"),
        reproducibility="none",
        action_values=True,
        panels=VALUE_PANELS,
        devices=("cpu",),
        presets=presets,
        vector_defaults=_VECTOR_DEFAULTS,
    )


N_STEP_Q = _algorithm(
    "n_step_q",
    "n-step Q",
    "Asynchronous Q-learning with n-step returns of up to t_max rewards.",
    _presets(
        "Breakout, noop_starts, full frame, not standardised, one seed: 1.9 at 250,000 agent steps, 1.6 at "
        "500,000, 3.1 at 560,000, not run longer. Random play 1.7. Boxing, noop_starts, full frame, not "
        "standardised, one seed: −21.2 at 250,000 agent steps, −2.3 at 500,000. Random play 0.1.",
        "Breakout, noop_starts, full frame, not standardised, one seed: 3.9 at 250,000 agent steps, 1.4 at "
        "500,000. Random play 1.7.",
    ),
)
ONE_STEP_Q = _algorithm(
    "one_step_q",
    "One-step Q",
    "Asynchronous Q-learning with one-step targets.",
    _presets(
        "Assault, noop_starts, full frame, not standardised, one seed: 379 at 250,000 agent steps, best 479 "
        "at 500,000, 231 at 750,000, last 326 at 970,000, not run longer. Random play 222 (5 minutes).",
        "Assault, noop_starts, full frame, not standardised, one seed: best 383 at 200,000 agent steps, 216 "
        "at 400,000, last 79 at 500,000. Random play 222 (5 minutes).",
    ),
)
ONE_STEP_SARSA = _algorithm(
    "one_step_sarsa",
    "One-step Sarsa",
    "Asynchronous Sarsa with one-step targets.",
    _presets(
        "Assault, noop_starts, full frame, not standardised, one seed: 171 at 250,000 agent steps, best 338 "
        "at 500,000, 231 at 750,000, last 333 at 890,000, not run longer. Random play 222 (5 minutes).",
        "Assault, noop_starts, full frame, not standardised, one seed: best 196 at 200,000 agent steps, 55 "
        "at 400,000, last 61 at 510,000. Random play 222 (5 minutes).",
    ),
)
