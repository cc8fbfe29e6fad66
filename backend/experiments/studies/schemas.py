"""Request and response bodies of studies."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from backend.db import Experiment, ExperimentCell, Run
from backend.db.experiment import ExperimentState
from backend.drawing.schemas import FigureOut
from backend.experiments.cells.planning import CHANGED
from backend.experiments.cells.rows import CellRow, standing
from backend.experiments.definitions import DEFINITIONS
from backend.experiments.experiments.repository import CellCounts
from backend.experiments.specs.study import MAX_ENVIRONMENTS, FigureKind, Scale, StudySpec
from backend.experiments.specs.sweep import MAX_RUNS, Budget
from backend.platform.schemas import Id, Number, Page
from backend.specs.fields import ULID, Schema, Strict
from backend.specs.protocols import StartsChoice
from backend.specs.run_fields import ChosenName, ProjectName
from backend.specs.states import ENDED

MAX_SOURCE_RUNS = 1_000
"""Runs that one request makes a study of."""


class StudyRequest(Strict):
    """A study to start: a paper's figure or table at a scale, or a study of one's own."""

    item: str | None = Field(
        default=None, max_length=100, description="Id of a figure or table, from `GET /papers`."
    )
    scale: Scale = Field(default="minutes", description="How much of its experiment is repeated.")
    starts: dict[str, StartsChoice] = Field(
        default_factory=dict,
        description="With `item`: environment -> protocol with a start set of it, such as "
        "`agent_starts:pong`, for every game of the scale. Scores are then not normalised.",
    )
    study: StudySpec | None = Field(default=None, description="A study of one's own, instead of `item`.")
    name: ChosenName | None = Field(default=None, description="Another name than the item's.")
    project: ProjectName | None = Field(
        default=None,
        description="Project of its runs; of a study of one's own, in place of that of `study.run`.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.item is None) == (self.study is None):
            raise ValueError("give either item or study")
        if self.starts and self.item is None:
            raise ValueError("starts: only with item; a study of one's own has its own")
        return self


class StudyExtension(Strict):
    """The body of `POST /studies/{id}/extend`: what is left out does not change."""

    draws: int | None = Field(
        default=None,
        ge=1,
        le=MAX_RUNS,
        description="Draws of each arm on each environment, with those so far.",
    )
    environments: list[str] | None = Field(
        default=None, max_length=MAX_ENVIRONMENTS, description="Ids of further environments."
    )
    budget: Budget | None = Field(default=None, description="New limits, which replace the former ones.")


class StudyOut(Schema):
    """A study."""

    id: Id
    """Id of the study."""
    name: str = Field(examples=["A3C Figure 2, minutes"])
    """Name of the study, as pages show it."""
    notes: str
    """Free text about the study, in Markdown."""
    definition: str | None = Field(examples=["a3c-figure-2"])
    """Id of the papers' definition that it was made from; null for a study of one's own."""
    scale: Scale | None
    """Scale of that definition."""
    state: ExperimentState
    """State of the study."""
    state_reason: str
    """Why the study is in its state."""
    created_at: datetime
    """When the study was created."""
    created_by: str | None
    """Id of the user who created the study; null if that user has been deleted."""
    ended_at: datetime | None
    """When the study ended; null before."""
    revision: int
    """Number of changes of the study so far."""
    n_runs: int
    """Number of its cells, each of which is filled by one run."""
    runs: dict[str, int]
    """Its cells by the state of their run; `waiting` before the start, `deleted` without the run, `changed`
    if it has ended and was resumed with another limit or changed live, `invalid` if none can be started."""

    @classmethod
    def of(cls, study: Experiment, counts: Mapping[str, CellCounts]) -> "StudyOut":
        """From a study's row, and the counts of several studies."""
        n = +counts[study.id].cells
        return StudyOut(
            id=study.id,
            name=study.name,
            notes=study.spec["notes"],
            definition=study.definition,
            scale=study.scale,
            state=study.state,
            state_reason=study.state_reason,
            created_at=study.created_at,
            created_by=study.created_by,
            ended_at=study.ended_at,
            revision=study.revision,
            n_runs=n.total(),
            runs=dict(n),
        )


class StudyPage(Page):
    """A page of studies."""

    items: list[StudyOut]
    """Studies of this page."""


class ArmProgress(Schema):
    """How far an arm is on an environment."""

    arm: str
    """Label of the arm."""
    environment: str
    """Id of the environment."""
    runs: dict[str, int]
    """Its cells by the state of their run, as in `StudyOut`."""
    score: Number
    """Mean score of its finished runs: the mean return of their last 100 training episodes."""


class PublishedTableOut(Schema):
    """Values of a paper's table, as it prints them."""

    columns: list[str]
    """Heads of the columns."""
    rows: list[list[str]]
    """Cells of each row, its name first."""
    source: str
    """The paper and its table."""


