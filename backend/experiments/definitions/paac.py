"""Clemente et al. 2017: efficient parallel methods for deep reinforcement learning."""

from backend.experiments.definitions.base import (
    CENTRED,
    INITIAL_WEIGHTS,
    SIDE_BY_SIDE,
    AtScale,
    Definition,
    Item,
    Paper,
    arm,
    games,
)
from backend.experiments.specs.study import Arm, Draws, ReductionRule, StudyFigure

GAMES = games("BeamRider", "Breakout", "Pong", "Qbert", "Seaquest", "SpaceInvaders")
GAMES_12 = games(
    "Amidar", "Centipede", "BeamRider", "Boxing", "Breakout", "MsPacman", "NameThisGame", "Pong", "Qbert",
    "Seaquest", "SpaceInvaders", "UpNDown",
)  # fmt: skip
N_E = (16, 32, 64, 128, 256)
PAPER_STOP = {"agent_steps": 115_000_000}
NETWORKS = ("nips", "nature")
_AS_PRINTED = "The printed constants, of which the authors' code has others: see its preset"


def by_n_e(preset: str | None, learning_rate: float, **config: object) -> tuple[Arm, ...]:
    """PAAC with several numbers of environments, the learning rate in proportion."""
    rate = {"scale_learning_rate": True, "learning_rate": learning_rate}
    return tuple(arm(f"nₑ = {n}", "paac", preset, n_e=n, **rate, **config) for n in N_E)


def by_network(preset: str | None, **config: object) -> tuple[Arm, ...]:
    """PAAC with both networks."""
    return tuple(arm(f"PAAC {name}", "paac", preset, network=name, **config) for name in NETWORKS)


def timed(preset: str | None, **config: object) -> tuple[Arm, ...]:
    """PAAC with both networks and several numbers of environments."""
    return tuple(
        arm(f"{name}, nₑ = {n}", "paac", preset, network=name, n_e=n, **config)
        for name in NETWORKS
        for n in N_E
    )


FIGURE_2 = Definition(
    id="paac-figure-2",
    items=(
        Item(
            id="paac-figure-2",
            label="Figure 2",
            title="Time usage by number of environments",
            claim="About half of the time is spent in the environments; a larger network costs little.",
            paper_shows="In Pong with nₑ = 32 and the network nips, about 50 % of the time goes to the "
            "environments and 37 % to learning and action selection; nature costs 22 % of the steps a second "
            "on a GPU and 41 % on a CPU.",
            figure=StudyFigure(
                id="time",
                title="Share of time by nₑ and network",
                kind="stacked_bars",
                setting="config.n_e",
                metrics=(
                    "paac/time_environment", "paac/time_choosing", "paac/time_learning", "paac/time_rest"
                ),
            ),
            more=(
                StudyFigure(
                    id="speed",
                    title="Agent steps a second by nₑ and network",
                    kind="bars",
                    setting="config.n_e",
                    metrics=("speed/agent_steps_per_s",),
                ),
            ),
        ),
    ),
    scales={
        "minutes": AtScale(
            minutes=4.5,
            arms=timed(None, n_w=2, evaluation_episodes=0),
            environments=("Catch-v0",),
            draws=Draws(n=1),
            stop={"wall_time_s": 20.0},
            concurrency=1,
            differs=("Catch, whose frames cost little, instead of Pong", "20 seconds a run", "On CPUs"),
        ),
        "hours": AtScale(
            arms=timed("full-frame", evaluation_episodes=0),
            environments=games("Pong"),
            draws=Draws(n=1),
            stop={"wall_time_s": 120.0, "agent_steps": 10_000_000},
            concurrency=1,
            differs=("2 workers and 2 cores", "On CPUs", "2 minutes a run"),
        ),
        "paper": AtScale(
            arms=timed("paper", evaluation_episodes=0),
            environments=games("Pong"),
            draws=Draws(n=1),
            stop={"wall_time_s": 600.0, "agent_steps": 115_000_000},
            differs=(
                "10 minutes a run; the paper does not state how long it measured",
                "The text does not state the numbers of environments of this figure: those of Figure 3",
                "On one device; the paper has a GPU and a CPU side by side",
                SIDE_BY_SIDE,
            ),
        ),
    },
)  # fmt: skip

