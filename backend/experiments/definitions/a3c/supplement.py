"""Figures of the supplement of Mnih et al. 2016."""

from backend.experiments.definitions.a3c.arms import (
    FINAL,
    GAMES,
    PAPER_STOP,
    SMALL,
    SMALL_RUNS,
    SMALL_SETTINGS,
    SMALL_STOP,
    UNSTATED,
    VALUE_METHODS,
    value_methods,
)
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
    rates,
)
from backend.experiments.specs.study import Draws, StudyFigure

RACING = ("Racing-Slow-v0", "Racing-Fast-v0", "Racing-Slow-Opponents-v0", "Racing-Fast-Opponents-v0")
_RACING_DIFFERS = (
    "gymnasium's car from above; the opponents are ours, simple and scripted",
    "Scores without those of a human tester",
)
FIGURE_S2 = Definition(
    id="a3c-figure-s2",
    items=(
        Item(
            id="a3c-figure-s2",
            label="Figure S2",
            title="Car racing in TORCS",
            claim="A3C learns to drive from pixels, with slow and fast cars, best of all methods.",
            paper_shows="After 12 hours A3C reaches 75 to 90 % of a human tester's score in four settings; "
            "the value-based methods stay below.",
            figure=StudyFigure(id="racing", title="Score against training time", kind="curves", x="hours"),
            needs="TORCS is another simulator: here a car is seen from above, with simple opponents",
        ),
    ),
    scales={
        "hours": AtScale(
            arms=(arm("A3C", "a3c", "racing", evaluation_episodes=0),),
            environments=RACING,
            draws=Draws(n=1),
            stop={"wall_time_s": 1_400},
            concurrency=1,
            differs=(*_RACING_DIFFERS, "A3C alone, 23 minutes a run, another recipe: a compact LSTM"),
        ),
        "paper": AtScale(
            arms=(
                *(arm(label, algorithm) for label, algorithm in VALUE_METHODS),
                arm("A3C", "a3c", "paper-racing"),
            ),
            environments=RACING,
            draws=Draws(n=5),
            stop={"wall_time_s": 12 * 3_600, "agent_steps": 40_000_000},
            differs=(
                *_RACING_DIFFERS,
                "The text states neither rates nor repetitions: 0.0007 and 5 seeds are ours",
                INITIAL_WEIGHTS,
                SIDE_BY_SIDE,
            ),
        ),
    },
)

FIGURE_S7 = Definition(
    id="a3c-figure-s7",
    items=(
        Item(
            id="a3c-figure-s7",
            label="Figure S7",
            title="Learning rates of the value-based methods",
            claim="One-step Q, one-step Sarsa and n-step Q are robust to the learning rate, too.",
            paper_shows="For each method and game a range of learning rates leads to good scores.",
            figure=StudyFigure(
                id="scores-by-rate", title="Score by learning rate", kind="scatter",
                setting="config.learning_rate", log=True, reduction=FINAL,
            ),
        ),
    ),
    scales={
        "minutes": AtScale(
            minutes=7.0,
            arms=tuple(arm(label, algorithm) for label, algorithm in VALUE_METHODS),
            environments=("CartPole-v1",),
            draws=Draws(n=12, space=rates()),
            stop=SMALL_STOP,
            differs=(*SMALL, SMALL_RUNS, "12 learning rates instead of 50"),
        ),
        "hours": AtScale(
            arms=value_methods("two-cpu-cores", evaluation_episodes=0),
            environments=games("Pong"),
            draws=Draws(n=4, space=rates()),
            stop={"wall_time_s": 480, "agent_steps": 2_000_000},
            concurrency=1,
            differs=(
                "One game",
                "4 learning rates instead of 50",
                "4 actor-learners, 8 minutes a run, exploration over 1 million frames",
            ),
        ),
        "paper": AtScale(
            arms=value_methods("paper"),
            environments=GAMES,
            draws=Draws(n=50, space=rates()),
            stop=PAPER_STOP,
            differs=(UNSTATED, INITIAL_WEIGHTS),
        ),
    },
)  # fmt: skip

