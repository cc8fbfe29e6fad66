"""The papers' figures and tables as definitions of studies.

An item is a figure or a table of a paper, with its claim. Items that need the same runs have one definition,
whose studies have a figure for each of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from backend.specs.study import Arm, Draws, Scale, StudyFigure, StudySpec
from backend.specs.sweep import Dimension

Shape = Literal["curves", "scatter", "bars", "stacked_bars", "table", "steps", "counts", "sorted"]
"""The small drawing on an item's card."""


@dataclass(frozen=True)
class AtScale:
    """A definition's experiment at one scale."""

    arms: tuple[Arm, ...]
    environments: tuple[str, ...]
    draws: Draws
    differs: tuple[str, ...]
    """What differs from the paper, each in one line."""
    stop: dict[str, Any] = field(default_factory=dict)
    minutes: float | None = None
    """Minutes on two idle cores; None if that was not measured."""
    concurrency: int = 10


@dataclass(frozen=True)
class Item:
    """A figure or table of a paper."""

    id: str
    label: str
    """As in the paper: `Figure 2`."""
    title: str
    shape: Shape
    claim: str
    """What it shows, in one sentence."""
    paper_shows: str
    """What the paper's own figure or table shows, in words."""
    figure: StudyFigure | None = None
    """Its figure in a study; None if it needs no run or cannot be run here."""
    more: tuple[StudyFigure, ...] = ()
    """Further figures that belong to it."""
    page: str = ""
    """Address of the page that shows it without any run."""
    needs: str = ""
    """What this installation lacks for the paper's version, and what stands in its place."""
    extra: bool = False
    """Whether it is no figure or table of the paper's main count."""


@dataclass(frozen=True)
class Definition:
    """The runs of one or several items."""

    id: str
    items: tuple[Item, ...]
    scales: Mapping[Scale, AtScale] = field(default_factory=dict)
    """Empty if its items need no run, or cannot be run here."""


@dataclass(frozen=True)
class Paper:
    """A paper and its figures and tables."""

    id: str
    title: str
    authors: str
    year: int
    short: str
    """Its method, as in `A3C`."""
    definitions: tuple[Definition, ...]
    """In the order of their first items."""

    @property
    def items(self) -> tuple[Item, ...]:
        """Its figures and tables."""
        return tuple(item for definition in self.definitions for item in definition.items)


def arm(label: str, algorithm: str, preset: str | None = None, **config: Any) -> Arm:
    """An arm whose settings differ from the defaults, or from a preset."""
    return Arm(label=label, algorithm=algorithm, preset=preset, config=config)


def fitting(figure: StudyFigure, environments: Sequence[str]) -> StudyFigure:
    """The figure, without normalised scores where only Atari games have the scores for that."""
    if all(environment.startswith("ALE/") for environment in environments):
        return figure
    plain = figure.reduction.model_copy(update={"normalise": None})
    return figure.model_copy(update={"reduction": plain})


def games(*names: str) -> tuple[str, ...]:
    """The ids of Atari games."""
    return tuple(f"ALE/{name}-v5" for name in names)


def rates(low: float = 1e-4, high: float = 1e-2) -> dict[str, Dimension]:
    """Learning rates that are drawn at random, from the range of Mnih et al. 2016 by default."""
    return {"config.learning_rate": Dimension(distribution="log_uniform", low=low, high=high)}


def study_of(paper: Paper, definition: Definition, scale: Scale) -> StudySpec:
    """The study of a definition at a scale."""
    at = definition.scales[scale]
    labels = ", ".join(item.label for item in definition.items)
    return StudySpec(
        name=f"{paper.short} {labels}, {scale}",
        arms=at.arms,
        environments=at.environments,
        draws=at.draws,
        run={"stop": at.stop} if at.stop else {},
        figures=tuple(
            fitting(figure, at.environments)
            for item in definition.items
            for figure in (item.figure, *item.more)
            if figure is not None
        ),
        concurrency=at.concurrency,
    )
