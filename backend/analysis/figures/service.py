"""Figures of stored data."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from sqlalchemy.orm import Session

from backend.analysis.comparisons import service as comparisons
from backend.analysis.figures import repository
from backend.analysis.figures.branch import FanLine, PersonLine, branch_figure
from backend.analysis.figures.curve import MANY, Band, CurveLine, add_lines, curve_figure
from backend.analysis.figures.diagnostics import (
    BY_ID,
    add_panel_lines,
    available_panels,
    diagnostic_figure,
)
from backend.analysis.figures.episode_trace import TracePanel, discount, episode_trace_figure
from backend.analysis.figures.export_caption import caption
from backend.analysis.figures.figure import Figure, Label
from backend.analysis.figures.learning_curve import Evaluated, Level, add_levels, learning_curve_figure
from backend.analysis.figures.marks import Mark, XOf, places_of, restarts, setting_changes, step_notes
from backend.analysis.figures.palette import IN_ORDER, Theme, WantedStyles, distinct_styles
from backend.analysis.figures.scatter import Dot, scatter_figure, setting_field, setting_value
from backend.analysis.figures.seed_curve import SeedGroup, add_groups, seed_curve_figure, seeds_label
from backend.analysis.figures.theme import in_panel, plain_text
from backend.analysis.metrics import service as metrics
from backend.analysis.metrics.catalogue import EPISODE_RETURN, X_AXES, describe
from backend.analysis.metrics.charts import MAX_X, Axes, SeriesBuckets, curves, with_scales
from backend.analysis.metrics.chunks import Columns
from backend.analysis.metrics.grouping import Spread
from backend.analysis.metrics.run_axes import locator
from backend.analysis.metrics.seed_groups import group_curve
from backend.db import Checkpoint, Evaluation, Run, Series
from backend.db.checked_json import DAMAGED
from backend.platform.artifacts import ArtifactStore
from backend.platform.errors import Conflict, Gone, Invalid
from backend.replays.branches import service as branches
from backend.replays.branches.outcomes import Floats, Returns, discounted_rewards
from backend.replays.episodes import service as episodes
from backend.replays.recordings import service as recordings
from backend.runs.evaluations import repository as evaluations
from backend.runs.runs import listing
from backend.runs.runs import service as runs
from backend.runs.runs.fields import setting_title
from backend.runs.runs.groups import (
    group_key,
    is_early,
    is_measured_as_published,
    names_and_differences,
    own_protocol,
    published_scores,
    subject,
    subject_key,
    subject_names,
)
from backend.specs.branches import EpisodeOutcome, Outcome
from backend.specs.environments import ENVIRONMENTS
from backend.specs.metrics import Panel
from backend.specs.play import HUMAN_PLAY, seen_by_people
from backend.specs.problems import quoted

Score = Literal["score", "best_return"]
SCORES: dict[Score, str] = {"score": "Score (mean of the last 100 returns)", "best_return": "Best return"}


_VALUES = (
    "mean", "min", "max", "last", "smoothed", "window_mean", "window_deviation",
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
class FigureOptions:
    """How figures are shown."""

    theme: Theme = "light"
    width_px: int | None = None
    in_panel: bool = False
    """For a panel of a page, which has a heading and a tooltip of its own."""


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
    comparison = comparisons.compare(session, shown, "training", "common", None) if is_tested else None
    return caption(figure, comparison)


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
        self._has_layout = request.with_layout or self.since is None

    def draw(self) -> list[Figure]:
        names = self._request.names
        apart: dict[int, Series] = {}
        has_ranges = self._has_gaps
        for name, rows in zip(names, self.chosen, strict=True):
            if name.kind != "seed_curve":
                apart |= {row.id: row for row in rows}
                has_ranges |= name.kind != "diagnostic" and len(rows) <= MANY
        read = curves(
            self._session,
            list(apart.values()),
            self._request.axes,
            self.since,
            is_merged=True,
            has_joining_bucket=has_ranges,
            has_gaps=True,
        )
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
            order, groups = self._groups(series)
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
            figure = self._seed_curve(name.of, series)
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
        levels = _levels(self._session, shown, evaluations.finished(self._session, list(shown)))
        best = max((run.best_return for run in shown.values() if run.best_return is not None), default=None)
        of_protocol = [level for level in levels if protocol in (None, level.protocol)]
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
        """Returns, with evaluations, checkpoints, restarts, setting changes and notes."""
        session, request, runs_by_id = self._session, self._request, self._drawn
        run_ids, axes = list(runs_by_id), request.axes
        saved = repository.checkpoints(session, run_ids)
        done = evaluations.finished(session, run_ids)
        attempts = repository.attempts(session, run_ids)
        changes = repository.setting_changes(session, run_ids)
        x_of = locator(session, run_ids, axes.x)
        places = places_of(saved, runs_by_id, x_of)
        names = {
            run.id: f"{plain_text(run.name)}: " if len(runs_by_id) > 1 else "" for run in runs_by_id.values()
        }
        bests = [run.best_return for run in runs_by_id.values() if run.best_return is not None]
        return learning_curve_figure(
            lines,
            runs=list(runs_by_id),
            evaluations=_evaluated(done, saved, runs_by_id, x_of),
            levels=_levels(self._session, runs_by_id, done),
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

    def _seed_curve(self, metric: str, series: Sequence[Series]) -> Figure:
        """One metric; runs that differ in their seed alone are one curve."""
        request = self._request
        order, groups = self._groups(series)
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

    def _groups(self, series: Sequence[Series]) -> tuple[list[str], list[SeedGroup]]:
        """The ids of all compared groups in the order in which they get styles, and those with data."""
        request, runs_by_id = self._request, self.found
        firsts: dict[str, Run] = {}
        for run in runs_by_id.values():
            firsts.setdefault(group_key(run), run)
        labels = dict(zip(firsts, names_and_differences(list(firsts.values())), strict=True))
        groups = []
        for members in metrics.seed_groups(self._session, series, runs_by_id):
            key, source = group_key(runs_by_id[members[0].run_id]), members[0].source
            curve = group_curve(self._session, members, request.axes, request.spread, self.since)
            groups.append(
                SeedGroup(
                    id=key,
                    label=seeds_label(*labels[key], source, len(members)),
                    runs=[row.run_id for row in members],
                    metric=members[0].metric,
                    source=source,
                    columns=_in_unit(curve.grid, members[0].metric),
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
                    columns=_in_unit(curve.buckets, row.metric) | {"x": curve.buckets[self._request.axes.x]},
                    n_total=curve.n_rows,
                    n_shown=curve.n_buckets,
                    start=None if curve.reset else curve.first_bucket,
                )
            )
        return lines

    def _label(self, name: FigureName, series: Series, *, has_sources: bool) -> Label:
        if len(self.found) > 1:
            return Label(self.found[series.run_id].name, detail=series.source)
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


def run_styles(run_ids: Iterable[str], wanted: WantedStyles) -> dict[str, int]:
    """A style for each run of a view, in the order of the runs."""
    ordered = list(run_ids)
    return distinct_styles(ordered, dict(zip(ordered, wanted.of_runs, strict=False)))


def styles_by_group(runs_by_id: Mapping[str, Run], wanted: WantedStyles) -> dict[str, int]:
    """For each run of a view the style of its group, as `seed_curve` gives it."""
    groups = {id_: group_key(run) for id_, run in runs_by_id.items()}
    styles = distinct_styles(groups.values(), wanted.of_groups)
    return {id_: styles[group] for id_, group in groups.items()}


def _by_number(series: Series) -> list[int]:
    """Sorts `actor 10` after `actor 9`, and keeps the order of the metrics."""
    return [int(number) for number in re.findall(r"\d+", series.source)[:1]]


def draw_scatter(
    session: Session,
    run_ids: Sequence[str],
    setting: str,
    score: Score,
    options: FigureOptions,
    styles: WantedStyles = IN_ORDER,
    *,
    grouped: bool = False,
) -> Figure:
    """A score of some runs against one of their settings, each run in its style or, grouped, in its group's.

    Raises:
        NotFound: there is no such run.
        Invalid: there is no such setting.
    """
    runs_by_id = metrics.find_runs(session, run_ids)
    field = setting_field(setting)
    listing.check_known(session, "x", field)
    shown = [
        (run, value, subject_key(run))
        for run in runs_by_id.values()
        if (value := setting_value(run, field)) is not None and getattr(run, score) is not None
        if field.name.rpartition(".")[2] not in run.departures and not (score == "score" and is_early(run))
    ]
    n_changed = sum(field.name.rpartition(".")[2] in run.departures for run in runs_by_id.values())
    examples = {key: run for run, _, key in shown}
    names = dict(zip(examples, subject_names(list(examples.values())), strict=True))
    dots = [
        Dot(
            run.id,
            run.name,
            # Plotly places no dot at a truth value.
            value if isinstance(value, int | float) and not isinstance(value, bool) else str(value),
            getattr(run, score),
            key,
            names[key],
        )
        for run, value, key in shown
    ]
    x = setting_title(setting)
    title = f"{SCORES[score]} by {x}, {subject(runs_by_id.values())}"
    if n_changed:
        title += f"; {n_changed} left out that changed it during training"
    return scatter_figure(
        dots,
        x=x,
        y=SCORES[score],
        title=title,
        styles=styles_by_group(runs_by_id, styles) if grouped else run_styles(runs_by_id, styles),
        theme=options.theme,
        width_px=options.width_px,
    )


def draw_episode_trace(
    session: Session,
    store: ArtifactStore,
    episode_id: str,
    panels: Sequence[TracePanel],
    max_points: int,
    options: FigureOptions,
) -> Figure:
    """One recorded episode step by step.

    Raises:
        NotFound: there is no such episode, or its replay does not exist.
    """
    episode = episodes.get(session, episode_id)
    run = runs.get(session, episode.run_id)
    trace = episodes.read_trace(session, store, episode)
    rewards, lives = np.array(trace.rewards, "f8"), np.array(trace.lives)
    is_per_life = run.spec["environment_config"].get("life_loss_terminal", False)
    config = run.spec["config"]
    gamma, clip = config.get("gamma"), config.get("reward_clip") or None
    bootstrap = trace.values[-1] if trace.truncated and trace.values else None
    of_lives = lives if is_per_life else None
    returns = None if gamma is None else discount(rewards, gamma, clip, of_lives, bootstrap)
    title = (
        f"Episode at {episode.agent_steps:,} agent steps, return {episode.episode_return:g}, {subject([run])}"
    )
    notes = [] if gamma is None else [f"discount {gamma:g}"]
    if gamma is not None and clip is not None:
        notes.append(f"rewards clipped to ±{clip:g} in the discounted return")
    if gamma is not None and is_per_life:
        notes.append("returns up to the next lost life")
    if gamma is not None and bootstrap is not None:
        notes.append("ended by a limit: the last V stands for what follows")
    return episode_trace_figure(
        rewards,
        np.array(trace.values, "f8"),
        np.array(trace.policies, "f8").reshape(len(rewards), -1) if trace.policies else np.empty((0, 0)),
        trace.action_names,
        panels=panels,
        numbers=np.array(trace.actions, "f8")
        if trace.actions and isinstance(trace.actions[0], list)
        else None,
        returns=returns,
        lives=lives,
        action_values=trace.action_values,
        title=title,
        notes=notes if {"value", "value_error"}.intersection(panels) else (),
        max_points=max_points,
        theme=options.theme,
        width_px=options.width_px,
    )


def draw_recording(session: Session, recording_id: str, max_points: int, options: FigureOptions) -> Figure:
    """The rewards of a game that people have played.

    Raises:
        NotFound: there is no such recording.
        Conflict: it has no decision yet.
        Gone: it is damaged.
    """
    recording = recordings.get(session, recording_id)
    parts = recordings.read_parts(session, recording)
    rewards = np.array([reward for part in parts for reward in part.rewards], "f8")
    if not len(rewards):
        raise Conflict("the game has no decision yet: there is nothing to draw")
    environment = ENVIRONMENTS.get(recording.environment)
    where = recording.environment if environment is None else environment.title
    players = recordings.in_words(session, recording, recordings.turns(parts))
    return episode_trace_figure(
        rewards,
        np.empty(0),
        np.empty((0, 0)),
        [],
        panels=["reward"],
        lives=np.array([lives for part in parts for lives in part.lives]),
        title=f"Game of {where} by {players}, score {recording.episode_return:g}",
        max_points=max_points,
        theme=options.theme,
        width_px=options.width_px,
    )


def draw_branch(
    session: Session, store: ArtifactStore, branch_id: str, returns: Returns, options: FigureOptions
) -> Figure:
    """The fan of a branch.

    Raises:
        NotFound: there is no such branch, or the replay of its episode does not exist.
        Conflict: it has not been played.
        Gone: its row is damaged.
    """
    branch = branches.get(session, branch_id)
    if not branch.episode_outcome:
        raise Gone(f"branch {branch_id} cannot be drawn: {DAMAGED}")
    if branch.outcome is None:
        raise Conflict("the branch has not been played: there is nothing to draw yet")
    outcome = Outcome.model_validate(branch.outcome)
    own = EpisodeOutcome.model_validate(branch.episode_outcome)
    episode = episodes.get(session, branch.episode_id)
    run = runs.get(session, branch.run_id)
    trace = episodes.read_trace(session, store, episode)
    is_discounted = returns == "discounted"

    def line(rewards: Floats, n_valued: int, last_value: float | None) -> FanLine:
        if is_discounted:
            rewards = discounted_rewards(rewards[:n_valued], branch.gamma, branch.reward_clip)
        so_far = np.concatenate([[0.0], np.cumsum(rewards, dtype="f8")])
        bootstrap = last_value if is_discounted else None
        rest = 0.0 if bootstrap is None else branch.gamma**n_valued * bootstrap
        return FanLine(so_far, float(so_far[-1]) + rest, bootstrap is not None)

    lines = [
        line(rewards, played.n_valued, played.last_value)
        for rewards, played in zip(branches.rewards_of(session, branch), outcome.continuations, strict=True)
    ]
    people = [
        PersonLine(game.who, line(game.rewards, game.n_valued, None).returns, game.finished)
        for game in branches.human_continuations(session, branch)
    ]
    first = branch.first_action
    name = f"Q of {trace.action_names[first]}" if branch.action_values and first is not None else None
    policy = f"{branch.n_continuations} continuations by the checkpoint at "
    policy += f"{branch.checkpoint_agent_steps:,} agent steps"
    forced = "" if first is None else f" · first action {trace.action_names[first]}"
    return branch_figure(
        lines,
        line(np.array(trace.rewards[branch.decision :], "f8"), own.n_valued, own.last_value),
        people,
        value=outcome.value if is_discounted else None,
        value_name=name or ("max Q" if branch.action_values else "V"),
        y="Discounted return so far" if is_discounted else "Return so far",
        title=f"Branch at decision {branch.decision + 1:,} of an episode, {subject([run])}",
        subtitle=f"{policy} · at most {branch.horizon:,} decisions{forced}",
        theme=options.theme,
        width_px=options.width_px,
    )


def _in_unit(columns: Columns, metric: str) -> Columns:
    """Columns of a metric in the unit that figures draw it in."""
    divisor = describe(metric).divisor
    if divisor == 1.0:
        return columns
    return columns | {name: columns[name] / divisor for name in _VALUES if name in columns}


def _counted(x: str, chosen: Sequence[Series]) -> str:
    """What an axis counts: in place of agent steps perhaps iterations or seconds, for external runs."""
    return metrics.axis_unit({row.step_unit for row in chosen}, x) if x == "agent_steps" else x


def _levels(session: Session, runs_by_id: Mapping[str, Run], done: Sequence[Evaluation]) -> list[Level]:
    protocols = {
        run_id: {evaluation.protocol for evaluation in done if evaluation.run_id == run_id}
        for run_id in runs_by_id
    }
    with_protocols = [(run, protocols[run_id]) for run_id, run in runs_by_id.items()]
    comparable = published_scores(with_protocols)
    levels = [Level(score.label, score.score, score.protocol) for score in comparable]
    return levels + _human_here(session, with_protocols)


def _human_here(session: Session, runs_used: Sequence[tuple[Run, Collection[str]]]) -> list[Level]:
    """The human reference of this installation, beside runs with the settings of a person's games."""
    names = {run.environment for run, _ in runs_used}
    environment = ENVIRONMENTS.get(names.pop()) if len(names) == 1 else None
    if environment is None:
        return []
    for run, used in runs_used:
        protocols: Collection[str | None] = used or {own_protocol(run)}
        if not all(name and is_measured_as_published(run, environment, name) for name in protocols):
            return []
    mean = recordings.human_references(session, environment.id).get(environment.id)
    if mean is None:
        return []
    seen = seen_by_people(environment)
    aid = "" if seen is None else f", with {seen}"
    return [Level(f"human here, {mean.n_games} games{aid}", mean.mean_return, HUMAN_PLAY)]


def _evaluated(
    done: Sequence[Evaluation], saved: Sequence[Checkpoint], runs_by_id: Mapping[str, Run], x_of: XOf
) -> list[Evaluated]:
    at = {(checkpoint.run_id, checkpoint.file): checkpoint for checkpoint in saved}
    points = []
    for evaluation in done:
        checkpoint = at.get((evaluation.run_id, evaluation.checkpoint))
        if checkpoint is not None and checkpoint.agent_steps < evaluation.agent_steps:
            continue  # of the best parameters, again, at the end: no score of the last ones
        x = x_of(evaluation)
        if x is None:  # an evaluation has no episode count; its checkpoint has one
            x = None if checkpoint is None else x_of(checkpoint)
        if x is not None and evaluation.mean_return is not None and np.isfinite(evaluation.mean_return):
            points.append(
                Evaluated(
                    run=evaluation.run_id,
                    name=runs_by_id[evaluation.run_id].name,
                    protocol=evaluation.protocol,
                    x=x,
                    mean_return=evaluation.mean_return,
                    n_episodes=len(evaluation.returns),
                )
            )
    return points
