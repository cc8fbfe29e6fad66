"""Figures of stored data."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from sqlalchemy.orm import Session

from backend.artifacts import ArtifactStore
from backend.db import Checkpoint, Evaluation, Run, Series
from backend.episodes import service as episodes
from backend.evaluations import repository as evaluations
from backend.figures import repository
from backend.figures.curve import CurveLine, curve_figure
from backend.figures.diagnostics import Panel, available_panels, diagnostic_figure
from backend.figures.episode_trace import discounted, episode_trace_figure
from backend.figures.figure import Figure
from backend.figures.learning_curve import Evaluated, Level, learning_curve_figure
from backend.figures.marks import Mark
from backend.figures.run_marks import XOf, places_of, restarts, setting_changes
from backend.figures.scatter import Dot, scatter_figure
from backend.figures.seed_curve import SeedGroup, seed_curve_figure
from backend.figures.theme import Theme, plain_text
from backend.metrics import service as metrics
from backend.metrics.catalogue import EPISODE_RETURN, describe
from backend.metrics.charts import Axes, curves
from backend.metrics.grouping import Spread
from backend.metrics.run_axes import locator
from backend.metrics.seed_groups import group_curve
from backend.runs import listing
from backend.runs import service as runs
from backend.runs.groups import group_key, group_names, published_scores, subject, subject_key, subject_names
from backend.runs.setting_values import setting as setting_of
from backend.runs.setting_values import value_of

Score = Literal["score", "best_return"]
SCORES: dict[Score, str] = {"score": "Score (mean of the last 100 returns)", "best_return": "Best return"}


@dataclass(frozen=True)
class FigureOptions:
    """Theme, width and contents of a figure."""

    theme: Theme
    width_px: int | None
    with_data: bool


def draw_curve(
    session: Session,
    run_ids: Sequence[str],
    metric: str,
    sources: Sequence[str],
    axes: Axes,
    options: FigureOptions,
) -> Figure:
    """One metric of some runs.

    Raises:
        NotFound: there is no such run.
    """
    found = metrics.find_runs(session, run_ids)
    return curve_figure(
        _lines(session, found, metrics.choose(session, run_ids, [metric], sources), axes, options),
        metric=metric,
        x=axes.x,
        smooth=axes.description,
        title=f"{describe(metric).title}, {subject(found.values())}",
        theme=options.theme,
        width_px=options.width_px,
    )


def draw_seed_curve(
    session: Session,
    run_ids: Sequence[str],
    metric: str,
    sources: Sequence[str],
    axes: Axes,
    spread: Spread,
    options: FigureOptions,
) -> Figure:
    """One metric of some runs; runs that differ in their seed alone as one curve.

    Raises:
        NotFound: there is no such run.
    """
    found = metrics.find_runs(session, run_ids)
    chosen = metrics.choose(session, run_ids, [metric], sources)
    grouped = list(metrics.seed_groups(session, chosen, found))
    firsts: dict[str, Run] = {}
    for run in found.values():
        firsts.setdefault(group_key(run.spec), run)
    names = dict(zip(firsts, group_names(list(firsts.values())), strict=True))
    groups = []
    for members in grouped:
        key, source = group_key(found[members[0].run_id].spec), members[0].source
        curve = group_curve(session, members, axes, spread) if options.with_data else None
        groups.append(
            SeedGroup(
                id=key,
                name=names[key] + (f", {source}" if source else ""),
                n_seeds=len(members),
                metric=metric,
                source=source,
                columns=curve.grid if curve else None,
                seed_values=list(curve.seed_values) if curve else [],
                n_total=curve.n_rows if curve else 0,
                n_shown=curve.n_points if curve else 0,
            )
        )
    return seed_curve_figure(
        groups,
        metric=metric,
        x=axes.x,
        spread=spread,
        order=list(firsts),
        smooth=axes.description,
        title=f"{describe(metric).title}, {subject(found.values())}",
        theme=options.theme,
        width_px=options.width_px,
    )


def diagnostic_panels(session: Session, run_id: str) -> list[Panel]:
    """The diagnostics panels that a run has data for.

    Raises:
        NotFound: there is no such run.
    """
    return available_panels({series.metric for series in metrics.series_of(session, run_id)})


def draw_diagnostic(
    session: Session, run_id: str, panel: Panel, axes: Axes, options: FigureOptions
) -> Figure:
    """One panel of a run's diagnostics.

    Raises:
        NotFound: there is no such run.
    """
    found = metrics.find_runs(session, [run_id])
    chosen = metrics.choose(session, [run_id], list(panel.names), [metrics.ANY_SOURCE])
    lines = _lines(session, found, sorted(chosen, key=_by_number), axes, options)
    title = f"{panel.title}, {subject(found.values())}"
    return diagnostic_figure(
        panel, lines, x=axes.x, smooth=axes.description, title=title, theme=options.theme
    )


def _by_number(series: Series) -> list[int]:
    """Sorts `actor 10` after `actor 9`, and keeps the order of the metrics."""
    return [int(number) for number in re.findall(r"\d+", series.source)[:1]]


def draw_learning_curve(
    session: Session, run_ids: Sequence[str], axes: Axes, options: FigureOptions
) -> Figure:
    """Returns of some runs, with evaluations, checkpoints, restarts and setting changes.

    Raises:
        NotFound: there is no such run.
    """
    found = metrics.find_runs(session, run_ids)
    saved = repository.checkpoints(session, run_ids)
    done = evaluations.finished(session, run_ids)
    attempts = repository.attempts(session, run_ids)
    changes = repository.setting_changes(session, run_ids)
    x_of = locator(session, run_ids, axes.x)
    places = places_of(saved, found, x_of)
    names = {run.id: f"{plain_text(run.name)}: " if len(found) > 1 else "" for run in found.values()}
    lines = _lines(session, found, metrics.choose(session, run_ids, [EPISODE_RETURN], []), axes, options)
    nonempty = {line.run for line in lines}
    # A page fills in the data of a run without points as soon as there are some.
    lines += [
        CurveLine(run.id, run.name, EPISODE_RETURN, "", None)
        for run in found.values()
        if run.id not in nonempty
    ]
    if len(found) == 1:  # the title names the run; the legend distinguishes training from evaluations
        lines = [replace(line, name="training") for line in lines]
    bests = [run.best_return for run in found.values() if run.best_return is not None]
    return learning_curve_figure(
        lines,
        x=axes.x,
        smooth=axes.description,
        evaluations=_evaluated(done, saved, found, x_of),
        levels=_levels(found, done),
        best=max(bests, default=None),
        checkpoints=[
            Mark(
                one.run_id,
                x_of(one) or 0.0,
                f"{names[one.run_id]}checkpoint at {one.agent_steps:,} agent steps",
            )
            for one in saved
            if not one.removed
        ],
        restarts=restarts(attempts, places, names),
        setting_changes=setting_changes(changes, attempts, places, names, x_of),
        title=f"Learning curve, {subject(found.values())}",
        theme=options.theme,
        width_px=options.width_px,
    )


def draw_scatter(
    session: Session, run_ids: Sequence[str], setting: str, score: Score, options: FigureOptions
) -> Figure:
    """A score of some runs against one of their settings.

    Raises:
        NotFound: there is no such run.
        Invalid: there is no such setting.
    """
    found = metrics.find_runs(session, run_ids)
    field = setting_of(setting)
    listing.check_known(session, "x", field)
    shown = [
        (run, value, subject_key(run))
        for run in found.values()
        if (value := value_of(run, field)) is not None and getattr(run, score) is not None
    ]
    examples = {key: run for run, _, key in shown}
    names = dict(zip(examples, subject_names(list(examples.values())), strict=True))
    dots = [
        Dot(
            run.id,
            run.name,
            value if isinstance(value, int | float) else str(value),
            getattr(run, score),
            key,
            names[key],
        )
        for run, value, key in shown
    ]
    title = f"{SCORES[score]} by {setting}, {subject(found.values())}"
    return scatter_figure(
        dots, x=setting, y=SCORES[score], title=title, theme=options.theme, width_px=options.width_px
    )


def draw_episode_trace(
    session: Session, store: ArtifactStore, episode_id: str, max_points: int, options: FigureOptions
) -> Figure:
    """One recorded episode step by step.

    Raises:
        NotFound: there is no such episode, or its replay does not exist.
    """
    episode = episodes.get(session, episode_id)
    run = runs.get(session, episode.run_id)
    trace = episodes.read_trace(session, store, episode)
    rewards = np.array(trace.rewards, "f8")
    config = run.spec["config"]
    clip = config.get("reward_clip") or None
    title = (
        f"Episode at {episode.agent_steps:,} agent steps, return {episode.episode_return:g}, {subject([run])}"
    )
    return episode_trace_figure(
        rewards,
        np.array(trace.values, "f8"),
        np.array(trace.policies, "f8").reshape(len(rewards), -1) if trace.policies else np.empty((0, 0)),
        trace.action_names,
        numbers=np.array(trace.actions, "f8")
        if trace.actions and isinstance(trace.actions[0], list)
        else None,
        returns=discounted(rewards, config["gamma"], clip) if "gamma" in config else None,
        lives=np.array(trace.lives),
        action_values=trace.action_values,
        title=title,
        max_points=max_points,
        theme=options.theme,
        width_px=options.width_px,
    )


def _lines(
    session: Session, found: Mapping[str, Run], series: Sequence[Series], axes: Axes, options: FigureOptions
) -> list[CurveLine]:
    read = curves(session, series, axes) if options.with_data else {}
    has_parts = any(one.source for one in series)
    lines = []
    for one in series:
        name = found[one.run_id].name
        if len(found) == 1 and has_parts:
            name = one.source or "whole run"
        elif one.source:
            name += f", {one.source}"
        buckets = read.get(one.id)
        if buckets is None:
            lines.append(CurveLine(one.run_id, name, one.metric, one.source, None))
        else:
            columns = buckets.buckets | {"x": buckets.buckets[axes.x]}
            counts = (buckets.n_rows, buckets.n_buckets)
            lines.append(CurveLine(one.run_id, name, one.metric, one.source, columns, *counts))
    return lines


def _levels(found: Mapping[str, Run], done: Sequence[Evaluation]) -> list[Level]:
    protocols = {run_id: {one.protocol for one in done if one.run_id == run_id} for run_id in found}
    comparable = published_scores([(run, protocols[run_id]) for run_id, run in found.items()])
    return [Level(score.label, score.score, score.protocol) for score in comparable]


def _evaluated(
    done: Sequence[Evaluation], saved: Sequence[Checkpoint], found: Mapping[str, Run], x_of: XOf
) -> list[Evaluated]:
    at = {(one.run_id, one.file): x_of(one) for one in saved}
    points = []
    for one in done:
        x = x_of(one)
        if x is None:  # an evaluation has no episode count; its checkpoint has one
            x = at.get((one.run_id, one.checkpoint))
        if x is not None and one.mean_return is not None and np.isfinite(one.mean_return):
            points.append(
                Evaluated(
                    run=one.run_id,
                    name=found[one.run_id].name,
                    protocol=one.protocol,
                    x=x,
                    mean_return=one.mean_return,
                    n_episodes=len(one.returns),
                )
            )
    return points
