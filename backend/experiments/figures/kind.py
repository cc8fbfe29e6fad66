"""What a kind of figure is. Each module of `kinds` declares one, or several that differ in their drawing."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar, get_args

from sqlalchemy.orm import Session

from backend.drawing.figure import Figure
from backend.drawing.panels import Frame
from backend.experiments.figures.runs import FigureRuns
from backend.experiments.figures.tables import Table
from backend.experiments.specs.study import FigureKind, Rule, StudyFigure, StudySpec

T = TypeVar("T")

Shape = Literal["curves", "scatter", "bars", "stacked_bars", "table", "steps", "counts", "sorted"]
"""The small drawing on the card of a paper's figure; `ShapeIcon.tsx` has each."""
Problem = tuple[str, str]
"""The field of a figure, and what is wrong with it."""


@dataclass(frozen=True)
class StudyDrawing:
    """A figure or a table of a study, with what it says."""

    spec: StudyFigure
    figure: Figure | None
    table: Table | None
    caption: str
    """The rule in words, and how many runs are in."""
    finding: str
    """What it shows so far, in words; empty without any score."""
    n_in: int
    n_planned: int

    @property
    def text(self) -> str:
        """The caption and the finding as sentences, for a file of the figure."""
        return " ".join(filter(None, (f"{self.caption[:1].upper()}{self.caption[1:]}.", self.finding)))


def _has_no_problems(figure: StudyFigure, spec: StudySpec) -> Iterator[Problem]:
    yield from ()


def _loads_nothing(session: Session, runs: FigureRuns) -> None:
    return None


def shows_metrics(figure: StudyFigure) -> bool:
    """Whether a figure has metrics: of bars, tables and counts these are rates, and shares of the time."""
    return bool(figure.metrics)


@dataclass(frozen=True)
class Kind(Generic[T]):
    """A kind of figure."""

    id: FigureKind
    shape: Shape
    draw: Callable[[FigureRuns, T, Frame], StudyDrawing]
    """The figure or the table, from the runs and from what `load` has read."""
    load: Callable[[Session, FigureRuns], T] = _loads_nothing  # type: ignore[assignment]
    """What it reads besides `FigureRuns`."""
    problems: Callable[[StudyFigure, StudySpec], Iterator[Problem]] = _has_no_problems
    """What it needs of a figure's fields, besides the rules below."""
    rules: tuple[Rule, ...] = get_args(Rule)
    """The rules that it can draw, as it shows single runs, curves or times."""
    plain_values: str = ""
    """What it draws as they are, neither normalised nor divided, such as scores; empty if nothing."""
    shows_each_run: bool = False
    """Whether it shows each run, and averages none."""
    shows_times: Callable[[StudyFigure], bool] = shows_metrics
    """Whether a figure shows training times or rates, those of its rule aside."""
