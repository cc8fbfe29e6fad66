"""Response bodies of papers."""

from collections.abc import Mapping, Sequence
from typing import Self

from pydantic import Field

from backend.experiments.definitions import Definition, Item, Paper, study_of
from backend.experiments.figures.kind import Shape
from backend.experiments.figures.kinds import KINDS
from backend.experiments.specs.study import Scale
from backend.experiments.studies.schemas import StudyOut
from backend.specs.fields import Schema


class ScaleOut(Schema):
    """An experiment at one scale."""

    scale: Scale
    """`minutes` and `hours` on two idle cores, or as in the `paper`."""
    n_runs: int
    """Number of its runs."""
    arms: list[str]
    """Labels of the methods that it compares."""
    environments: list[str]
    """Ids of its environments."""
    minutes: float | None
    """Minutes on two idle cores; null if that was not measured."""
    differs: list[str]
    """What differs from the paper, each in one line."""


class PaperItem(Schema):
    """A figure or table of a paper."""

    id: str = Field(examples=["a3c-figure-2"])
    """Id of the figure or table."""
    definition: str = Field(examples=["a3c-figure-2"])
    """Id of the definition of its runs; items with the same runs have the same one."""
    label: str = Field(examples=["Figure 2"])
    """Its number in the paper."""
    title: str
    """What it is about."""
    shape: Shape
    """What it looks like."""
    claim: str
    """What it shows, in one sentence."""
    paper_shows: str
    """What the paper's own figure or table shows, in words."""
    needs: str
    """What this installation lacks for the paper's version, or that the paper has no figure or table of it;
    empty if nothing."""
    needs_people: bool
    """Whether the paper's version starts from states of games played by people."""
    page: str
    """Address of the page that shows it without any run; empty if it needs runs."""
    extra: bool
    """Whether it is a card beside the paper's figures and tables."""
    scales: list[ScaleOut]
    """The scales at which it can be repeated; empty if it needs no run."""
    studies: list[StudyOut]
    """The latest studies of its definition."""

    @classmethod
    def of(cls, paper: Paper, definition: Definition, item: Item, studies: Sequence[StudyOut]) -> Self:
        """From a definition and its studies."""
        return cls(
            id=item.id,
            definition=definition.id,
            label=item.label,
            title=item.title,
            shape="table" if item.figure is None else KINDS[item.figure.kind].shape,
            claim=item.claim,
            paper_shows=item.paper_shows,
            needs=item.needs,
            needs_people=item.needs_people,
            page=item.page,
            extra=item.extra,
            scales=[
                ScaleOut(
                    scale=scale,
                    n_runs=study_of(paper, definition, scale).n_runs,
                    arms=[arm.label for arm in at.arms],
                    environments=list(at.environments),
                    minutes=at.minutes,
                    differs=list(at.differs),
                )
                for scale, at in definition.scales.items()
            ],
            studies=list(studies),
        )


class PaperOut(Schema):
    """A paper with its figures and tables."""

    id: str = Field(examples=["a3c"])
    """Id of the paper."""
    title: str
    """Title of the paper."""
    authors: str
    """Its authors."""
    year: int
    """Year of publication."""
    short: str
    """Its method."""
    items: list[PaperItem]
    """Its figures and tables, in their order."""

    @classmethod
    def of(cls, paper: Paper, studies: Mapping[str, Sequence[StudyOut]]) -> Self:
        """From a paper, and the studies of each definition."""
        return cls(
            id=paper.id,
            title=paper.title,
            authors=paper.authors,
            year=paper.year,
            short=paper.short,
            items=[
                PaperItem.of(paper, definition, item, studies.get(definition.id, ()))
                for definition in paper.definitions
                for item in definition.items
            ],
        )


class Papers(Schema):
    """Every paper."""

    items: list[PaperOut]
    """Papers, in the order of the page."""