class StudyItem(Schema):
    """The figure or table of a paper that a study repeats."""

    id: str
    """Id of the figure or table, from `GET /papers`."""
    label: str = Field(examples=["Figure 2"])
    """Its number in the paper."""
    title: str
    """What it is about."""
    claim: str
    """What it shows, in one sentence."""
    paper_shows: str
    """What the paper's own figure or table shows, in words."""
    figure: str | None
    """Id of its figure in the study."""
    published: PublishedTableOut | None
    """The paper's values, where they are not columns of its figure."""


class StudyDetail(StudyOut):
    """A study with its definition and its progress."""

    spec: StudySpec
    """The study's copy of its definition, with its extensions."""
    paper: str | None
    """Title of the paper."""
    items: list[StudyItem]
    """The paper's figures and tables that it repeats."""
    differs: list[str]
    """What differs from the paper at this scale."""
    progress: list[ArmProgress]
    """Every arm on every environment."""
    n_reused: int
    """Runs that existed before; they stay in their groups."""
    agent_steps: int
    """Agent steps of its runs so far, without those that existed before."""
    wall_time_s: float
    """Training time of its runs so far, without those that existed before."""
    time_left_s: Number
    """Time until its runs have ended, by this installation's rates; null if that is not known."""

    @classmethod
    def of_rows(
        cls, summary: StudyOut, spec: StudySpec, cells: Sequence[CellRow], time_left_s: float | None
    ) -> Self:
        """From a study as in lists, its specification and all its cells."""
        paper, definition = DEFINITIONS.get(summary.definition or "", (None, None))
        own = [cell for cell in cells if not cell.reused]
        shown = {figure.id for figure in spec.figures}
        return cls(
            **summary.model_dump(),
            spec=spec,
            paper=None if paper is None else paper.title,
            items=[
                StudyItem(
                    id=item.id,
                    label=item.label,
                    title=item.title,
                    claim=item.claim,
                    paper_shows=item.paper_shows,
                    figure=item.figure.id if item.figure and item.figure.id in shown else None,
                    published=item.published and PublishedTableOut(**asdict(item.published)),
                )
                for item in (definition.items if definition else ())
            ],
            differs=list(spec.differs),
            progress=_progress(spec, cells),
            n_reused=len(cells) - len(own),
            agent_steps=sum(cell.agent_steps for cell in own),
            wall_time_s=sum(cell.wall_time_s for cell in own),
            time_left_s=time_left_s,
        )


def _progress(spec: StudySpec, cells: Sequence[CellRow]) -> list[ArmProgress]:
    by_place: dict[tuple[int, str], list[CellRow]] = {}
    for cell in cells:
        by_place.setdefault((cell.arm, cell.environment), []).append(cell)
    progress = []
    for environment in spec.environments:
        for number, arm in enumerate(spec.arms):
            group = by_place.get((number, environment), [])
            scores = [cell.score for cell in group if cell.counts and cell.score is not None]
            progress.append(
                ArmProgress(
                    arm=arm.label,
                    environment=environment,
                    runs=dict(Counter(cell.standing for cell in group)),
                    score=sum(scores) / len(scores) if scores else None,
                )
            )
    return progress


class CellOut(Schema):
    """A draw of an arm on an environment, and the run that fills it."""

    number: int
    """Number of the cell, from 0."""
    arm: str
    """Label of the arm."""
    environment: str
    """Id of the environment."""
    draw: int
    """Number of the draw, from 0."""
    seed: int
    """Seed of the run, fixed before any run was looked at."""
    settings: dict[str, Any]
    """The draw's random settings, by field path."""
    run: str | None
    """Id of the run; null before the start, and if the run has been deleted."""
    name: str | None
    """Name of the run."""
    state: str
    """State of the run; `waiting` before the start, `deleted` without it, `changed` if it has ended and was
    resumed with another limit or changed live, so that it does not count; `invalid` if none can be
    started."""
    reused: bool
    """Whether the run existed before: it has an equal specification, seed, limits and engine version."""
    score: Number
    """Mean return of the last 100 training episodes; null before an episode has ended."""
    agent_steps: int
    """Agent steps of the run so far."""
    error: str | None
    """Why no run can be started."""

    @classmethod
    def of(
        cls, spec: StudySpec, cell: ExperimentCell, run: Run | None, *, is_changed: bool, is_running: bool
    ) -> Self:
        """From a cell's row, its run, which was changed or trains as planned, and whether its study runs."""
        is_started = cell.started or (run is not None and not is_running)
        state = standing(
            started=is_started, has_error=cell.error is not None, state=None if run is None else run.state
        )
        return cls(
            number=cell.number,
            arm=spec.label_of(cell.arm),
            environment=cell.environment,
            draw=cell.draw,
            seed=cell.seed,
            settings=cell.settings,
            run=None if run is None else run.id,
            name=None if run is None else run.name,
            state=CHANGED if is_changed and state in ENDED else state,
            reused=cell.reused,
            score=None if run is None else run.score,
            agent_steps=0 if run is None else run.agent_steps,
            error=cell.error,
        )


