"""Nair et al. 2015: massively parallel methods for deep reinforcement learning."""

from backend.experiments.definitions.base import (
    HUMAN_STARTS,
    INITIAL_WEIGHTS,
    NO_FIGURE,
    NOOP_STARTS,
    SIDE_BY_SIDE,
    STANDARD_RESETS,
    AtScale,
    Definition,
    Item,
    Paper,
    arm,
    games,
)
from backend.experiments.specs.study import Arm, Draws, ReductionRule, StudyFigure
from backend.specs.environments import ENVIRONMENTS

GAMES_49 = tuple(
    name
    for name, environment in ENVIRONMENTS.items()
    if any((score.label, score.protocol) == ("Gorila", "noop_starts_5min") for score in environment.published)
)
_SMALL = (arm("DQN", "dqn"), arm("Gorila", "gorila_dqn"))
_HOURS = (arm("DQN", "dqn", "quarter-hour"), arm("Gorila", "gorila_dqn", "quarter-hour"))
_PAPER = (
    arm("DQN", "dqn", "paper").model_copy(update={"stop": {"wall_time_s": 12 * 86_400}}),
    arm("Gorila", "gorila_dqn", "paper"),
)
_SMALL_DIFFERS = (
    "CartPole and Acrobot instead of 49 Atari games: raw scores instead of normalised ones",
    "2 seeds instead of 5; Gorila with 2 bundles and 2 shards in 2 processes instead of 100 and 31 in 131",
)
_PAPER_DIFFERS = (
    NOOP_STARTS,
    "DQN is trained here, with 5 seeds for 12 days each; the paper takes its scores from Mnih et al. 2015",
    INITIAL_WEIGHTS,
)
_ONE_PROTOCOL = "Figure 4 has one protocol at a time instead of two bars side by side"
_KEPT = ReductionRule(rule="best_kept")


def _normalised(target: str) -> ReductionRule:
    return ReductionRule.model_validate({"rule": "best_kept", "normalise": target})


def _published(protocol: str) -> tuple[str, ...]:
    """The columns of the paper's tables of scores."""
    return tuple(f"{label}@{protocol}" for label in ("random", "human", "DQN", "Gorila"))


def _by_dqn(id_: str, protocol: str) -> StudyFigure:
    """The column of Gorila's scores normalised by DQN's."""
    return StudyFigure(
        id=id_, title="Gorila, normalised by DQN", kind="table", reduction=_normalised("dqn"),
        arms=("Gorila",), published=(f"Gorila@{protocol}",),
    )  # fmt: skip


