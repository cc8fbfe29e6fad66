"""Mnih et al. 2016: asynchronous methods for deep reinforcement learning."""

from typing import Any, Literal

from backend.experiments.definitions.base import (
    CENTRED,
    HUMAN_STARTS,
    INITIAL_WEIGHTS,
    NOOP_STARTS,
    SIDE_BY_SIDE,
    STANDARD_RESETS,
    AtScale,
    Definition,
    Item,
    Paper,
    PublishedTable,
    arm,
    games,
    rates,
)
from backend.experiments.specs.study import Arm, Draws, ReductionRule, StudyFigure
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
_SMALL_SETTINGS = (
    "A small network without convolutions, and the settings for vector observations, such as a constant "
    "learning rate, RMSProp epsilon 0.001 and A3C's value weight 0.5"
)
SMALL = ("CartPole instead of five Atari games", _SMALL_SETTINGS)
_SMALL_RUNS = "2 actor-learners; 20,000 agent steps a run"
_FINAL = ReductionRule(source="evaluations")
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


_FEW, _MANY = (1, 2, 4), (1, 2, 4, 8, 16)
_BEST_RATES = ReductionRule(rule="mean_of_best", k=3, of="settings")


def by_method(id_: str, title: str, x: Literal["epochs", "hours"]) -> tuple[StudyFigure, ...]:
    """Curves by number of actor-learners: one figure for each of the three methods of Figures 3 and 4."""
    return tuple(
        StudyFigure(
            id=f"{id_}-{algorithm.replace('_', '-')}", title=f"{title}, {label}", kind="curves", x=x,
            reduction=_BEST_RATES, arms=labels_of(_MANY, label), setting="config.learning_rate",
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
                _SMALL_RUNS,
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
                reduction=_FINAL,
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
                reduction=_BEST_RATES, arms=labels_of(_MANY, "1-step Sarsa"), setting="config.learning_rate",
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
                reduction=_BEST_RATES, arms=labels_of(_MANY, "1-step Sarsa"), setting="config.learning_rate",
            ),
        ),
    ),
    scales={
        "minutes": AtScale(
            minutes=7.6,
            arms=threads(_FEW),
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
            arms=threads(_MANY, "paper"),
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

TABLE_2 = Definition(
    id="a3c-table-2",
    items=(
        Item(
            id="a3c-table-2",
            label="Table 2",
            title="Speed-up by number of actor-learners",
            claim="16 threads bring at least an order of magnitude, and one-step methods more than linear.",
            published=PublishedTable(
                ("Method", "1", "2", "4", "8", "16 threads"),
                (
                    ("1-step Q", "1.0", "3.0", "6.3", "13.3", "24.1"),
                    ("1-step Sarsa", "1.0", "2.8", "5.9", "13.1", "22.1"),
                    ("n-step Q", "1.0", "2.7", "5.9", "10.7", "17.2"),
                    ("A3C", "1.0", "2.1", "3.7", "6.9", "12.5"),
                ),
                "Mnih et al. 2016, Table 2: mean speed-ups over seven games on 16 CPU cores",
            ),
            paper_shows="Mean speed-ups over seven games with 16 threads: 24.1 for one-step Q, 22.1 for "
            "one-step Sarsa, 17.2 for n-step Q and 12.5 for A3C.",
            figure=StudyFigure(
                id="speed-ups",
                title="Speed-up over one actor-learner",
                kind="speedups",
                reduction=ReductionRule(
                    rule="time_to",
                    references={
                        "CartPole-v1": 60.0,
                        "ALE/BeamRider-v5": 600.0,
                        "ALE/Breakout-v5": 10.0,
                        "ALE/Enduro-v5": 50.0,
                        "ALE/Pong-v5": -10.0,
                        "ALE/Qbert-v5": 1_000.0,
                        "ALE/Seaquest-v5": 500.0,
                        "ALE/SpaceInvaders-v5": 350.0,
                    },
                ),
            ),
        ),
    ),
    scales={
        "minutes": AtScale(
            minutes=4.8,
            arms=threads(_FEW, learning_rate=0.004),
            environments=("CartPole-v1",),
            draws=Draws(n=2),
            stop={"agent_steps": 40_000, "score": 70.0},
            concurrency=1,
            differs=(
                "CartPole instead of seven Atari games",
                _SMALL_SETTINGS,
                "1, 2 and 4 actor-learners, 2 seeds, learning rate 0.004; at most 40,000 agent steps a run",
                "The reference score, 60, is ours",
            ),
        ),
        "hours": AtScale(
            arms=tuple(
                arm(
                    f"A3C, {n}",
                    "a3c",
                    "full-frame-centred",
                    n_actors=n,
                    learning_rate=0.0016,
                    learning_rate_schedule="constant",
                    evaluation_episodes=0,
                )
                for n in (1, 2)
            ),
            environments=games("Pong"),
            draws=Draws(n=2),
            stop={"wall_time_s": 1_400, "agent_steps": 5_000_000, "score": -8.0},
            concurrency=1,
            differs=(
                "A3C alone, with 1 and 2 actor-learners, at the constant rate 0.0016",
                "One game, 2 seeds, at most 23 minutes a run",
                "The reference score is ours",
                CENTRED,
            ),
        ),
        "paper": AtScale(
            arms=threads(_MANY, "paper"),
            environments=GAMES_7,
            draws=Draws(n=3),
            stop=PAPER_STOP,
            differs=(
                "The paper does not state its reference scores: these are ours",
                "Nor does it state the learning rates and runs of this table: 0.0007 and 3 seeds are ours",
                UNSTATED,
                INITIAL_WEIGHTS,
                SIDE_BY_SIDE,
            ),
        ),
    },
)

_SHARED_ADAM: dict[str, Any] = {"optimizer": "shared_adam", "t_max": 20, "learning_rate": 0.002}
"""With which an LSTM learns Memory within 10,000 agent steps."""
TABLES_1_S1 = Definition(
    id="a3c-tables-1-s1",
    items=(
        Item(
            id="a3c-table-1",
            label="Table 1",
            title="Human-normalised scores over 57 games",
            claim="A3C has the best mean over 57 games after half the training time, without a GPU.",
            published=PublishedTable(
                ("Method", "Trained for", "Mean (%)", "Median (%)"),
                (
                    ("DQN", "8 days on a GPU", "121.9", "47.5"),
                    ("Gorila", "4 days, 100 machines", "215.2", "71.3"),
                    ("D-DQN", "8 days on a GPU", "332.9", "110.9"),
                    ("Dueling D-DQN", "8 days on a GPU", "343.8", "117.1"),
                    ("Prioritized DQN", "8 days on a GPU", "463.6", "127.6"),
                    ("A3C FF", "1 day on a CPU", "344.1", "68.2"),
                    ("A3C FF", "4 days on a CPU", "496.8", "116.6"),
                    ("A3C LSTM", "4 days on a CPU", "623.0", "112.6"),
                ),
                "Mnih et al. 2016, Table 1: human-normalised scores of 57 games from human starts",
            ),
            paper_shows="Mean and median from human starts: DQN 121.9 and 47.5 %, Gorila 215.2 and 71.3 %, "
            "A3C after one day 344.1 and 68.2 %, after four days 496.8 and 116.6 %, with an LSTM 623.0 and "
            "112.6 %.",
            figure=StudyFigure(
                id="normalised",
                title="Human-normalised scores",
                kind="table",
                reduction=_FINAL.model_copy(update={"normalise": "human"}),
            ),
            needs=HUMAN_STARTS,
            needs_people=True,
        ),
        Item(
            id="a3c-table-s1",
            label="Table S1",
            title="Scores on 57 games",
            claim="The scores behind Table 1, game by game.",
            paper_shows="A3C scores higher with an LSTM than without on 37 of 57 games; on a few, such as "
            "Montezuma's Revenge, it stays near 0.",
            figure=StudyFigure(
                id="scores",
                title="Scores",
                kind="table",
                reduction=_FINAL,
                published=(
                    *(f"{label}@human_starts" for label in ("human", "A3C FF 1 day", "A3C FF", "A3C LSTM")),
                    *(f"{label}@noop_starts" for label in ("random", "human", "A3C")),
                ),
            ),
            needs=HUMAN_STARTS,
            needs_people=True,
        ),
    ),
    scales={
        "minutes": AtScale(
            minutes=1.7,
            arms=(
                arm("A3C FF", "a3c", **_SHARED_ADAM),
                arm("A3C LSTM", "a3c", recurrent=True, **_SHARED_ADAM),
            ),
            environments=("CartPole-v1", "Memory-v0"),
            draws=Draws(n=2),
            stop={"agent_steps": 30_000},
            differs=(
                "CartPole, and Memory, which needs an LSTM: their scores are not normalised",
                "2 seeds of 30,000 agent steps",
                STANDARD_RESETS,
                "Shared Adam, 20 agent steps an update",
            ),
        ),
        "hours": AtScale(
            arms=(arm("A3C FF", "a3c", "full-frame-centred", evaluation_interval_agent_steps=0),),
            environments=games("Breakout", "Pong", "SpaceInvaders"),
            draws=Draws(n=1),
            stop={"agent_steps": 2_000_000, "wall_time_s": 1_700},
            concurrency=1,
            differs=(NOOP_STARTS, "Three games", "4 actor-learners, at most 28 minutes", CENTRED),
        ),
        "paper": AtScale(
            arms=(
                arm("A3C FF, 1 day", "a3c", "paper-57-games").model_copy(
                    update={"stop": {"wall_time_s": 86_400, "agent_steps": 62_500_000}}
                ),
                arm("A3C FF", "a3c", "paper-57-games"),
                arm("A3C LSTM", "a3c", "paper-57-games", recurrent=True),
            ),
            environments=GAMES_57,
            draws=Draws(n=1),
            stop={"wall_time_s": 4 * 86_400, "agent_steps": 250_000_000},
            differs=(
                NOOP_STARTS,
                "The rate, 0.0007, and the clip, 40, are ours; the paper tuned both on six games",
                "Rates fall to 0 over 250 million agent steps, in one day over 62.5 million: both assumed",
                INITIAL_WEIGHTS,
            ),
        ),
    },
)

DATA_BY_ACTORS = Definition(
    id="a3c-data-by-actors",
    items=(
        Item(
            id="a3c-data-by-actors",
            label="Section 5.5",
            title="Fewer data with more actor-learners",
            claim="One-step methods need fewer agent steps for a score with more parallel actor-learners.",
            paper_shows="The text alone says so, beside Figure 3: hence one-step methods are more than 16 "
            "times as fast with 16 threads.",
            figure=StudyFigure(
                id="data",
                title="Agent steps of one actor-learner over those of n, to a score",
                kind="speedups",
                reduction=ReductionRule(rule="time_to", axis="agent_steps", references={"CartPole-v1": 60.0}),
            ),
            extra=True,
        ),
    ),
    scales={
        "minutes": TABLE_2.scales["minutes"],
        "hours": AtScale(
            arms=threads(_MANY, learning_rate=0.004),
            environments=("CartPole-v1",),
            draws=Draws(n=10),
            stop={"wall_time_s": 29.0, "agent_steps": 40_000, "score": 70.0},
            concurrency=1,
            differs=(
                "CartPole instead of seven Atari games",
                _SMALL_SETTINGS,
                "10 seeds, learning rate 0.004; at most 40,000 agent steps and 29 seconds a run",
                "The reference score, 60, is ours",
            ),
        ),
    },
)

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
                setting="config.learning_rate", log=True, reduction=_FINAL,
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
            differs=(*SMALL, _SMALL_RUNS, "12 learning rates instead of 50"),
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
            figure=StudyFigure(id="sorted", title="Sorted scores", kind="sorted", reduction=_FINAL),
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
                _SMALL_SETTINGS,
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
                setting="config.learning_rate", log=True, reduction=_FINAL,
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

A3C_PAPER = Paper(
    id="a3c",
    title="Asynchronous Methods for Deep Reinforcement Learning",
    authors="Mnih, Badia, Mirza, Graves, Lillicrap, Harley, Silver, Kavukcuoglu",
    year=2016,
    short="A3C",
    definitions=(
        FIGURE_1, FIGURE_2, FIGURES_3_4, TABLES_1_S1, TABLE_2, DATA_BY_ACTORS, FIGURE_S2, FIGURE_S7,
        OPTIMIZERS, CONTINUOUS,
    ),
)  # fmt: skip
