"""Figures of stored data."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from sqlalchemy.orm import Session

from backend.analysis.comparisons import service as comparisons
from backend.analysis.comparisons.captions import results_in_words
from backend.analysis.figures import repository
from backend.analysis.figures.levels import evaluated, levels
from backend.analysis.figures.marks import places_of, restarts, setting_changes, step_notes, symptoms
from backend.analysis.figures.styles import run_styles
from backend.analysis.metrics import service as metrics
from backend.analysis.metrics.axes import MAX_X, Axes, with_scales
from backend.analysis.metrics.charts import SeriesBuckets, curves
from backend.analysis.metrics.run_axes import locator
from backend.analysis.metrics.seed_groups import group_curve
from backend.analysis.symptoms import service as doctor
from backend.db import Run, Series
from backend.drawing.catalogue import EPISODE_RETURN, X_AXES, describe
from backend.drawing.curve import MANY, Band, CurveLine, add_lines, curve_figure
from backend.drawing.diagnostics import (
    BY_ID,
    add_panel_lines,
    available_panels,
    diagnostic_figure,
)
from backend.drawing.export_caption import caption
from backend.drawing.figure import Figure, FigureOptions, Label
from backend.drawing.learning_curve import add_levels, learning_curve_figure
from backend.drawing.marks import Mark
from backend.drawing.palette import IN_ORDER, Theme, WantedStyles
from backend.drawing.seed_curve import SeedGroup, add_groups, seed_curve_figure
from backend.drawing.theme import in_panel, plain_text
from backend.platform.errors import Invalid
from backend.runs.evaluations import repository as evaluations
from backend.runs.runs.groups import (
    group_key,
)
from backend.runs.runs.names import names_of_groups, names_of_runs, subject
from backend.specs.metrics import Panel
from backend.specs.problems import quoted
from backend.statistics.columns import Columns
from backend.statistics.grouping import Spread

_VALUES = (
    "mean", "min", "max", "last", "smoothed", "window_mean", "window_low", "window_high",
    "median", "iqm", "low", "high",
)  # fmt: skip
"""Columns of buckets and of groups that are in the unit of the metric."""

_AXIS_CHARACTERS = 32
"""Longest name of a metric in the title of an axis of a panel."""

FigureKind = Literal["learning_curve", "curve", "seed_curve", "diagnostic"]


@dataclass(frozen=True)
class FigureName:
    """Which figure of some runs."""

    kind: FigureKind
    of: str
    """The metric, or the diagnostics panel."""

    @property
    def is_of_returns(self) -> bool:
        """Whether it shows the return metric of each run, by which the run is scored."""
        return self.kind == "learning_curve" or (self.kind == "seed_curve" and self.of == EPISODE_RETURN)

    @property
    def metrics(self) -> list[str]:
        """The metrics that it shows."""
        return list(BY_ID[self.of].names) if self.kind == "diagnostic" else [self.of]

    @classmethod
    def parse(cls, text: str) -> "FigureName":
        """From `learning_curve`, `curve:METRIC`, `seed_curve:METRIC` or `diagnostic:PANEL`.

        Raises:
            Invalid: there is no such figure.
        """
        kind, _, of = text.partition(":")
        if kind == "learning_curve" and not of:
            return cls("learning_curve", EPISODE_RETURN)
        if kind == "curve" and of:
            return cls("curve", of)
        if kind == "seed_curve" and of:
            return cls("seed_curve", of)
        if kind == "diagnostic" and of in BY_ID:
            return cls("diagnostic", of)
        forms = "learning_curve, curve:METRIC, seed_curve:METRIC or diagnostic:PANEL"
        raise Invalid.field("figure", f"unknown figure {quoted(text)}; use {forms}")


@dataclass(frozen=True)
class FigureRequest:
    """Figures of the same runs."""

    runs: Sequence[str]
    names: Sequence[FigureName]
    sources: Sequence[str]
    axes: Axes
    spread: Spread
    options: FigureOptions
    since: Sequence[int] = ()
    """The client's revisions: one for all runs, or one per run; empty for a client without the figures."""
    with_layout: bool = True
    """For a client with the figures: also the layout, and the traces that do not grow."""
    styles: WantedStyles = IN_ORDER
    """The view's."""
    band: Band = "auto"
    """Around the lines of runs."""
    environment: str | None = None
    """Only runs of it are drawn, in the styles of all."""


