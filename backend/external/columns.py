"""Points of an external run as columns, from JSON or an Arrow stream."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from pydantic import BaseModel, ValidationError

from backend.analysis.metrics.chunks import joined, n_rows, select_rows
from backend.drawing.catalogue import EPISODE_RETURN
from backend.external.schemas import MAX_ROWS, EpisodesBatch, PointsBatch
from backend.platform.errors import Invalid
from backend.specs.problems import explain_in, problems_of
from backend.statistics.columns import Array, Columns

B = TypeVar("B", bound=BaseModel)

EPISODE_LENGTH = "rollout/episode_length"


@dataclass(frozen=True)
class PointColumns:
    """One batch of points, by metric; columns without `episodes` and `revision`."""

    source: str
    sequence: int
    series: Mapping[str, Columns]
    n_episodes: int | None = None
    """Number of episodes, of a batch of these."""

    @property
    def rows(self) -> int:
        """Points, or episodes, in all."""
        if self.n_episodes is not None:
            return self.n_episodes
        return sum(n_rows(columns) for columns in self.series.values())


def validate(model: type[B], body: object) -> B:
    """The body as a model.

    Raises:
        Invalid: with one problem per invalid field.
    """
    try:
        return model.model_validate(body)
    except ValidationError as error:
        raise Invalid(explain_in(problems_of(error), model)) from None


_UNKNOWN = -1
"""Frames of an episode that its script has not given."""


def of_points(batch: PointsBatch) -> PointColumns:
    """From JSON.

    Raises:
        Invalid: columns of different lengths, or too many rows.
    """
    total = sum(len(series.value) for series in batch.series)
    if total > MAX_ROWS:
        raise Invalid.field("series", f"has {total:,} points; the maximum of a request is {MAX_ROWS:,}")
    parts: dict[str, list[Columns]] = {}
    for at, series in enumerate(batch.series):
        frames = series.agent_steps if series.frames is None else series.frames
        lengths = {
            "agent_steps": len(series.agent_steps),
            "frames": len(frames),
            "wall_time_s": len(series.wall_time_s),
            "value": len(series.value),
        }
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{name} has {length:,}" for name, length in lengths.items())
            raise Invalid.field(f"series.{at}", f"its lists must have the same length: {listed}")
        if series.value:
            parts.setdefault(series.metric, []).append(
                _columns(
                    np.array(series.agent_steps, "<i8"),
                    np.array(frames, "<i8"),
                    np.array(series.wall_time_s, "<f8"),
                    np.array([np.nan if value is None else float(value) for value in series.value], "<f8"),
                )
            )
    return PointColumns(
        batch.source, batch.sequence, {name: joined(pieces) for name, pieces in parts.items()}
    )


def of_episodes(batch: EpisodesBatch) -> PointColumns:
    """The return and the length of each episode as points, where they are known."""
    series = {}
    for name, field in ((EPISODE_RETURN, "episode_return"), (EPISODE_LENGTH, "length")):
        rows = [row for row in batch.episodes if getattr(row, field) is not None]
        if rows:
            steps = np.array([row.agent_steps for row in rows], "<i8")
            wall_time_s = np.array([row.wall_time_s for row in rows], "<f8")
            value = np.array([float(getattr(row, field)) for row in rows], "<f8")
            frames = np.array([_UNKNOWN if row.frames is None else row.frames for row in rows], "<i8")
            series[name] = _columns(steps, frames, wall_time_s, value)
    return PointColumns(batch.source, batch.sequence, series, n_episodes=len(batch.episodes))


def with_frames(columns: Columns, frames_per_step: float) -> Columns:
    """The rows with frames in proportion to their agent steps where they are not known."""
    frames, estimated = columns["frames"], np.rint(columns["agent_steps"] * frames_per_step).astype("<i8")
    return columns | {"frames": np.where(frames == _UNKNOWN, estimated, frames)}


def in_order(columns: Columns, from_agent_steps: int) -> Columns:
    """The rows whose agent steps do not decrease, neither within the columns nor below `from_agent_steps`."""
    steps = columns["agent_steps"]
    kept = steps >= np.maximum(np.maximum.accumulate(steps), from_agent_steps)
    return columns if kept.all() else select_rows(columns, kept)


def _columns(agent_steps: Array, frames: Array, wall_time_s: Array, value: Array) -> Columns:
    return {"agent_steps": agent_steps, "frames": frames, "wall_time_s": wall_time_s, "value": value}
