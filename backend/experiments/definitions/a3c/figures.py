"""Figures of Mnih et al. 2016."""

from typing import Literal

from backend.experiments.definitions.a3c.arms import (
    BEST_RATES,
    FEW,
    FINAL,
    GAMES,
    MANY,
    METHODS,
    PAPER_STOP,
    SMALL,
    SMALL_RATES,
    SMALL_RUNS,
    SMALL_STOP,
    UNSTATED,
    VALUE_METHODS,
    labels_of,
    methods,
    on_two_cores,
    threads,
)
from backend.experiments.definitions.base import (
    CENTRED,
    INITIAL_WEIGHTS,
    SIDE_BY_SIDE,
    AtScale,
    Definition,
    Item,
    arm,
    games,
    rates,
)
from backend.experiments.specs.study import Draws, ReductionRule, StudyFigure


def by_method(id_: str, title: str, x: Literal["epochs", "hours"]) -> tuple[StudyFigure, ...]:
    """Curves by number of actor-learners: one figure for each of the three methods of Figures 3 and 4."""
    return tuple(
        StudyFigure(
            id=f"{id_}-{algorithm.replace('_', '-')}", title=f"{title}, {label}", kind="curves", x=x,
            reduction=BEST_RATES, arms=labels_of(MANY, label), setting="config.learning_rate",
        )
        for label, algorithm in METHODS
        if algorithm != "one_step_sarsa"
    )  # fmt: skip


_DATA = by_method("data", "Score against data", "epochs")
_TIME = by_method("time", "Score against training time", "hours")

FIGURE_1 = Definition(
    id="a3c-figure-1",
    items=(
        Item(
            id="a3c-figure-1",
            label="Figure 1",
            title="Learning speed of DQN and four asynchronous methods",
            claim="The asynchronous methods on 16 CPU cores learn faster than DQN on a GPU, A3C fastest.",
            paper_shows="On five games the asynchronous methods tend to learn faster than DQN, on some "
            "n-step methods faster than one-step methods, and A3C ends far above the value-based methods.",
            figure=StudyFigure(
                id="speed",
                title="Score against training time",
                kind="curves",
                x="hours",
                reduction=ReductionRule(rule="mean_of_best", k=5),
            ),
        ),
    ),
    scales={
        "minutes": AtScale(
            minutes=4.4,
            arms=(arm("DQN", "dqn"), *methods()),
            environments=("CartPole-v1",),
            draws=Draws(n=8, space=SMALL_RATES),
            stop=SMALL_STOP,
            concurrency=1,
            differs=(
                *SMALL,
                SMALL_RUNS,
                "8 learning rates from 0.001 instead of 50, which DQN has too instead of seeds",
            ),
        ),
        "hours": AtScale(
            arms=(
                arm("DQN", "dqn", "quarter-hour", evaluation_episodes=0),
                *(
                    arm(label, algorithm, "two-cpu-cores", evaluation_episodes=0)
                    for label, algorithm in VALUE_METHODS
                ),
                arm("A3C", "a3c", "full-frame-centred", evaluation_episodes=0),
            ),
            environments=games("Assault"),
            draws=Draws(n=2, space=rates()),
            stop={"wall_time_s": 570, "agent_steps": 2_000_000},
            concurrency=1,
            differs=(
                "One game, which none of the five is",
                "2 learning rates, which DQN has too",
                "4 actor-learners, 10 minutes a run",
                CENTRED,
            ),
        ),
        "paper": AtScale(
            arms=(arm("DQN", "dqn", "paper"), *methods("paper")),
            environments=GAMES,
            draws=Draws(n=50, space=rates()),
            stop=PAPER_STOP,
            differs=(
                "DQN has the 50 learning rates too instead of 5 seeds and a fixed rate",
                UNSTATED,
                INITIAL_WEIGHTS,
                SIDE_BY_SIDE,
            ),
        ),
    },
)