@dataclass(frozen=True)
class DrawnFigures:
    """The requested figures, in their order."""

    figures: list[Figure]
    revisions: list[int]
    """The runs' revisions."""
    updated: bool
    """Whether growing traces start where the client's end."""

    def documents(self) -> list[dict[str, Any]]:
        """As JSON names and numbers."""
        return [figure.document() | {"revisions": self.revisions} for figure in self.figures]


def draw(session: Session, request: FigureRequest) -> DrawnFigures:
    """Figures of some runs, or what a client lacks of them.

    Raises:
        NotFound: there is no such run.
        Invalid: they would be too large, or the number of revisions is wrong.
    """
    drawing = _Drawing(session, request)
    with metrics.bounded(sum(map(len, drawing.chosen)), request.axes):
        figures = drawing.draw()
    revisions = [drawing.found[run_id].revision for run_id in request.runs]
    return DrawnFigures(figures, revisions, updated=drawing.since is not None)


def draw_in_themes(session: Session, request: FigureRequest, themes: Sequence[Theme]) -> list[list[Figure]]:
    """Figures of some runs in each of these themes, from one read of their series.

    Raises:
        NotFound: there is no such run.
        Invalid: they would be too large.
    """
    drawing = _Drawing(session, request)
    with metrics.bounded(sum(map(len, drawing.chosen)), request.axes):
        return [drawing.draw(theme) for theme in themes]


def caption_of(session: Session, request: FigureRequest, figure: Figure) -> str:
    """The caption of the only figure of a request; groups of returns are compared by their scores.

    Raises:
        NotFound: there is no such run.
    """
    [name] = request.names
    is_tested = name.kind == "seed_curve" and name.is_of_returns
    shown = [
        id_
        for id_, run in metrics.find_runs(session, request.runs).items()
        if request.environment in (None, run.environment)
    ]
    if not is_tested:
        return caption(figure)
    comparison = comparisons.compare(session, shown, "training", "common", None)
    return caption(figure, results_in_words(comparison))


