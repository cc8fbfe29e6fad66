"""Figures of Babaeizadeh et al. 2017."""

from backend.drawing.catalogue import FRAMES
from backend.experiments.definitions.base import (
    CENTRED,
    INITIAL_WEIGHTS,
    NO_FIGURE,
    SIDE_BY_SIDE,
    AtScale,
    Definition,
    Item,
    arm,
    games,
)
from backend.experiments.definitions.ga3c.arms import CPU, GAMES_5, RECIPE, SMALL_PIXELS, sized
from backend.experiments.specs.study import Arm, Draws, ReductionRule, StudyFigure

_SMALL_GRID = tuple((n_a, n_p, n_t) for n_a in (4, 8, 16) for n_p in (1, 2) for n_t in (1, 2))
_PAPER_GRID = tuple(
    (n_a, n_p, n_t) for n_a in (16, 32, 64, 128) for n_p in (1, 2, 4, 8, 16) for n_t in (1, 2, 4, 8, 16)
)


def _lagging(epsilons: tuple[float, ...]) -> tuple[Arm, ...]:
    """GA3C with 16 agents, whose policy lags more with training batches of one rollout than of 40 steps."""
    return tuple(
        arm(f"ε {eps:g}, batch {batch}", "ga3c", None, log_eps=eps, min_training_batch=batch, n_actors=16)
        for batch in (1, 40)
        for eps in epsilons
    )


_TOP_THREE = ReductionRule(rule="top", k=3, metric="speed/updates_per_s")
_ADJUSTMENT = StudyFigure(
    id="adjustment",
    title="Numbers of processes and the training rate",
    kind="counts",
    metrics=("ga3c/n_actors", "ga3c/n_predictors", "ga3c/n_trainers", "speed/updates_per_s"),
)
FIGURE_2 = Definition(
    id="ga3c-figure-2",
    items=(
        Item(
            id="ga3c-figure-2",
            label="Figure 2",
            title="Automatic adjustment of agents, predictors and trainers",
            claim="From one of each, the adjustment finds the numbers with the highest training rate.",
            paper_shows="For Boxing and Pong on one system: the three numbers climb from 1 to two different "
            "optima while the trainings per second rise.",
            figure=_ADJUSTMENT,
        ),
    ),
    scales={
        "minutes": AtScale(
            minutes=4.1,
            arms=(
                arm(
                    "GA3C", "ga3c", None,
                    n_actors=1, n_predictors=1, n_trainers=1, adjustment_interval_s=4.0,
                    evaluation_episodes=0,
                ),
            ),
            environments=("Catch-v0",),
            draws=Draws(n=1),
            stop={"wall_time_s": 240.0},
            concurrency=1,
            differs=(SMALL_PIXELS, "A change every 4 seconds instead of every minute, for 4 minutes", CPU),
        ),
        "hours": AtScale(
            arms=(
                arm(
                    "GA3C", "ga3c", "two-cpu-cores",
                    n_actors=1, agents_per_process=1, n_predictors=1, n_trainers=1,
                    adjustment_interval_s=30.0, evaluation_episodes=0,
                ),
            ),
            environments=games("Pong"),
            draws=Draws(n=1),
            stop={"wall_time_s": 5_400.0, "agent_steps": 10_000_000},
            concurrency=1,
            differs=("One game", "A change every 30 seconds instead of every minute, for 90 minutes", CPU),
        ),
        "paper": AtScale(
            arms=(arm("GA3C", "ga3c", "paper", n_actors=1, n_predictors=1, n_trainers=1),),
            environments=games("Boxing", "Pong"),
            draws=Draws(n=1),
            stop={"wall_time_s": 4 * 3_600.0},
            differs=(
                "The figure draws the first game",
                "4 hours a run; the text does not state how long it adjusted",
                SIDE_BY_SIDE,
            ),
        ),
    },
)  # fmt: skip