FIGURE_2 = Definition(
    id="a3c-figure-2",
    items=(
        Item(
            id="a3c-figure-2",
            label="Figure 2",
            title="Learning rates and initial weights",
            claim="A wide range of learning rates gives good scores from any random initial weights.",
            paper_shows="On each of five games a plateau of good scores over about one decade of learning "
            "rates, and virtually no score of 0 on that plateau: A3C does not collapse or diverge.",
            figure=StudyFigure(
                id="scores-by-rate",
                title="Score by learning rate",
                kind="scatter",
                setting="config.learning_rate",
                log=True,
                reduction=FINAL,
            ),
        ),
    ),
    scales={
        "minutes": AtScale(
            minutes=4.9,
            arms=(arm("A3C", "a3c"),),
            environments=("CartPole-v1",),
            draws=Draws(n=24, space=rates()),
            stop={"agent_steps": 40_000},
            differs=(*SMALL, "2 actor-learners; 40,000 agent steps a run", "24 learning rates instead of 50"),
        ),
        "hours": AtScale(
            arms=(
                arm(
                    "A3C",
                    "a3c",
                    "full-frame-centred",
                    learning_rate_schedule="constant",
                    evaluation_episodes=0,
                ),
            ),
            environments=games("Pong"),
            draws=Draws(n=8, space=rates()),
            stop={"wall_time_s": 700, "agent_steps": 2_000_000},
            concurrency=1,
            differs=(
                "One game instead of five",
                "8 learning rates instead of 50",
                "4 actor-learners, at most 12 minutes a run, at a constant rate",
                CENTRED,
            ),
        ),
        "paper": AtScale(
            arms=(arm("A3C", "a3c", "paper"),),
            environments=GAMES,
            draws=Draws(n=50, space=rates()),
            stop=PAPER_STOP,
            differs=(UNSTATED, INITIAL_WEIGHTS),
        ),
    },
)

FIGURES_3_4 = Definition(
    id="a3c-figures-3-4",
    items=(
        Item(
            id="a3c-figure-3",
            label="Figure 3",
            title="Data efficiency by number of actor-learners",
            claim="One-step methods need less data for a score with more parallel actor-learners.",
            paper_shows="Against epochs of 4 million frames, one-step Q-learning rises earlier with more "
            "threads; the curves of n-step Q and A3C lie close together.",
            figure=_DATA[0],
            more=_DATA[1:],
        ),
        Item(
            id="a3c-figure-4",
            label="Figure 4",
            title="Training speed by number of actor-learners",
            claim="All methods train faster with more parallel actor-learners.",
            paper_shows="Against hours, every method's curves rise earlier with more threads.",
            figure=_TIME[0],
            more=_TIME[1:],
        ),
        Item(
            id="a3c-figure-s5",
            label="Figure S5",
            title="Data efficiency of one-step Sarsa",
            claim="One-step Sarsa, too, needs less data with more actor-learners.",
            paper_shows="As in Figure 3: Sarsa's curves rise earlier with more threads.",
            figure=StudyFigure(
                id="data-sarsa", title="Score against data, Sarsa", kind="curves", x="epochs",
                reduction=BEST_RATES, arms=labels_of(MANY, "1-step Sarsa"), setting="config.learning_rate",
            ),
        ),
        Item(
            id="a3c-figure-s6",
            label="Figure S6",
            title="Training speed of one-step Sarsa",
            claim="One-step Sarsa trains faster with more actor-learners.",
            paper_shows="As in Figure 4: Sarsa's curves rise earlier with more threads.",
            figure=StudyFigure(
                id="time-sarsa", title="Score against training time, Sarsa", kind="curves", x="hours",
                reduction=BEST_RATES, arms=labels_of(MANY, "1-step Sarsa"), setting="config.learning_rate",
            ),
        ),
    ),
    scales={
        "minutes": AtScale(
            minutes=7.6,
            arms=threads(FEW),
            environments=("CartPole-v1",),
            draws=Draws(n=4, space=SMALL_RATES),
            stop=SMALL_STOP,
            concurrency=1,
            differs=(
                *SMALL,
                "4 learning rates from 0.001 instead of 50",
                "1, 2 and 4 actor-learners instead of 1 to 16; 20,000 agent steps a run",
            ),
        ),
        "hours": AtScale(
            arms=on_two_cores((1, 2, 4)),
            environments=games("Pong"),
            draws=Draws(n=1),
            stop={"wall_time_s": 480, "agent_steps": 2_000_000},
            concurrency=1,
            differs=(
                "One game, one run of each instead of the best of 50 learning rates",
                "1, 2 and 4 actor-learners instead of 1 to 16, 8 minutes a run",
                "Value-based methods explore over 1 million frames, A3C's value weight is 0.5",
                "A3C alone has observations centred by the mean image of random play",
            ),
        ),
        "paper": AtScale(
            arms=threads(MANY, "paper"),
            environments=GAMES,
            draws=Draws(n=50, space=rates()),
            stop=PAPER_STOP,
            differs=(
                "The paper does not state of how many learning rates the three are the best: 50",
                UNSTATED,
                INITIAL_WEIGHTS,
                SIDE_BY_SIDE,
            ),
        ),
    },
)  # fmt: skip
