"""The papers' figures and tables as definitions of studies.

An item is a figure or a table of a paper, with its claim. Items that need the same runs have one definition,
whose studies have a figure for each of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from backend.experiments.specs.study import Arm, Draws, Scale, StudyFigure, StudySpec
from backend.experiments.specs.sweep import Dimension

HUMAN_STARTS = (
    "Needs games played by people: without a start set of them, evaluations start from states of agents' "
    "games, or with no-ops"
)
NOOP_STARTS = "No-op starts instead of human starts"
STANDARD_RESETS = "Standard resets instead of human starts"
CENTRED = "Observations centred by the mean image of random play, with which fewer agent steps are enough"
SIDE_BY_SIDE = (
    "Runs train beside each other on a host with several slots, which changes their times and rates"
)
INITIAL_WEIGHTS = (
    "Initial weights are orthogonal; the papers state none, and their authors' codes draw uniformly"
)
NO_FIGURE = "No figure or table of the paper: a study of ours of what its text states"
_AGENT_STARTS = "States of agents' games instead of human starts: scores are not normalised"
_OWN_STARTS = "States of games that people have played here, not the paper's: scores are not normalised"


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
    """Minutes on two idle cores, none of its runs reused, on the slowest machine that measured them; None if
    none did."""
    concurrency: int = 10
    """Runs that wait or train at the same time: 1 where times or rates are compared, which runs beside each
    other on one machine would change, and in studies that share runs with these. Where it is more all the
    same, `differs` has `SIDE_BY_SIDE`."""


@dataclass(frozen=True)
class PublishedTable:
    """Values of a paper's table, as it prints them."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    source: str
    """The paper and its table, with the hardware if it is the same for all rows."""


@dataclass(frozen=True)
class Item:
    """A figure or table of a paper."""

    id: str
    label: str
    """As in the paper: `Figure 2`."""
    title: str
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
    """What this installation lacks for the paper's version, and what stands in its place; or that the paper
    has no figure or table of it."""
    needs_people: bool = False
    """Whether the paper's version starts from states of games played by people."""
    published: PublishedTable | None = None
    """The paper's values, where they are not columns of its figure."""
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


def fitting(figure: StudyFigure, at: AtScale, starts: Mapping[str, str]) -> StudyFigure:
    """The figure with the arms of its scale. Its scores are those of evaluations only where the arms have
    them, and stay normalised only on Atari games without start sets: no published scores apply elsewhere."""
    labels = {arm.label for arm in at.arms}
    figure = figure.model_copy(update={"arms": tuple(label for label in figure.arms if label in labels)})
    if any(arm.config.get("evaluation_episodes") == 0 for arm in at.arms):
        trained = figure.reduction.model_copy(update={"source": "training"})
        figure = figure.model_copy(update={"reduction": trained})
    if not starts and all(environment.startswith("ALE/") for environment in at.environments):
        return figure
    plain = figure.reduction.model_copy(update={"normalise": None})
    title = figure.title
    if starts and figure.kind in ("games", "table"):
        title = "Scores from our starts"
    elif figure.reduction.normalise:
        title = "Scores, not normalised"
    return figure.model_copy(update={"reduction": plain, "title": title})


def games(*names: str) -> tuple[str, ...]:
    """The ids of Atari games."""
    return tuple(f"ALE/{name}-v5" for name in names)


def rates(low: float = 1e-4, high: float = 1e-2) -> dict[str, Dimension]:
    """Learning rates that are drawn at random, from the range of Mnih et al. 2016 by default."""
    return {"config.learning_rate": Dimension(distribution="log_uniform", low=low, high=high)}


def _differences(at: AtScale, starts: Mapping[str, str]) -> tuple[str, ...]:
    """What differs from the paper if evaluations start from these sets, each in one line."""
    if not starts:
        return at.differs
    of_people = all(protocol.startswith("human_starts") for protocol in starts.values())
    rest = [line for line in at.differs if line != NOOP_STARTS]
    return (_OWN_STARTS if of_people else _AGENT_STARTS, *rest)


def study_of(
    paper: Paper, definition: Definition, scale: Scale, starts: Mapping[str, str] | None = None
) -> StudySpec:
    """The study of a definition at a scale.

    Args:
        paper: the paper of the definition.
        definition: what is studied.
        scale: one of the definition's scales.
        starts: protocol with a start set, by environment: the study then has the figures of the items whose
            paper's version starts from such sets. None or empty: the default protocols.
    """
    starts = starts or {}
    at = definition.scales[scale]
    of_starts = [item for item in definition.items if item.needs_people] if starts else []
    items = of_starts or definition.items
    labels = ", ".join(item.label for item in items)
    return StudySpec(
        name=f"{paper.short} {labels}, {scale}",
        arms=at.arms,
        environments=at.environments,
        draws=at.draws,
        starts=dict(starts),
        run={"stop": at.stop} if at.stop else {},
        figures=tuple(
            fitting(figure, at, starts)
            for item in items
            for figure in (item.figure, *item.more)
            if figure is not None
        ),
        differs=_differences(at, starts),
        concurrency=at.concurrency,
    )