FIGURES_3_4 = Definition(
    id="ga3c-figures-3-4",
    items=(
        Item(
            id="ga3c-figure-3",
            label="Figure 3",
            title="Training rate by agents, predictors and trainers",
            claim="The numbers of agents, predictors and trainers have to be in balance.",
            paper_shows="The trainings per second of the top three pairs of predictors and trainers for each "
            "number of agents, normalised by the best: a 14 % drop between the best and the worst of them.",
            figure=StudyFigure(
                id="tps", title="Updates a second by agents/predictors/trainers", kind="bars",
                metrics=("speed/updates_per_s",), setting="config.n_actors", reduction=_TOP_THREE,
            ),
        ),
        Item(
            id="ga3c-figure-4",
            label="Figure 4",
            title="Training queue and prediction batches",
            claim="Too many agents fill the training queue; larger prediction batches use the GPU better.",
            paper_shows="The mean size of the training queue and of prediction batches of the top three "
            "configurations: both grow with the number of agents.",
            figure=StudyFigure(
                id="queues", title="Training queue and prediction batch", kind="bars",
                metrics=("ga3c/training_queue", "ga3c/prediction_batch"), setting="config.n_actors",
                reduction=_TOP_THREE,
            ),
        ),
    ),
    scales={
        "minutes": AtScale(
            minutes=4.2,
            arms=sized(_SMALL_GRID, None),
            environments=("Catch-v0",),
            draws=Draws(n=1),
            stop={"wall_time_s": 15.0},
            concurrency=1,
            differs=(
                SMALL_PIXELS,
                "The top three of 4 configurations of each number of agents instead of 25",
                "15 seconds a run",
                CPU,
            ),
        ),
        "hours": AtScale(
            arms=sized(_SMALL_GRID, "two-cpu-cores", agents_per_process=1),
            environments=games("Pong"),
            draws=Draws(n=1),
            stop={"wall_time_s": 240.0, "agent_steps": 10_000_000},
            concurrency=1,
            differs=(
                "The top three of 4 configurations of each number of agents instead of 25", "4 minutes a run",
                CPU,
            ),
        ),
        "paper": AtScale(
            arms=sized(_PAPER_GRID, "paper"),
            environments=games("Pong"),
            draws=Draws(n=1),
            stop={"wall_time_s": 960.0},
            differs=(
                "Rates are not normalised by the best, and larger networks are left out: Table 2 has them",
                "16 minutes a run, as in Figure 3; the text of Figure 4 states no time",
                SIDE_BY_SIDE,
            ),
        ),
    },
)  # fmt: skip