SCORES = Definition(
    id="gorila-scores",
    items=(
        Item(
            id="gorila-figure-3",
            label="Figure 3",
            title="Human-normalised scores of Gorila and DQN",
            claim="Gorila outperforms DQN on 41 of 49 games in half the training time.",
            paper_shows="Bars by game: Gorila's are longer on 41 of 49 games, on 22 of them twice as long as "
            "DQN's, and on 25 they reach 75 % of a human's score.",
            figure=StudyFigure(
                id="human", title="Human-normalised scores", kind="games", reduction=_normalised("human")
            ),
            needs=HUMAN_STARTS,
            needs_people=True,
        ),
        Item(
            id="gorila-figure-4",
            label="Figure 4",
            title="Scores normalised by DQN",
            claim="Gorila generalises better than DQN: its lead is larger from human starts.",
            paper_shows="Bars by game of Gorila's score as a percentage of DQN's, from human starts and from "
            "no-op starts: from human starts the bars are longer on most games.",
            figure=StudyFigure(
                id="dqn", title="Scores normalised by DQN's", kind="games", reduction=_normalised("dqn"),
                arms=("Gorila",),
            ),
            needs=HUMAN_STARTS,
            needs_people=True,
        ),
        Item(
            id="gorila-table-1",
            label="Table 1",
            title="Normalised scores, no-op starts",
            claim="From no-op starts, Gorila outperforms DQN on most of 49 games.",
            paper_shows="Percentages of a human by game; Gorila's column is higher than DQN's on 31 games.",
            figure=StudyFigure(
                id="normalised", title="Human-normalised scores", kind="table",
                reduction=_normalised("human"), published=_published("noop_starts_5min")[2:],
            ),
            more=(_by_dqn("by-dqn", "noop_starts_5min"),),
        ),
        Item(
            id="gorila-table-2",
            label="Table 2",
            title="Normalised scores, human starts",
            claim="From human starts, Gorila outperforms DQN on 41 of 49 games.",
            paper_shows="Percentages of a human by game; Gorila's column is higher than DQN's on 41 games.",
            figure=StudyFigure(
                id="normalised-starts", title="Human-normalised scores", kind="table",
                reduction=_normalised("human"), published=_published("human_starts")[2:],
            ),
            more=(_by_dqn("by-dqn-starts", "human_starts"),),
            needs=HUMAN_STARTS,
            needs_people=True,
        ),
        Item(
            id="gorila-table-3",
            label="Table 3",
            title="Scores, human starts",
            claim="The scores behind Table 2: random play, a human, DQN and Gorila.",
            paper_shows="Four columns of scores by game, from human starts.",
            figure=StudyFigure(
                id="raw-starts", title="Scores", kind="table", reduction=_KEPT,
                published=_published("human_starts"),
            ),
            needs=HUMAN_STARTS,
            needs_people=True,
        ),
        Item(
            id="gorila-table-4",
            label="Table 4",
            title="Scores",
            claim="The scores behind Table 1: random play, a human, DQN and Gorila.",
            paper_shows="Four columns of scores by game, from no-op starts.",
            figure=StudyFigure(
                id="raw", title="Scores", kind="table", reduction=_KEPT,
                published=_published("noop_starts_5min"),
            ),
        ),
    ),
    scales={
        "minutes": AtScale(
            minutes=2.2,
            arms=_SMALL,
            environments=("CartPole-v1", "Acrobot-v1"),
            draws=Draws(n=2),
            stop={"agent_steps": 20_000},
            differs=(
                *_SMALL_DIFFERS,
                "20,000 agent steps a run; standard resets instead of human or no-op starts",
            ),
        ),
        "hours": AtScale(
            arms=_HOURS,
            environments=games("Assault", "RoadRunner"),
            draws=Draws(n=1),
            stop={"wall_time_s": 1_200},
            concurrency=1,
            differs=("Two games, one seed, 20 minutes a run", "Gorila on one machine", NOOP_STARTS),
        ),
        "paper": AtScale(
            arms=_PAPER,
            environments=GAMES_49,
            draws=Draws(n=5),
            stop={"wall_time_s": 6 * 86_400},
            differs=(*_PAPER_DIFFERS, _ONE_PROTOCOL),
        ),
    },
)  # fmt: skip

FIGURE_5 = Definition(
    id="gorila-figure-5",
    items=(
        Item(
            id="gorila-figure-5",
            label="Figure 5",
            title="Time to DQN's best score and to the own peak",
            claim="Gorila surpasses DQN's best score ten times faster on most games.",
            paper_shows="Two rising curves over six days: Gorila surpasses DQN on 19 games in 6 hours, 23 in "
            "12, 30 in 24 and 38 in 36 hours; its own peaks come later.",
            figure=StudyFigure(
                id="surpassed",
                title="Environments on which DQN's best score was reached",
                kind="reached",
                arms=("Gorila",),
                reduction=ReductionRule(rule="time_to", reference_arm="DQN", source="evaluations"),
            ),
            more=(
                StudyFigure(
                    id="peaks",
                    title="Environments on which the own peak was reached",
                    kind="reached",
                    arms=("Gorila",),
                    reduction=ReductionRule(rule="time_to_peak", source="evaluations"),
                ),
            ),
            needs=HUMAN_STARTS,
            needs_people=True,
        ),
    ),
    scales={
        "minutes": AtScale(
            minutes=3.6,
            arms=tuple(
                arm.model_copy(update={"config": arm.config | {"evaluation_interval_agent_steps": 2_000}})
                for arm in _SMALL
            ),
            environments=("CartPole-v1", "Acrobot-v1"),
            draws=Draws(n=2),
            stop={"agent_steps": 20_000},
            concurrency=1,
            differs=(
                "Two small environments instead of 49 games, 20,000 agent steps a run",
                _SMALL_DIFFERS[1],
                STANDARD_RESETS,
            ),
        ),
        "hours": AtScale(
            arms=_HOURS,
            environments=games("Assault", "RoadRunner"),
            draws=Draws(n=1),
            stop={"wall_time_s": 1_200},
            concurrency=1,
            differs=("Two games, one seed, 20 minutes a run", "Gorila on one machine", NOOP_STARTS),
        ),
        "paper": AtScale(
            arms=_PAPER,
            environments=GAMES_49,
            draws=Draws(n=5),
            stop={"wall_time_s": 6 * 86_400},
            differs=(*_PAPER_DIFFERS, SIDE_BY_SIDE),
        ),
    },
)