FIGURES_3_4 = Definition(
    id="paac-figures-3-4",
    items=(
        Item(
            id="paac-figure-3",
            label="Figure 3",
            title="Scores by number of environments, against steps",
            claim="With a learning rate in proportion to nₑ, more environments do not cost data efficiency, "
            "up to a limit.",
            paper_shows="Most choices of nₑ result in similar scores at a given step; with 256 environments, "
            "whose learning rate is the highest, training diverges in three games.",
            figure=StudyFigure(id="by-steps", title="Score by nₑ, against agent steps", kind="curves"),
        ),
        Item(
            id="paac-figure-4",
            label="Figure 4",
            title="Scores by number of environments, against time",
            claim="More environments reach the same score in less time.",
            paper_shows="Against training time the curves of more environments rise earlier on every game, "
            "but for those that diverge.",
            figure=StudyFigure(
                id="by-time", title="Score by nₑ, against training time", kind="curves", x="hours"
            ),
        ),
    ),
    scales={
        "minutes": AtScale(
            minutes=1.6,
            arms=by_n_e(None, 0.006),
            environments=("CartPole-v1",),
            draws=Draws(n=2),
            stop={"agent_steps": 100_000},
            concurrency=1,
            differs=(
                "CartPole instead of six Atari games",
                "2 seeds; the paper does not state how many it has",
                "100,000 agent steps instead of 115 million",
                "A small network without convolutions; learning rate 0.006 nₑ/32",
            ),
        ),
        "hours": AtScale(
            arms=by_n_e("full-frame-centred", 0.0014, evaluation_episodes=0),
            environments=games("Pong"),
            draws=Draws(n=1),
            stop={"agent_steps": 800_000, "wall_time_s": 580},
            concurrency=1,
            differs=(
                "One game instead of six",
                "800,000 agent steps instead of 115 million, at a rate from 0.0014 nₑ/32 down to 0",
                "2 workers",
                CENTRED,
            ),
        ),
        "paper": AtScale(
            arms=by_n_e("paper", 0.0224),
            environments=GAMES,
            draws=Draws(n=3),
            stop=PAPER_STOP,
            differs=(
                "3 seeds; the paper does not state how many it has",
                "The text does not name the six games: these are ours",
                _AS_PRINTED,
                INITIAL_WEIGHTS,
                SIDE_BY_SIDE,
            ),
        ),
    },
)

TABLE_1 = Definition(
    id="paac-table-1",
    items=(
        Item(
            id="paac-table-1",
            label="Table 1",
            title="Scores on twelve games",
            claim="After half a day on one GPU, PAAC scores as well as Gorila, A3C and GA3C after days.",
            paper_shows="PAAC with the network nature has the highest score of the four methods on 6 of 12 "
            "games; each column has a protocol of its own.",
            figure=StudyFigure(
                id="scores",
                title="Best of three agents",
                kind="table",
                reduction=ReductionRule(rule="best_of", k=3, source="evaluations"),
                published=("PAAC nips", "PAAC nature", "Gorila@noop_starts_5min", "A3C FF", "GA3C"),
            ),
        ),
    ),
    scales={
        "minutes": AtScale(
            minutes=0.3,
            arms=(arm("PAAC", "paac"),),
            environments=("CartPole-v1",),
            draws=Draws(n=3),
            stop={"agent_steps": 60_000},
            differs=(
                "CartPole, for which nothing is published; standard resets instead of no-op starts",
                "One small network; 60,000 agent steps instead of 115 million",
            ),
        ),
        "hours": AtScale(
            arms=(
                arm(
                    "PAAC nips",
                    "paac",
                    "full-frame-centred",
                    evaluation_interval_agent_steps=0,
                ),
            ),
            environments=games("Breakout", "Pong", "SpaceInvaders"),
            draws=Draws(n=3),
            stop={"agent_steps": 800_000, "wall_time_s": 600},
            concurrency=1,
            differs=(
                "Three games",
                "800,000 agent steps instead of 115 million",
                "The network nips alone",
                CENTRED,
            ),
        ),
        "paper": AtScale(
            arms=by_network("paper"),
            environments=GAMES_12,
            draws=Draws(n=3),
            stop=PAPER_STOP,
            differs=(_AS_PRINTED, INITIAL_WEIGHTS),
        ),
    },
)

PAAC_PAPER = Paper(
    id="paac",
    title="Efficient Parallel Methods for Deep Reinforcement Learning",
    authors="Clemente, Castejón, Chandra",
    year=2017,
    short="PAAC",
    definitions=(FIGURE_2, FIGURES_3_4, TABLE_1),
)
