"""Tables of Babaeizadeh et al. 2017."""

from backend.experiments.definitions.base import (
    CENTRED,
    INITIAL_WEIGHTS,
    AtScale,
    Definition,
    Item,
    PublishedTable,
    arm,
    games,
)
from backend.experiments.definitions.ga3c.arms import CPU, FIXED, GAMES_9, SMALL_PIXELS
from backend.experiments.specs.study import Arm, Draws, ReductionRule, StudyFigure

TABLE_1 = Definition(
    id="ga3c-table-1",
    items=(
        Item(
            id="ga3c-table-1",
            label="Table 1",
            title="Systems",
            claim="The machines on which GA3C was measured.",
            paper_shows="Four systems with their CPU, GPU and versions.",
            page="/machines",
        ),
    ),
)

_STRIDES = (4, 3, 2, 1)


def _by_network(n_a3c: int, n_ga3c: int, a3c: str | None, ga3c: str | None) -> tuple[Arm, ...]:
    """A3C and GA3C, with these numbers of actors and presets, with the small and three large networks."""
    networks: tuple[tuple[str, dict[str, object]], ...] = (
        ("small", {"network": "nips"}),
        *((f"stride {n}", {"network": "large", "first_layer_stride": n}) for n in _STRIDES),
    )
    return tuple(
        made
        for label, network in networks
        for made in (
            arm(f"A3C, {label}", "a3c", a3c, n_actors=n_a3c, evaluation_episodes=0, **network),
            arm(f"GA3C, {label}", "ga3c", ga3c, n_actors=n_ga3c, **(FIXED | network)),
        )
    )


TABLE_2 = Definition(
    id="ga3c-table-2",
    items=(
        Item(
            id="ga3c-table-2",
            label="Table 2",
            title="Predictions a second of A3C and GA3C",
            claim="GA3C plays up to 6 times as fast as A3C with a small network, 45 times with a large one.",
            published=PublishedTable(
                ("System", "Network", "A3C", "GA3C", "Speed-up"),
                (
                    ("I", "small", "352", "1,361", "4×"),
                    ("I", "large, stride 4", "113", "1,271", "11×"),
                    ("I", "large, stride 3", "97", "1,206", "12×"),
                    ("I", "large, stride 2", "43", "874", "20×"),
                    ("I", "large, stride 1", "11", "490", "45×"),
                    ("II", "small", "116", "728", "6×"),
                    ("II", "large, stride 1", "12", "336", "28×"),
                    ("III", "small", "300", "1,248", "4×"),
                    ("III", "large, stride 1", "38", "256", "6×"),
                ),
                "Babaeizadeh et al. 2017, Table 2: predictions a second; its Table 1 has the systems",
            ),
            paper_shows="Predictions a second on three systems for a small network and four large ones: the "
            "larger the network, the larger GA3C's lead over A3C on CPUs.",
            figure=StudyFigure(
                id="rates", title="Agent steps a second, a prediction each", kind="table",
                metrics=(
                    "speed/agent_steps_per_s", "speed/updates_per_s", "system/cpu_pct", "system/gpu_pct",
                ),
            ),
            more=(
                StudyFigure(
                    id="speed-ups", title="Speed-up of GA3C over A3C", kind="speedups",
                    reduction=ReductionRule(
                        rule="top", k=1, metric="speed/agent_steps_per_s", ratio_to="A3C, small"
                    ),
                ),
            ),
        ),
    ),
    scales={
        "minutes": AtScale(
            minutes=5.0,
            arms=_by_network(2, 8, None, None),
            environments=("Catch-v0",),
            draws=Draws(n=1),
            stop={"wall_time_s": 30.0, "agent_steps": 1_000_000},
            concurrency=1,
            differs=(SMALL_PIXELS, CPU, "30 seconds a run"),
        ),
        "hours": AtScale(
            arms=_by_network(2, 8, "full-frame-centred", "full-frame-centred"),
            environments=games("Pong"),
            draws=Draws(n=1),
            stop={"wall_time_s": 300.0, "agent_steps": 10_000_000},
            concurrency=1,
            differs=(
                CPU, "5 minutes a run",
                "2 actor-learners of A3C, 8 agents of GA3C, which trains on batches of 40", CENTRED,
            ),
        ),
        "paper": AtScale(
            arms=_by_network(16, 128, "paper", "paper"),
            environments=games("Pong"),
            draws=Draws(n=1),
            stop={"wall_time_s": 600.0, "agent_steps": 100_000_000},
            concurrency=1,
            differs=("The paper does not state its game and time: Pong for 10 minutes",),
        ),
    },
)  # fmt: skip

TABLE_3 = Definition(
    id="ga3c-table-3",
    items=(
        Item(
            id="ga3c-table-3",
            label="Table 3",
            title="Scores on nine games",
            claim="GA3C scores as A3C does, after one day.",
            paper_shows="Mean scores of 30 games with a random seed each: GA3C after one day is better than "
            "A3C after four days on four of nine games.",
            figure=StudyFigure(
                id="scores",
                title="Scores",
                kind="table",
                reduction=ReductionRule(source="evaluations"),
                published=("random@noop_starts_5min", "human@noop_starts_5min", "A3C FF", "GA3C"),
            ),
        ),
    ),
    scales={
        "minutes": AtScale(
            arms=(arm("GA3C", "ga3c"),),
            environments=("CartPole-v1",),
            draws=Draws(n=2),
            stop={"agent_steps": 80_000},
            concurrency=1,
            differs=("CartPole, for which nothing is published; 80,000 agent steps a run", CPU),
        ),
        "hours": AtScale(
            arms=(
                arm(
                    "GA3C",
                    "ga3c",
                    "full-frame-centred",
                    evaluation_interval_agent_steps=0,
                    evaluation_protocol="random_seeds",
                ),
            ),
            environments=games("Boxing", "Pong"),
            draws=Draws(n=1),
            stop={"wall_time_s": 2_700, "agent_steps": 10_000_000},
            concurrency=1,
            differs=("Two games", "45 minutes a run instead of one day", CPU, CENTRED),
        ),
        "paper": AtScale(
            arms=(arm("GA3C", "ga3c", "paper"),),
            environments=GAMES_9,
            draws=Draws(n=1),
            stop={"wall_time_s": 86_400.0},
            differs=(
                "One agent a game; the paper's is the best of an unstated number",
                "Human and random scores from no-op starts; the paper's columns mix two protocols and have "
                "those of random play in Name This Game and Ms. Pacman interchanged",
                INITIAL_WEIGHTS,
            ),
        ),
    },
)
