"""Arms and sentences that the experiments of Babaeizadeh et al. 2017 share."""

from backend.experiments.definitions.base import (
    arm,
    games,
)
from backend.experiments.specs.study import Arm

GAMES_5 = games("Boxing", "Breakout", "MsPacman", "Pong", "Qbert")
GAMES_9 = games(
    "Amidar", "Boxing", "Centipede", "MsPacman", "NameThisGame", "Pong", "Qbert", "Seaquest", "UpNDown"
)
FIXED = {"adjustment_interval_s": 0.0, "evaluation_episodes": 0}
SMALL_PIXELS = "Catch, from pixels, instead of Atari games"
CPU = "On CPUs instead of a GPU"
RECIPE = "RMSProp with ε 1e-10, value weight 0.5, training batches of 40"


def sized(counts: tuple[tuple[int, int, int], ...], preset: str | None, **more: object) -> tuple[Arm, ...]:
    """GA3C with fixed numbers of agents, predictors and trainers."""
    return tuple(
        arm(
            f"{n_a}/{n_p}/{n_t}", "ga3c", preset,
            n_actors=n_a, n_predictors=n_p, n_trainers=n_t, **(FIXED | more),
        )
        for n_a, n_p, n_t in counts
    )  # fmt: skip
