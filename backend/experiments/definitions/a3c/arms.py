"""Arms and sentences that the experiments of Mnih et al. 2016 share."""

from backend.experiments.definitions.base import (
    arm,
    games,
    rates,
)
from backend.experiments.specs.study import Arm, ReductionRule
from backend.specs.environments import ENVIRONMENTS

GAMES = games("BeamRider", "Breakout", "Pong", "Qbert", "SpaceInvaders")
GAMES_7 = games("BeamRider", "Breakout", "Enduro", "Pong", "Qbert", "Seaquest", "SpaceInvaders")
GAMES_57 = tuple(
    name
    for name, environment in ENVIRONMENTS.items()
    if any((score.label, score.protocol) == ("human", "noop_starts") for score in environment.published)
)
VALUE_METHODS = (
    ("1-step Q", "one_step_q"),
    ("1-step Sarsa", "one_step_sarsa"),
    ("n-step Q", "n_step_q"),
)
METHODS = (*VALUE_METHODS, ("A3C", "a3c"))
SMALL_STOP = {"agent_steps": 20_000}
PAPER_STOP = {"agent_steps": 80_000_000}
UNSTATED = "The paper does not state how long these runs trained: 320 million frames are assumed"
SMALL_SETTINGS = (
    "A small network without convolutions, and the settings for vector observations, such as a constant "
    "learning rate, RMSProp epsilon 0.001 and A3C's value weight 0.5"
)
SMALL = ("CartPole instead of five Atari games", SMALL_SETTINGS)
SMALL_RUNS = "2 actor-learners; 20,000 agent steps a run"
FINAL = ReductionRule(source="evaluations")
SMALL_RATES = rates(1e-3, 1e-2)
"""Learning rates with which the methods learn CartPole within the few agent steps of `SMALL_STOP`."""


def methods(preset: str | None = None) -> tuple[Arm, ...]:
    """The four asynchronous methods."""
    return tuple(arm(label, algorithm, preset) for label, algorithm in METHODS)


def threads(counts: tuple[int, ...], preset: str | None = None, **config: object) -> tuple[Arm, ...]:
    """The four methods with several numbers of actor-learners, the fewest of each method first."""
    return tuple(
        arm(f"{label}, {n}", algorithm, preset, n_actors=n, **config)
        for label, algorithm in METHODS
        for n in counts
    )


def value_methods(preset: str, **config: object) -> tuple[Arm, ...]:
    """The three value-based methods."""
    return tuple(arm(label, algorithm, preset, **config) for label, algorithm in VALUE_METHODS)


def on_two_cores(counts: tuple[int, ...]) -> tuple[Arm, ...]:
    """The four methods with several numbers of actor-learners, by presets that learn soon on two cores."""
    return tuple(
        arm(
            f"{label}, {n}", algorithm, "full-frame-centred" if algorithm == "a3c" else "two-cpu-cores",
            n_actors=n, evaluation_episodes=0,
        )
        for label, algorithm in METHODS
        for n in counts
    )  # fmt: skip


def labels_of(counts: tuple[int, ...], *methods_shown: str) -> tuple[str, ...]:
    """Labels of these methods' arms with each number of actor-learners."""
    return tuple(f"{label}, {n}" for label in methods_shown for n in counts)


FEW, MANY = (1, 2, 4), (1, 2, 4, 8, 16)
BEST_RATES = ReductionRule(rule="mean_of_best", k=3, of="settings")
