"""Mnih et al. 2016: asynchronous methods for deep reinforcement learning."""

from backend.specs.studies.base import AtScale, Definition, Item, Paper, arm
from backend.specs.study import Draws, StudyFigure
from backend.specs.sweep import Dimension

_GAMES = ("ALE/BeamRider-v5", "ALE/Breakout-v5", "ALE/Pong-v5", "ALE/Qbert-v5", "ALE/SpaceInvaders-v5")
_RATES = {"config.learning_rate": Dimension(distribution="log_uniform", low=1e-4, high=1e-2)}

FIGURE_2 = Definition(
    id="a3c-figure-2",
    items=(
        Item(
            id="a3c-figure-2",
            label="Figure 2",
            title="Learning rates and initial weights",
            shape="scatter",
            claim="A wide range of learning rates gives good scores from any random initial weights.",
            paper_shows="On each of five games a plateau of good scores over about one decade of learning "
            "rates, and virtually no score of 0 on that plateau: A3C does not collapse or diverge.",
            figure=StudyFigure(
                id="scores-by-rate",
                title="Score by learning rate",
                kind="scatter",
                setting="config.learning_rate",
                log=True,
            ),
        ),
    ),
    scales={
        "minutes": AtScale(
            arms=(arm("A3C", "a3c"),),
            environments=("CartPole-v1", "Acrobot-v1"),
            draws=Draws(n=12, space=_RATES),
            stop={"agent_steps": 20_000},
            differs=(
                "CartPole and Acrobot instead of five Atari games",
                "12 learning rates instead of 50",
                "2 actor-learners and a small network without convolutions",
            ),
        ),
        "hours": AtScale(
            arms=(arm("A3C", "a3c", "full-frame"),),
            environments=("ALE/Pong-v5",),
            draws=Draws(n=8, space=_RATES),
            stop={"agent_steps": 1_000_000},
            differs=("One game instead of five", "8 learning rates instead of 50", "4 actor-learners"),
        ),
        "paper": AtScale(
            arms=(arm("A3C", "a3c", "paper"),),
            environments=_GAMES,
            draws=Draws(n=50, space=_RATES),
            stop={"agent_steps": 80_000_000},
            differs=("The paper does not state how long these runs trained: 320 million frames are assumed",),
        ),
    },
)

A3C_PAPER = Paper(
    id="a3c",
    title="Asynchronous Methods for Deep Reinforcement Learning",
    authors="Mnih, Badia, Mirza, Graves, Lillicrap, Harley, Silver, Kavukcuoglu",
    year=2016,
    short="A3C",
    definitions=(FIGURE_2,),
)