class _Drawing:
    """One request's figures. The series of all of them are read at once."""

    def __init__(self, session: Session, request: FigureRequest) -> None:
        self._session = session
        self.found = metrics.find_runs(session, request.runs)
        self._drawn = {
            id_: run for id_, run in self.found.items() if request.environment in (None, run.environment)
        }
        axes = with_scales(session, request.axes, self.found.values())
        self.since = metrics.revisions_had(request.since, request.runs, self.found, request.axes, axes)
        self._request = request = replace(request, axes=axes)
        self.chosen = self._choose()
        self._has_gaps = any(row.n_finite < row.n_points for rows in self.chosen for row in rows)
        if self._has_gaps and request.with_layout and not request.options.in_panel:
            self.since = None  # the layout counts what is not finite
        self._styles = run_styles(self.found, request.styles)
        self._names = dict(zip(self.found, names_of_runs(list(self.found.values())).names, strict=True))
        """By id, what the runs are called in this view."""
        self._has_layout = request.with_layout or self.since is None
        self._seed_groups: dict[FigureName, tuple[list[str], list[SeedGroup]]] = {}

    @cached_property
    def _read(self) -> Mapping[int, SeriesBuckets]:
        """The series that are lines of their own, by id."""
        names = self._request.names
        apart: dict[int, Series] = {}
        has_ranges = self._has_gaps
        for name, rows in zip(names, self.chosen, strict=True):
            if name.kind != "seed_curve":
                apart |= {row.id: row for row in rows}
                has_ranges |= name.kind != "diagnostic" and len(rows) <= MANY
        return curves(
            self._session,
            list(apart.values()),
            self._request.axes,
            self.since,
            is_merged=True,
            has_joining_bucket=has_ranges,
            has_gaps=True,
        )

    def draw(self, theme: Theme | None = None) -> list[Figure]:
        """The figures; in another theme than the request's, from the same read."""
        if theme is not None:
            self._request = replace(self._request, options=replace(self._request.options, theme=theme))
        names, read = self._request.names, self._read
        draw = self._draw_whole if self._has_layout else self._draw_tails
        figures = [
            draw(name, rows, [] if name.kind == "seed_curve" else self._lines(name, rows, read))
            for name, rows in zip(names, self.chosen, strict=True)
        ]
        for figure in figures:
            figure.scales = self._request.axes.scales
        return figures

    def _choose(self) -> list[list[Series]]:
        """The series of each figure."""
        request = self._request
        # The metrics of figures that have the same sources are looked up together.
        sources_of = {
            "learning_curve": (),
            "curve": tuple(request.sources),
            "seed_curve": tuple(request.sources),
            "diagnostic": (metrics.ANY_SOURCE,),
        }
        wanted: dict[tuple[tuple[str, ...], bool], dict[str, None]] = {}
        keys = [(sources_of[name.kind], name.is_of_returns) for name in request.names]
        for key, name in zip(keys, request.names, strict=True):
            wanted.setdefault(key, {}).update(dict.fromkeys(name.metrics))
        chosen = {
            (sources, scored): metrics.choose(self._session, self._drawn, list(names), sources, scored=scored)
            for (sources, scored), names in wanted.items()
        }
        metric_of = {row: row.metric for rows in chosen.values() for row in rows}
        drawn = []
        for key, name in zip(keys, request.names, strict=True):
            wanted_here = set(name.metrics)
            rows = [row for row in chosen[key] if metric_of[row] in wanted_here]
            drawn.append(metrics.on_one_axis(rows, request.axes.x))
        return drawn

    def _draw_tails(self, name: FigureName, series: Sequence[Series], lines: Sequence[CurveLine]) -> Figure:
        """What a client with the layout lacks of the traces that grow."""
        figure, smooth, theme = Figure(), self._request.axes.description, self._request.options.theme
        if name.kind == "seed_curve":
            order, groups = self._groups(name, series)
            wanted = self._request.styles.of_groups
            add_groups(figure, groups, spread=self._request.spread, order=order, wanted=wanted, theme=theme)
        elif name.kind == "diagnostic":
            add_panel_lines(figure, BY_ID[name.of], lines, smooth=smooth, theme=theme)
        else:
            band, styles = self._request.band, self._styles
            add_lines(figure, lines, metric=name.of, smooth=smooth, band=band, styles=styles, theme=theme)
        return figure

    def _draw_whole(self, name: FigureName, series: Sequence[Series], lines: Sequence[CurveLine]) -> Figure:
        """A figure with its layout; of traces that grow, what a client lacks."""
        request = self._request
        if name.kind == "learning_curve":
            figure = self._learning_curve(lines, _counted(request.axes.x, series))
        elif name.kind == "diagnostic":
            figure = self._diagnostic(BY_ID[name.of], lines, _counted(request.axes.x, series))
        elif name.kind == "seed_curve":
            figure = self._seed_curve(name, series)
        else:
            figure = self._curve(name.of, lines, _counted(request.axes.x, series))
        if title := self._returns_title(name, series):
            figure.layout["yaxis"]["title"] = {"text": title}
        if request.options.in_panel:
            figure.layout = in_panel(figure.layout)
        elif request.axes.span is not None and request.axes.span[1] < MAX_X:
            shown = {"range": list(request.axes.span), "rangemode": "normal"}
            figure.layout["xaxis"] = figure.layout.get("xaxis", {}) | shown
        return figure

    def _curve(self, metric: str, lines: Sequence[CurveLine], x: str) -> Figure:
        """One metric; that of evaluations with the published scores of their protocol."""
        request = self._request
        figure = curve_figure(
            lines,
            metric=metric,
            x=x,
            smooth=request.axes.description,
            band=request.band,
            title=self._title(describe(metric).title),
            styles=self._styles,
            theme=request.options.theme,
            width_px=request.options.width_px,
        )
        section, _, name = metric.rpartition("/")
        if section.startswith("eval/") and name == "mean_return" and lines:
            self._add_levels(figure, {line.run for line in lines}, section.removeprefix("eval/"))
        return figure

    def _add_levels(self, figure: Figure, run_ids: Collection[str], protocol: str | None = None) -> None:
        """Published scores that can be compared with the runs; only those of a protocol, if it is given."""
        shown = {id_: run for id_, run in self._drawn.items() if id_ in run_ids}
        comparable = levels(self._session, shown, evaluations.finished(self._session, list(shown)))
        best = max((run.best_return for run in shown.values() if run.best_return is not None), default=None)
        of_protocol = [level for level in comparable if protocol in (None, level.protocol)]
        add_levels(figure, of_protocol, best, self._request.options.theme)

    def _returns_title(self, name: FigureName, series: Sequence[Series]) -> str | None:
        """The title of an axis of returns that are stored under other names; None for any other axis."""
        if name.of != EPISODE_RETURN:
            return None
        stored = metrics.stored_returns(self._session, self._drawn.values(), series)
        if stored <= {EPISODE_RETURN}:
            return None
        if len(stored) > 1:
            return "Return (the metric of each run)"
        [metric] = stored
        is_long = self._request.options.in_panel and len(metric) > _AXIS_CHARACTERS
        return f"Return ({plain_text('…' + metric[1 - _AXIS_CHARACTERS :] if is_long else metric)})"

    def _title(self, what: str) -> str:
        return f"{what}, {subject((self._drawn or self.found).values())}"

    def _learning_curve(self, lines: Sequence[CurveLine], x: str) -> Figure:
        """Returns, with evaluations, checkpoints, restarts, setting changes, notes and symptoms."""
        session, request, runs_by_id = self._session, self._request, self._drawn
        run_ids, axes = list(runs_by_id), request.axes
        saved = repository.checkpoints(session, run_ids)
        done = evaluations.finished(session, run_ids)
        attempts = repository.attempts(session, run_ids)
        changes = repository.setting_changes(session, run_ids)
        x_of = locator(session, run_ids, axes.x)
        places = places_of(saved, runs_by_id, x_of)
        names = {
            id_: f"{plain_text(name)}: " if len(runs_by_id) > 1 else "" for id_, name in self._names.items()
        }
        observed: list[Mark] = []
        if len(runs_by_id) == 1:
            [run] = runs_by_id.values()
            observed = symptoms(doctor.symptoms(session, run), run, saved, x_of)
        bests = [run.best_return for run in runs_by_id.values() if run.best_return is not None]
        return learning_curve_figure(
            lines,
            runs=list(runs_by_id),
            evaluations=evaluated(done, saved, self._names, x_of),
            levels=levels(self._session, runs_by_id, done),
            best=max(bests, default=None),
            checkpoints=[
                Mark(
                    checkpoint.run_id,
                    x_of(checkpoint) or 0.0,
                    f"{names[checkpoint.run_id]}checkpoint at {checkpoint.agent_steps:,} "
                    + X_AXES[runs_by_id[checkpoint.run_id].step_unit].unit,
                )
                for checkpoint in saved
                if not checkpoint.removed
            ],
            restarts=restarts(attempts, places, names),
            setting_changes=setting_changes(changes, attempts, places, names, x_of),
            notes=step_notes(repository.step_notes(session, run_ids), runs_by_id, saved, names, x_of),
            symptoms=observed,
            x=x,
            smooth=axes.description,
            band=request.band,
            title=self._title("Learning curve"),
            styles=self._styles,
            theme=request.options.theme,
            width_px=request.options.width_px,
        )

    def _diagnostic(self, panel: Panel, lines: Sequence[CurveLine], x: str) -> Figure:
        return diagnostic_figure(
            panel,
            lines,
            x=x,
            smooth=self._request.axes.description,
            title=self._title(panel.title),
            theme=self._request.options.theme,
        )

    def _seed_curve(self, name: FigureName, series: Sequence[Series]) -> Figure:
        """One metric; runs that differ in their seed alone are one curve."""
        request, metric = self._request, name.of
        order, groups = self._groups(name, series)
        figure = seed_curve_figure(
            groups,
            metric=metric,
            x=_counted(request.axes.x, series),
            spread=request.spread,
            order=order,
            wanted=request.styles.of_groups,
            smooth=request.axes.description,
            title=self._title(describe(metric).title),
            theme=request.options.theme,
            width_px=request.options.width_px,
        )
        if metric == EPISODE_RETURN:
            self._add_levels(figure, [run for group in groups for run in group.runs])
        return figure

    def _groups(self, name: FigureName, series: Sequence[Series]) -> tuple[list[str], list[SeedGroup]]:
        """The ids of all compared groups in the order in which they get styles, and those with data."""
        if name not in self._seed_groups:
            self._seed_groups[name] = self._read_groups(series)
        return self._seed_groups[name]

    def _read_groups(self, series: Sequence[Series]) -> tuple[list[str], list[SeedGroup]]:
        request, runs_by_id = self._request, self.found
        firsts: dict[str, Run] = {}
        for run in runs_by_id.values():
            firsts.setdefault(group_key(run), run)
        names = dict(zip(firsts, names_of_groups(list(firsts.values())).names, strict=True))
        groups = []
        for members in metrics.seed_groups(self._session, series, runs_by_id):
            key, source = group_key(runs_by_id[members[0].run_id]), members[0].source
            curve = group_curve(self._session, members, request.axes, request.spread, self.since)
            groups.append(
                SeedGroup(
                    id=key,
                    label=Label(names[key], source, len(members)),
                    runs=[row.run_id for row in members],
                    metric=members[0].metric,
                    source=source,
                    columns=in_unit(curve.grid, members[0].metric),
                    seed_values=list(curve.seed_values / describe(members[0].metric).divisor),
                    is_partial=curve.is_partial,
                    not_finite=curve.not_finite,
                    n_total=curve.n_rows,
                    n_shown=curve.n_points,
                    start=None if curve.reset else curve.first_bucket,
                )
            )
        return list(firsts), groups

    def _lines(
        self, name: FigureName, series: Sequence[Series], read: Mapping[int, SeriesBuckets]
    ) -> list[CurveLine]:
        ordered = sorted(series, key=_by_number) if name.kind == "diagnostic" else series
        has_sources = any(row.source for row in series)
        lines = []
        for row in ordered:
            curve = read[row.id]
            lines.append(
                CurveLine(
                    run=row.run_id,
                    label=self._label(name, row, has_sources=has_sources),
                    metric=row.metric,
                    source=row.source,
                    columns=in_unit(curve.buckets, row.metric) | {"x": curve.buckets[self._request.axes.x]},
                    n_total=curve.n_rows,
                    n_shown=curve.n_buckets,
                    start=None if curve.reset else curve.first_bucket,
                )
            )
        return lines

    def _label(self, name: FigureName, series: Series, *, has_sources: bool) -> Label:
        if len(self.found) > 1:
            return Label(self._names[series.run_id], series.source)
        # The title names the run; the legend distinguishes training from evaluations.
        if name.kind == "learning_curve":
            return Label("training")
        if has_sources:
            return Label(series.source or "whole run")
        return Label(self.found[series.run_id].name)


def diagnostic_panels(session: Session, run_id: str) -> list[Panel]:
    """The diagnostics panels that a run has data for.

    Raises:
        NotFound: there is no such run.
    """
    return available_panels({series.metric for series in metrics.series_of(session, run_id)})


def _by_number(series: Series) -> list[int]:
    """Sorts `actor 10` after `actor 9`, and keeps the order of the metrics."""
    return [int(number) for number in re.findall(r"\d+", series.source)[:1]]


def in_unit(columns: Columns, metric: str) -> Columns:
    """Columns of a metric in the unit that figures draw it in."""
    divisor = describe(metric).divisor
    if divisor == 1.0:
        return columns
    return columns | {name: columns[name] / divisor for name in _VALUES if name in columns}


def _counted(x: str, chosen: Sequence[Series]) -> str:
    """What an axis counts: in place of agent steps perhaps iterations or seconds, for external runs."""
    return metrics.axis_unit({row.step_unit for row in chosen}, x) if x == "agent_steps" else x