_NEVER = 10**9
"""A staleness that no gradient of these runs reaches."""


def _discarding(staleness: tuple[int, ...], deviations: tuple[int, ...]) -> tuple[Arm, ...]:
    """Gorila with four bundles and these bounds, prompt and late: a late learner's parameters are up to 50 of
    its own updates old, and those of all four count."""
    return tuple(
        arm(
            f"{'none' if bound == _NEVER else bound}/{outliers or 'none'}, {pace}", "gorila_dqn",
            n_actors=4, n_learners=4, pull_interval=pull, max_gradient_staleness=bound,
            outlier_deviations=float(outliers),
        )
        for pace, pull in (("prompt", 1), ("late", 50))
        for bound in staleness
        for outliers in deviations
    )  # fmt: skip


STABILITY = Definition(
    id="gorila-stability",
    items=(
        Item(
            id="gorila-stability",
            label="Section 4.2",
            title="Stale gradients and outliers",
            claim="Discarding stale gradients and outliers keeps training stable where learners are slow.",
            paper_shows="The text alone says so: shards discard gradients that are older than a threshold, "
            "learners those whose loss is several standard deviations above its mean.",
            figure=StudyFigure(
                id="scores", title="Scores by bounds of staleness and deviations", kind="table",
                reduction=ReductionRule(source="evaluations"),
            ),
            more=(
                StudyFigure(
                    id="discards", title="Staleness, and gradients discarded", kind="table",
                    metrics=(
                        "gorila/gradient_staleness", "gorila/gradient_staleness_max",
                        "gorila/stale_discards", "gorila/outlier_discards", "speed/updates_per_s",
                    ),
                ),
            ),
            needs=NO_FIGURE,
            extra=True,
        ),
    ),
    scales={
        "minutes": AtScale(
            arms=_discarding((_NEVER, 50), (0,)),
            environments=("CartPole-v1",),
            draws=Draws(n=2),
            stop={"agent_steps": 20_000},
            concurrency=1,
            differs=(
                NO_FIGURE,
                "CartPole instead of 49 Atari games; 20,000 agent steps a run",
                "4 bundles and 2 shards instead of 100 and 31; slow learners are ones that pull rarely",
                "The rule for outliers is left out",
            ),
        ),
        "hours": AtScale(
            arms=_discarding((_NEVER, 50, 5), (0, 4)),
            environments=("CartPole-v1",),
            draws=Draws(n=4),
            stop={"agent_steps": 40_000, "wall_time_s": 60.0},
            concurrency=1,
            differs=(
                NO_FIGURE,
                "CartPole instead of 49 Atari games; at most 40,000 agent steps and 60 seconds a run",
                "4 bundles and 2 shards instead of 100 and 31; slow learners are ones that pull rarely",
                "The paper states no staleness, and several deviations: 50, 5 and 4 are ours",
            ),
        ),
    },
)  # fmt: skip

GORILA_PAPER = Paper(
    id="gorila",
    title="Massively Parallel Methods for Deep Reinforcement Learning",
    authors="Nair, Srinivasan, Blackwell, Alcicek, Fearon, De Maria, Panneershelvam, Suleyman, Beattie, "
    "Petersen, Legg, Mnih, Kavukcuoglu, Silver",
    year=2015,
    short="Gorila",
    definitions=(SCORES, FIGURE_5, STABILITY),
)
