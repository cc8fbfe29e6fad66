"""Figures of what is stored."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import plotly.graph_objects as go
from sqlalchemy.orm import Session

from backend.artifacts import ArtifactStore
from backend.db import Attempt, Checkpoint, Evaluation, LiveSettings, Run, Series
from backend.episodes import service as episodes
from backend.figures import repository
from backend.figures.curve import Line, curve
from backend.figures.episode_trace import discounted, episode_trace
from backend.figures.internals import Panel, internals, present
from backend.figures.learning_curve import METRIC, Evaluated, Level, learning_curve
from backend.figures.marks import Mark
from backend.figures.theme import Theme, plain_text
from backend.metrics import service as metrics
from backend.metrics.catalogue import describe
from backend.metrics.charts import Axes, curves
from backend.metrics.grouping import settings_of
from backend.runs import service as runs
from backend.specs.algorithms import ALGORITHMS
from backend.specs.environments import ENVIRONMENTS

Places = Mapping[tuple[str, int], float]
"""x of a run's checkpoints, by run and agent steps; of its beginning too."""

_LEARNING_ONLY = frozenset({"life_loss_terminal", "frame_maximum", "picture_size", "crop", "normalise"})
"""Settings of a world that change what an agent sees and how it learns, not how it is scored."""


@dataclass(frozen=True)
class Look:
    """How a figure is wanted."""

    theme: Theme
    width_px: int | None
    with_data: bool


def draw_curve(
    session: Session, run_ids: Sequence[str], metric: str, sources: Sequence[str], axes: Axes, look: Look
) -> "go.Figure":
    """One metric of some runs.

    Raises:
        NotFound: there is no such run.
    """
    found = metrics.find_runs(session, run_ids)
    return curve(
        _lines(session, found, metrics.choose(session, run_ids, [metric], sources), axes, look),
        metric=metric,
        x=axes.x,
        runs=list(found),
        smooth=axes.smooth,
        title=f"{describe(metric).title}, {subject(found.values())}",
        theme=look.theme,
        width_px=look.width_px,
    )


def internal_panels(session: Session, run_id: str) -> list[Panel]:
    """What can be drawn of a run's internals.

    Raises:
        NotFound: there is no such run.
    """
    return present({series.metric for series in metrics.series_of(session, run_id)})


def draw_internals(session: Session, run_id: str, panel: Panel, axes: Axes, look: Look) -> "go.Figure":
    """One panel of a run's internals.

    Raises:
        NotFound: there is no such run.
    """
    found = metrics.find_runs(session, [run_id])
    chosen = metrics.choose(session, [run_id], list(panel.names), [metrics.ANY_SOURCE])
    lines = _lines(session, found, sorted(chosen, key=_by_number), axes, look)
    title = f"{panel.title}, {subject(found.values())}"
    return internals(panel, lines, x=axes.x, smooth=axes.smooth, title=title, theme=look.theme)


def _by_number(series: Series) -> list[int]:
    """`actor 10` after `actor 9`; the order of the metrics stays."""
    return [int(number) for number in re.findall(r"\d+", series.source)[:1]]


def draw_learning_curve(session: Session, run_ids: Sequence[str], axes: Axes, look: Look) -> "go.Figure":
    """Returns of some runs, with their evaluations, checkpoints, restarts and changes of settings.

    Raises:
        NotFound: there is no such run.
    """
    found = metrics.find_runs(session, run_ids)
    saved = repository.checkpoints(session, run_ids)
    attempts = repository.attempts(session, run_ids)
    changes = repository.setting_changes(session, run_ids)
    places = _places(saved, found, axes.x)
    names = {run.id: f"{plain_text(run.name)}: " if len(found) > 1 else "" for run in found.values()}
    lines = _lines(session, found, metrics.choose(session, run_ids, [METRIC], []), axes, look)
    begun = {line.run for line in lines}
    # A page fills in the numbers of a run that has none yet as soon as there are some.
    lines += [Line(run.id, run.name, METRIC, "", None) for run in found.values() if run.id not in begun]
    if len(found) == 1:  # whose curve it is needs no saying; what tells it from its evaluations does
        lines = [replace(line, name="training") for line in lines]
    bests = [run.best_return for run in found.values() if run.best_return is not None]
    return learning_curve(
        lines,
        x=axes.x,
        smooth=axes.smooth,
        runs=list(found),
        evaluations=_evaluated(repository.evaluations(session, run_ids), saved, found, axes.x),
        levels=_levels(list(found.values())),
        best=max(bests, default=None),
        checkpoints=[
            Mark(
                one.run_id,
                getattr(one, axes.x),
                f"{names[one.run_id]}checkpoint at {one.agent_steps:,} agent steps",
            )
            for one in saved
            if not one.removed
        ],
        restarts=_restarts(attempts, places, names),
        setting_changes=_setting_changes(changes, attempts, places, names, axes.x),
        title=f"Learning curve, {subject(found.values())}",
        theme=look.theme,
        width_px=look.width_px,
    )