_SPEED = StudyFigure(id="speed", title="Score against training time", kind="curves", x="hours")
FIGURE_5 = Definition(
    id="ga3c-figure-5",
    items=(
        Item(
            id="ga3c-figure-5",
            label="Figure 5",
            title="Prediction rate and convergence",
            claim="Configurations that play more frames converge faster.",
            paper_shows="Four settings from one initial network over three hours: those that played more "
            "frames rise earlier; the adjusted one catches up with the best from 1/1/1.",
            figure=_SPEED,
            more=(
                StudyFigure(
                    id="rates", title="Frames played, predictions a second", kind="table",
                    metrics=(FRAMES, "speed/predictions_per_s", "speed/updates_per_s"),
                ),
                _ADJUSTMENT.model_copy(update={"arms": ("adjusted",)}),
            ),
        ),
    ),
    scales={
        "minutes": AtScale(
            minutes=6.8,
            arms=(
                *sized(((2, 1, 1), (8, 1, 1), (16, 2, 2)), None),
                arm(
                    "adjusted", "ga3c", None,
                    n_actors=1, n_predictors=1, n_trainers=1, adjustment_interval_s=3.0,
                    evaluation_episodes=0,
                ),
            ),
            environments=("CartPole-v1",),
            draws=Draws(n=2),
            stop={"wall_time_s": 45.0},
            concurrency=1,
            differs=("CartPole instead of Atari games", "45 seconds instead of 3 hours", CPU),
        ),
        "hours": AtScale(
            arms=(
                *sized(
                    ((2, 1, 1), (8, 1, 1), (16, 2, 2)), "full-frame-centred",
                    agents_per_process=1, learning_rate_schedule="constant",
                ),
                arm(
                    "adjusted", "ga3c", "full-frame-centred",
                    n_actors=1, agents_per_process=1, n_predictors=1, n_trainers=1,
                    adjustment_interval_s=30.0, learning_rate_schedule="constant", evaluation_episodes=0,
                ),
            ),
            environments=games("Pong"),
            draws=Draws(n=1),
            stop={"wall_time_s": 1_400.0, "agent_steps": 5_000_000},
            concurrency=1,
            differs=(
                "One game", "23 minutes instead of 3 hours, a change every 30 seconds", RECIPE, CPU,
                CENTRED,
            ),
        ),
        "paper": AtScale(
            arms=(
                *sized(((1, 1, 1), (16, 1, 1), (128, 2, 2)), "paper"),
                arm("adjusted", "ga3c", "paper", n_actors=1, n_predictors=1, n_trainers=1),
            ),
            environments=games("Boxing", "Pong"),
            draws=Draws(n=1),
            stop={"wall_time_s": 3 * 3_600.0},
            differs=(
                "The text does not name the games of this figure: Boxing and Pong, as in Figure 2",
                INITIAL_WEIGHTS,
                SIDE_BY_SIDE,
            ),
        ),
    },
)  # fmt: skip

FIGURE_6 = Definition(
    id="ga3c-figure-6",
    items=(
        Item(
            id="ga3c-figure-6",
            label="Figure 6",
            title="Training curves with two learning rates",
            claim="GA3C trains stably on five games with two learning rates.",
            paper_shows="Three runs of each of two learning rates on five games against hours: both learn on "
            "every game, and runs of one rate lie close together.",
            figure=_SPEED.model_copy(update={"id": "curves"}),
        ),
    ),
    scales={
        "minutes": AtScale(
            minutes=1.7,
            arms=tuple(arm(f"rate {rate:g}", "ga3c", None, learning_rate=rate) for rate in (0.001, 0.003)),
            environments=("CartPole-v1",),
            draws=Draws(n=3),
            stop={"agent_steps": 80_000},
            concurrency=1,
            differs=(
                "CartPole instead of five games",
                "Other learning rates; 80,000 agent steps a run",
                CPU,
            ),
        ),
        "hours": AtScale(
            arms=tuple(
                arm(
                    f"rate {rate:g}",
                    "ga3c",
                    "full-frame-centred",
                    learning_rate=rate,
                    learning_rate_schedule="constant",
                    evaluation_episodes=0,
                )
                for rate in (0.0003, 0.0001)
            ),
            environments=games("Breakout", "Pong"),
            draws=Draws(n=1),
            stop={"wall_time_s": 1_400.0, "agent_steps": 5_000_000},
            concurrency=1,
            differs=("Two games, one run of each", "23 minutes a run", RECIPE, CPU, CENTRED),
        ),
        "paper": AtScale(
            arms=tuple(
                arm(f"rate {rate:g}", "ga3c", "paper", learning_rate=rate) for rate in (0.0003, 0.0001)
            ),
            environments=GAMES_5,
            draws=Draws(n=3),
            stop={"wall_time_s": 86_400.0},
            differs=(
                "The text names three of the five games: Breakout, Pong and Q*bert",
                "One day a run; the text does not state how long it trained",
                "Means of three runs instead of each run's curve",
                INITIAL_WEIGHTS,
                SIDE_BY_SIDE,
            ),
        ),
    },
)