_OPTIMIZERS = (
    ("Momentum SGD", "momentum_sgd"), ("RMSProp", "rmsprop"), ("Shared RMSProp", "shared_rmsprop")
)  # fmt: skip
OPTIMIZERS = Definition(
    id="a3c-optimizers",
    items=(
        Item(
            id="a3c-optimizers",
            label="Optimizers",
            title="Three optimizers, sorted scores",
            claim="RMSProp with shared statistics is the most robust of the three optimizers.",
            paper_shows="The sorted scores of 50 runs fall latest with shared RMSProp and earliest with "
            "momentum SGD.",
            figure=StudyFigure(id="sorted", title="Sorted scores", kind="sorted", reduction=FINAL),
            extra=True,
        ),
    ),
    scales={
        "minutes": AtScale(
            arms=tuple(arm(label, "a3c", optimizer=name, n_actors=16) for label, name in _OPTIMIZERS),
            environments=("CartPole-v1",),
            draws=Draws(n=12, space=rates()),
            stop={"agent_steps": 40_000},
            differs=(
                "CartPole instead of four Atari games",
                SMALL_SETTINGS,
                "12 learning rates instead of 50",
                "A3C alone; 40,000 agent steps a run",
            ),
        ),
        "hours": AtScale(
            arms=tuple(
                arm(label, "a3c", "full-frame-centred", optimizer=name, n_actors=16, evaluation_episodes=0)
                for label, name in _OPTIMIZERS
            ),
            environments=games("Pong"),
            draws=Draws(n=4, space=rates()),
            stop={"wall_time_s": 480, "agent_steps": 2_000_000},
            concurrency=1,
            differs=(
                "One game",
                "4 learning rates instead of 50",
                "A3C alone, 8 minutes a run",
                CENTRED,
            ),
        ),
        "paper": AtScale(
            arms=tuple(
                arm(f"{method}, {label}", algorithm, "paper", optimizer=name)
                for method, algorithm in (("n-step Q", "n_step_q"), ("A3C", "a3c"))
                for label, name in _OPTIMIZERS
            ),
            environments=games("Breakout", "BeamRider", "Seaquest", "SpaceInvaders"),
            draws=Draws(n=50, space=rates()),
            stop=PAPER_STOP,
            differs=(UNSTATED, INITIAL_WEIGHTS),
        ),
    },
)

OPTIMIZERS_16 = Definition(
    id="a3c-optimizers-16",
    items=(
        Item(
            id="a3c-optimizers-16",
            label="Section 4",
            title="Three optimizers, 24 learning rates",
            claim="With 16 actor-learners, shared statistics make RMSProp robust to the learning rate.",
            paper_shows="The text states so; Figure S1, whose card is Optimizers, has Atari games instead.",
            figure=StudyFigure(id="sorted-24", title="Sorted scores", kind="sorted", reduction=FINAL),
            more=(
                StudyFigure(
                    id="by-rate", title="Score by learning rate", kind="scatter",
                    setting="config.learning_rate", log=True, reduction=FINAL,
                ),
            ),
            needs=NO_FIGURE,
            extra=True,
        ),
    ),
    scales={
        "minutes": OPTIMIZERS.scales["minutes"],
        "hours": AtScale(
            arms=OPTIMIZERS.scales["minutes"].arms,
            environments=("CartPole-v1",),
            draws=Draws(n=24, space=rates()),
            stop={"agent_steps": 40_000, "wall_time_s": 40.0},
            concurrency=1,
            differs=(
                NO_FIGURE,
                "CartPole instead of four Atari games",
                SMALL_SETTINGS,
                "24 learning rates instead of 50",
                "A3C alone; at most 40,000 agent steps and 40 seconds a run",
            ),
        ),
    },
)  # fmt: skip

CONTINUOUS = Definition(
    id="a3c-continuous",
    items=(
        Item(
            id="a3c-continuous",
            label="Continuous control",
            title="Learning rates in continuous tasks",
            claim="A3C solves continuous tasks from states for a wide range of learning rates.",
            paper_shows="On all physical tasks a range of learning rates gives the best scores.",
            figure=StudyFigure(
                id="scores-by-rate", title="Score by learning rate", kind="scatter",
                setting="config.learning_rate", log=True, reduction=FINAL,
            ),
            more=(StudyFigure(id="speed", title="Score against training time", kind="curves", x="hours"),),
            extra=True,
        ),
    ),
    scales={
        "minutes": AtScale(
            minutes=1.5,
            arms=(arm("A3C", "a3c", "feed-forward"),),
            environments=("InvertedPendulum-v5",),
            draws=Draws(n=8, space=rates(1e-5, 1e-2)),
            stop={"agent_steps": 40_000},
            concurrency=1,
            differs=(
                "One easy task",
                "8 learning rates instead of 50",
                "4 actors without LSTM, shared Adam; 40,000 agent steps a run",
            ),
        ),
        "hours": AtScale(
            arms=(arm("A3C", "a3c", "feed-forward", evaluation_episodes=0),),
            environments=("HalfCheetah-v5",),
            draws=Draws(n=8, space=rates(1e-5, 1e-2)),
            stop={"wall_time_s": 720, "agent_steps": 2_000_000},
            concurrency=1,
            differs=(
                "One of gymnasium's tasks instead of the paper's",
                "8 learning rates instead of 50, each constant",
                "4 actors without LSTM, shared Adam, 12 minutes a run",
            ),
        ),
        "paper": AtScale(
            arms=(arm("A3C", "a3c"),),
            environments=("HalfCheetah-v5", "Hopper-v5", "Walker2d-v5", "Reacher-v5", "Swimmer-v5"),
            draws=Draws(n=50, space=rates(1e-5, 1e-2)),
            stop={"wall_time_s": 86_400, "agent_steps": 50_000_000},
            differs=(
                "gymnasium's tasks instead of the paper's",
                "Learning rates from 1e-5 to 1e-2",
                "One day and 50 learning rates a task: the text states that most took a few hours",
                INITIAL_WEIGHTS,
                SIDE_BY_SIDE,
            ),
        ),
    },
)  # fmt: skip