class CellPage(Page):
    """A page of a study's cells."""

    items: list[CellOut]
    """Cells of this page."""


class ColumnOut(Schema):
    """The head of a column."""

    title: str
    """Name of the method or of the published score."""
    how: str
    """Protocol and rule of its scores; for published ones the protocol and where they were published."""
    source: Literal["name", "ours", "published"]
    """What the column has: labels of rows, scores of the study, or published scores."""
    unit: str
    """Unit of its values; empty for scores."""


class TableCellOut(Schema):
    """A value of a table."""

    value: Number
    """The value; null if there is none yet."""
    low: Number
    """Lower bound of its 95 % interval."""
    high: Number
    """Upper bound of its 95 % interval."""
    n: int | None
    """Runs that are in; null for a published score."""
    planned: int | None
    """Runs that the study has for it."""


class TableRowOut(Schema):
    """A row of a table."""

    label: str
    """What the row is about."""
    cells: list[TableCellOut]
    """Its values, one for each further column."""


class TableOut(Schema):
    """A table of a study."""

    columns: list[ColumnOut]
    """Heads of the columns; the first one is that of the labels."""
    rows: list[TableRowOut]
    """Rows."""
    foot: list[TableRowOut]
    """Means and medians over the environments for which every method has a value."""


class StudyFigureOut(Schema):
    """A figure or a table of a study, reduced to what is drawn."""

    id: str
    """Id of the figure."""
    title: str
    """Title of the figure."""
    kind: FigureKind
    """What it looks like."""
    figure: FigureOut | None
    """For Plotly; null for a table."""
    table: TableOut | None
    """Null for a figure."""
    caption: str
    """The rule in words, and how many runs are in."""
    finding: str
    """What it shows so far, in words; empty without any score."""
    n_in: int
    """Runs that are in."""
    n_planned: int
    """Runs of the study."""


class UnmeasuredKind(Schema):
    """A kind of runs whose rate was not measured here."""

    algorithm: str
    """Id of the algorithm."""
    environment: str
    """Id of the environment."""


class StudyEstimate(Schema):
    """What a study would cost."""

    n_runs: int
    """Number of its runs."""
    n_reused: int
    """Runs of these that exist already: an equal specification, seed, limits and engine version."""
    agent_steps: int | None
    """Agent steps of the runs to start; null if a run's are not known: it is limited by score alone, or by
    time at an unmeasured rate."""
    time_s: Number
    """Time on this installation's hosts by their measured rates; null if a run's is not known: it is limited
    by score alone, or by agent steps at an unmeasured rate."""
    minutes_on_two_cores: Number
    """Minutes on two idle cores, as measured for this scale; null if that was not measured."""
    memory_bytes: int
    """Upper estimate of the memory of the run that needs the most."""
    processes: int
    """Processes that act, learn or hold parameters, of the run that has the most."""
    disk_bytes: int
    """Disk space of the runs to start."""
    warnings: list[str]
    """Why no host of this installation can run some of its runs well."""
    slots: int
    """Runs that this installation's hosts train at the same time."""
    unmeasured: list[UnmeasuredKind]
    """Kinds of runs whose rate was not measured here."""
    differs: list[str]
    """What differs from the paper at this scale."""


class StudySource(Strict):
    """What a study is made of: runs, or the runs of a sweep."""

    runs: list[Annotated[str, Field(pattern=ULID)]] | None = Field(
        default=None, min_length=1, max_length=MAX_SOURCE_RUNS, description="Ids of the runs."
    )
    sweep: Annotated[str, Field(pattern=ULID)] | None = Field(
        default=None, description="Id of a sweep, instead of `runs`."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.runs is None) == (self.sweep is None):
            raise ValueError("give either runs or sweep")
        return self


class UnusedRunOut(Schema):
    """A run that a study is made of, and that fills none of its cells."""

    run: Id
    """Id of the run."""
    name: str
    """Name of the run."""
    reason: str
    """Why it fills none."""


class StudyDraft(Schema):
    """A study made of runs, before it is started: its arms are their configurations."""

    study: StudySpec
    """The study, for the field `study` of `POST /studies`."""
    estimate: StudyEstimate
    """What it would cost."""
    n_runs: int
    """Number of runs that it is made of."""
    unused: list[UnusedRunOut]
    """Those that fill none of its cells."""
