"""Mnih et al. 2016: asynchronous methods for deep reinforcement learning."""

from backend.experiments.definitions.a3c.figures import FIGURE_1, FIGURE_2, FIGURES_3_4
from backend.experiments.definitions.a3c.supplement import (
    CONTINUOUS,
    FIGURE_S2,
    FIGURE_S7,
    OPTIMIZERS,
    OPTIMIZERS_16,
)
from backend.experiments.definitions.a3c.tables import DATA_BY_ACTORS, TABLE_2, TABLES_1_S1
from backend.experiments.definitions.base import Paper

A3C_PAPER = Paper(
    id="a3c",
    title="Asynchronous Methods for Deep Reinforcement Learning",
    authors="Mnih, Badia, Mirza, Graves, Lillicrap, Harley, Silver, Kavukcuoglu",
    year=2016,
    short="A3C",
    definitions=(
        FIGURE_1, FIGURE_2, FIGURES_3_4, TABLES_1_S1, TABLE_2, DATA_BY_ACTORS, FIGURE_S2, FIGURE_S7,
        OPTIMIZERS, OPTIMIZERS_16, CONTINUOUS,
    ),
)  # fmt: skip
