"""Babaeizadeh et al. 2017: reinforcement learning through asynchronous advantage actor-critic on a GPU."""

from backend.experiments.definitions.base import Paper
from backend.experiments.definitions.ga3c.figures import (
    FIGURE_2,
    FIGURE_5,
    FIGURE_6,
    FIGURE_7,
    FIGURES_3_4,
    LAG,
)
from backend.experiments.definitions.ga3c.tables import TABLE_1, TABLE_2, TABLE_3

GA3C_PAPER = Paper(
    id="ga3c",
    title="Reinforcement Learning through Asynchronous Advantage Actor-Critic on a GPU",
    authors="Babaeizadeh, Frosio, Tyree, Clemons, Kautz",
    year=2017,
    short="GA3C",
    definitions=(FIGURE_2, FIGURES_3_4, FIGURE_5, FIGURE_6, FIGURE_7, TABLE_1, TABLE_2, TABLE_3, LAG),
)
