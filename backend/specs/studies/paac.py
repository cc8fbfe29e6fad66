"""Clemente et al. 2017: efficient parallel methods for deep reinforcement learning."""

from backend.specs.studies.base import AtScale, Definition, Item, Paper, arm
from backend.specs.study import Draws, StudyFigure

_GAMES = (
    "ALE/BeamRider-v5",
    "ALE/Breakout-v5",
    "ALE/Pong-v5",
    "ALE/Qbert-v5",
    "ALE/Seaquest-v5",
    "ALE/SpaceInvaders-v5",
)
_N_E = (16, 32, 64, 128, 256)

FIGURES_3_4 = Definition(
    id="paac-figures-3-4",
    items=(
        Item(
            id="paac-figure-3",
            label="Figure 3",
            title="Scores by number of environments, against steps",
            shape="curves",
            claim="With a learning rate in proportion to nₑ, more environments do not cost data efficiency, "
            "up to a limit.",
            paper_shows="The curves of 16 to 128 environments lie close together on six games; with 256 "
            "environments, whose learning rate is the highest, training diverges on some of them.",
            figure=StudyFigure(id="by-steps", title="Score by nₑ, against agent steps", kind="curves"),
        ),
        Item(
            id="paac-figure-4",
            label="Figure 4",
            title="Scores by number of environments, against time",
            shape="curves",
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
            arms=tuple(
                arm(f"nₑ = {n}", "paac", n_e=n, scale_learning_rate=True, learning_rate=0.006) for n in _N_E
            ),
            environments=("CartPole-v1",),
            draws=Draws(n=2),
            stop={"agent_steps": 100_000},
            differs=(
                "CartPole instead of six Atari games",
                "2 seeds; the paper does not state how many it has",
                "A small network without convolutions; learning rate 0.006 nₑ/32",
            ),
        ),
        "hours": AtScale(
            arms=tuple(
                arm(f"nₑ = {n}", "paac", "full-frame", n_e=n, scale_learning_rate=True, learning_rate=0.0014)
                for n in _N_E
            ),
            environments=("ALE/Pong-v5",),
            draws=Draws(n=1),
            stop={"agent_steps": 1_000_000},
            differs=("One game instead of six", "1 million agent steps instead of 115 million", "2 workers"),
        ),
        "paper": AtScale(
            arms=tuple(arm(f"nₑ = {n}", "paac", "paper", n_e=n, scale_learning_rate=True) for n in _N_E),
            environments=_GAMES,
            draws=Draws(n=3),
            stop={"agent_steps": 115_000_000},
            differs=("3 seeds; the paper does not state how many it has",),
        ),
    },
)

PAAC_PAPER = Paper(
    id="paac",
    title="Efficient Parallel Methods for Deep Reinforcement Learning",
    authors="Clemente, Castejón, Chandra",
    year=2017,
    short="PAAC",
    definitions=(FIGURES_3_4,),
)
