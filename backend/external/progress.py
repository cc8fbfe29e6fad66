"""What the points of an external run make of it: units, episodes, progress, score."""

from collections.abc import Collection, Mapping

import numpy as np
from sqlalchemy.orm import Session

from backend.analysis.metrics import repository as metrics
from backend.analysis.metrics.chunks import n_rows
from backend.db import Run
from backend.db.run import averaged_rate
from backend.external import repository
from backend.specs.run_fields import SCORE_EPISODES
from backend.statistics.columns import Array, Columns
from callboard.known_tags import is_per_episode, return_metric, run_unit, series_units

_SCORE_CHUNKS = 32
"""Maximum number of chunks of a metric that are read for a score, where its last values are not finite."""


def interpret(session: Session, run: Run, names: Collection[str]) -> Mapping[str, str]:
    """Derive from all metrics of a locked run how it is scored and what its steps count, unless its script
    has specified these. Return what the steps of each metric count."""
    if not run.spec.get("return_metric"):
        run.return_metric = return_metric(names) or run.return_metric
    if not run.spec.get("step_unit"):
        run.step_unit = run_unit(names)
    return series_units(names, "iterations" if run.step_unit == "iterations" else "agent_steps")


def _counts_episodes(run: Run, metric: str) -> bool:
    """Whether each value of the metric is a finished episode."""
    return metric == run.return_metric and bool(is_per_episode(metric))


def with_episodes(run: Run, name: str, kept: Mapping[str, Columns], units: Mapping[str, str]) -> Columns:
    """The columns of a metric with the number of finished episodes at each point; the run already counts
    those of these columns."""
    columns = kept[name]
    returns = next((metric for metric in kept if _counts_episodes(run, metric)), None)
    if returns is None or units[returns] != units[name]:
        return columns | {"episodes": np.full(n_rows(columns), run.episodes, "<i8")}
    ended_at = kept[returns]["agent_steps"]
    if name == returns:
        n = np.arange(1, len(ended_at) + 1, dtype="<i8")
    else:
        n = np.searchsorted(ended_at, columns["agent_steps"], side="right").astype("<i8")
    return columns | {"episodes": run.episodes - len(ended_at) + n}


def advance(run: Run, kept: Mapping[str, Columns], units: Mapping[str, str]) -> None:
    """Update the progress of a locked run."""
    counted = {name: columns for name, columns in kept.items() if units[name] == run.step_unit}
    steps = max([run.agent_steps, *(int(columns["agent_steps"][-1]) for columns in counted.values())])
    wall_time_s = max(run.wall_time_s, *(float(columns["wall_time_s"].max()) for columns in kept.values()))
    passed_s = wall_time_s - run.wall_time_s
    if passed_s > 0 and run.wall_time_s > 0:
        rate = (steps - run.agent_steps) / passed_s
        run.agent_steps_per_s = averaged_rate(run.agent_steps_per_s, rate, passed_s, wall_time_s)
    run.agent_steps, run.wall_time_s = steps, wall_time_s
    if run.step_unit == "agent_steps":
        run.frames = max([run.frames, *(int(columns["frames"].max()) for columns in counted.values())])
    run.episodes += sum(n_rows(columns) for name, columns in kept.items() if _counts_episodes(run, name))


def score(session: Session, run: Run) -> None:
    """Update a run's score and best return: the mean of the last 100 returns, or the last of a metric whose
    values are means already."""
    if run.return_metric is None:
        run.score = run.best_return = None
        return
    n = 1 if is_per_episode(run.return_metric) is False else SCORE_EPISODES
    values = _last_finite(session, run.id, run.return_metric, n)
    run.score = float(values.mean()) if len(values) else None
    run.best_return = repository.largest_value(session, run.id, run.return_metric)


def has_points(session: Session, run: Run) -> bool:
    """Whether any point of the run is stored."""
    return any(row.n_points for row in metrics.list_series(session, [run.id]))


def reached(session: Session, run: Run) -> tuple[int, float, int]:
    """Frames, wall time and episodes that the points of a locked run reach, without those set aside."""
    series = [row for row in metrics.list_series(session, [run.id]) if row.n_points]
    chunks = metrics.live_chunks(session, [row.id for row in series])
    last = [chunks[row.id][-1] for row in series if chunks[row.id]]
    points = metrics.points_of(session, last, ("frames", "wall_time_s")).values()
    frames = max((int(columns["frames"].max()) for columns in points), default=0)
    wall_time_s = max((float(columns["wall_time_s"].max()) for columns in points), default=0.0)
    episodes = sum(row.n_points for row in series if row.source == "" and _counts_episodes(run, row.metric))
    return frames, wall_time_s, episodes


def _last_finite(session: Session, run_id: str, metric: str, n: int) -> Array:
    """The last `n` finite values of a metric, in order; fewer if it has fewer in its last chunks."""
    values = [np.zeros(0)]
    for row in metrics.list_series(session, [run_id], [metric]):
        for chunk in reversed(metrics.live_chunks(session, [row.id])[row.id][-_SCORE_CHUNKS:]):
            if sum(map(len, values)) >= n:
                break
            stored = metrics.points_of(session, [chunk], ("value",))[chunk.id]["value"]
            values.insert(0, stored[np.isfinite(stored)])
    return np.concatenate(values)[-n:]