FIGURE_7 = Definition(
    id="ga3c-figure-7",
    items=(
        Item(
            id="ga3c-figure-7",
            label="Figure 7",
            title="Minimum training batch",
            claim="Up to a batch of 20 to 40, larger training batches stabilise learning.",
            paper_shows="Curves for several minimum batches: without a minimum some games collapse, with 20 "
            "to 40 they converge faster. Pong hardly suffers.",
            figure=_SPEED.model_copy(update={"id": "batches"}),
        ),
    ),
    scales={
        "minutes": AtScale(
            minutes=5.6,
            arms=tuple(
                arm(f"batch {n}", "ga3c", None, min_training_batch=n, evaluation_episodes=0)
                for n in (1, 5, 20, 40)
            ),
            environments=("CartPole-v1",),
            draws=Draws(n=3),
            stop={"agent_steps": 100_000},
            concurrency=1,
            differs=("CartPole instead of Atari games; 100,000 agent steps a run", CPU),
        ),
        "hours": AtScale(
            arms=tuple(
                arm(
                    f"batch {n}",
                    "ga3c",
                    "full-frame-centred",
                    min_training_batch=n,
                    learning_rate_schedule="constant",
                    evaluation_episodes=0,
                )
                for n in (1, 5, 20, 40)
            ),
            environments=games("Pong"),
            draws=Draws(n=1),
            stop={"wall_time_s": 720, "agent_steps": 5_000_000},
            concurrency=1,
            differs=("One game", "12 minutes a run, at a constant rate", CPU, CENTRED),
        ),
        "paper": AtScale(
            arms=tuple(
                arm(f"batch {n}", "ga3c", "paper", min_training_batch=n) for n in (1, 5, 10, 20, 40, 80)
            ),
            environments=GAMES_5,
            draws=Draws(n=1),
            stop={"wall_time_s": 86_400.0},
            differs=(
                "The paper does not state its training time here: one day",
                "Nor does its text name the games, or the batches but for 1, 20 and 40: the rest are ours",
                INITIAL_WEIGHTS,
                SIDE_BY_SIDE,
            ),
        ),
    },
)

LAG = Definition(
    id="ga3c-lag",
    items=(
        Item(
            id="ga3c-lag",
            label="Section 4.4",
            title="Epsilon of the logarithm, and lag",
            claim="A small term in the logarithm, and little lag of the policy, keep training stable.",
            paper_shows="The text alone says so: where the policy lags, the logarithm of a probability that "
            "has become 0 makes the gradient explode, and a small ε prevents it without clipped gradients.",
            figure=StudyFigure(
                id="by-epsilon", title="Score by ε", kind="scatter", setting="config.log_eps", log=True,
                reduction=ReductionRule(source="evaluations"),
            ),
            more=(
                StudyFigure(
                    id="scores", title="Scores", kind="table", reduction=ReductionRule(source="evaluations")
                ),
                StudyFigure(
                    id="lag", title="Lag of the policy", kind="table",
                    metrics=("ga3c/policy_lag", "ga3c/policy_lag_max", "speed/updates_per_s"),
                ),
            ),
            needs=NO_FIGURE,
            extra=True,
        ),
    ),
    scales={
        "minutes": AtScale(
            arms=_lagging((1e-12, 1e-2)),
            environments=("CartPole-v1",),
            draws=Draws(n=2),
            stop={"agent_steps": 40_000},
            concurrency=1,
            differs=(NO_FIGURE, "CartPole instead of Atari games; 40,000 agent steps a run", CPU),
        ),
        "hours": AtScale(
            arms=_lagging((1e-12, 1e-6, 1e-2)),
            environments=("CartPole-v1",),
            draws=Draws(n=10),
            stop={"agent_steps": 100_000, "wall_time_s": 50.0},
            concurrency=1,
            differs=(
                NO_FIGURE,
                "CartPole instead of Atari games; at most 100,000 agent steps and 50 seconds a run",
                CPU,
            ),
        ),
    },
)  # fmt: skip