def draw_episode_trace(
    session: Session, store: ArtifactStore, episode_id: str, max_points: int, look: Look
) -> "go.Figure":
    """One kept episode from within.

    Raises:
        NotFound: there is no such episode, or its replay is gone.
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
    return episode_trace(
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
        theme=look.theme,
        width_px=look.width_px,
    )


def _lines(
    session: Session, found: Mapping[str, Run], series: Sequence[Series], axes: Axes, look: Look
) -> list[Line]:
    read = curves(session, series, axes) if look.with_data else {}
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
            lines.append(Line(one.run_id, name, one.metric, one.source, None))
        else:
            columns = buckets.buckets | {"x": buckets.buckets[axes.x]}
            counts = (buckets.n_rows, buckets.n_buckets)
            lines.append(Line(one.run_id, name, one.metric, one.source, columns, *counts))
    return lines


def subject(found: Iterable[Run]) -> str:
    """What the runs have in common."""
    several = list(found)
    kinds = {(run.algorithm, run.environment) for run in several}
    if len(kinds) > 1:
        return f"{len(several)} runs"
    algorithm, environment = kinds.pop()
    title = ALGORITHMS[algorithm].title if algorithm in ALGORITHMS else algorithm
    world = ENVIRONMENTS[environment].title if environment in ENVIRONMENTS else environment
    return f"{title} on {world}" + (f", {len(several)} runs" if len(several) > 1 else "")


def _evaluated(
    done: Sequence[Evaluation], saved: Sequence[Checkpoint], found: Mapping[str, Run], x: str
) -> list[Evaluated]:
    at = {(one.run_id, one.file): one for one in saved}
    points = []
    for one in done:
        # An evaluation does not know how many episodes there had been; its checkpoint does.
        where: Any = at.get((one.run_id, one.checkpoint)) if x == "episodes" else one
        if where is not None and one.mean_return is not None and np.isfinite(one.mean_return):
            points.append(
                Evaluated(
                    run=one.run_id,
                    name=found[one.run_id].name,
                    protocol=one.protocol,
                    x=getattr(where, x),
                    mean_return=one.mean_return,
                    n_episodes=len(one.returns),
                )
            )
    return points


def _levels(several: Sequence[Run]) -> list[Level]:
    """Published scores of the runs' world, where all are scored as those were."""
    worlds = {run.environment for run in several}
    world = ENVIRONMENTS.get(worlds.pop()) if len(worlds) == 1 else None
    if world is None:
        return []
    defaults = world.config().model_dump(mode="json")
    for run in several:
        config = run.spec["environment_config"]
        if any(config.get(name, value) != value for name, value in _scored_by(defaults).items()):
            return []
    return [
        Level(score.label, score.score, score.protocol)
        for score in world.published
        if score.protocol == world.evaluation_protocol
    ]


def scoring(run: Run) -> str:
    """The same for runs whose scores can be held against each other: of one world, scored alike."""
    settings = settings_of(run.spec)["environment_config"]
    return json.dumps([run.environment, _scored_by(settings)], sort_keys=True)


def _scored_by(config: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in config.items() if name not in _LEARNING_ONLY}


def _places(saved: Sequence[Checkpoint], found: Mapping[str, Run], x: str) -> Places:
    places = {(run_id, 0): 0.0 for run_id in found}
    return places | {(one.run_id, one.agent_steps): float(getattr(one, x)) for one in saved}


def _restarts(attempts: Sequence[Attempt], places: Places, names: Mapping[str, str]) -> list[Mark]:
    marks = []
    for attempt in attempts:
        x = places.get((attempt.run_id, attempt.resumed_from_agent_steps))
        if attempt.number > 1 and x is not None:
            marks.append(Mark(attempt.run_id, x, f"{names[attempt.run_id]}attempt {attempt.number}"))
    return marks


def _setting_changes(
    changes: Sequence[LiveSettings],
    attempts: Sequence[Attempt],
    places: Places,
    names: Mapping[str, str],
    axis: str,
) -> list[Mark]:
    """Where the points begin that were made by other settings.

    That is before they came into force where a later attempt went on from earlier: it had them from its
    start.
    """
    marks = []
    for change in changes:
        later = [
            attempt.resumed_from_agent_steps
            for attempt in attempts
            if attempt.run_id == change.run_id and attempt.claimed_at > change.requested_at
        ]
        begins = min([change.agent_steps or 0, *later])
        # Of a change itself it is not known how many episodes there had been.
        own = getattr(change, axis, None)
        x = own if begins == change.agent_steps else places.get((change.run_id, begins))
        if x is not None:
            told = ", ".join(f"{name} = {value}" for name, value in change.changes.items())
            marks.append(Mark(change.run_id, float(x), f"{names[change.run_id]}{told} from here on"))
    return marks
