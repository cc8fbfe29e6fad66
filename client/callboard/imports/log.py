"""What a reader finds in the log of another tool: one training, with its metrics, texts and settings."""

from __future__ import annotations

import json
import math
from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from callboard.config import described_by
from callboard.folders import described_by_folder
from callboard.limits import MAX_MEDIA_BYTES, MAX_STEPS
from callboard.media import IMAGE_SIGNATURES, Histogram
from callboard.rows import is_seed, seed_of

MAX_PARAMS_BYTES = 2**22
MAX_MEDIA = 10_000
"""Histograms and images of a run."""
_MAX_QUOTED = 80
PLACEHOLDERS = frozenset({"", "none", "null", "nan", "n/a", "unknown", "unspecified"})
"""Texts, in lower case, that libraries write where a name is missing."""


def quoted(text: str) -> str:
    """A text of a log in quotes and on one line, for a message; only the start of a long one."""
    line = json.dumps(text[:_MAX_QUOTED], ensure_ascii=False)
    line = "".join(
        character if character.isprintable() else json.dumps(character)[1:-1] for character in line
    )
    return line if len(text) <= _MAX_QUOTED else f'{line[:-1]}…"'


class UnreadableLog(Exception):
    """A log that cannot be imported, and why."""


def problem_of(error: Exception) -> str:
    """Why a log cannot be imported, in one line."""
    if isinstance(error, UnreadableLog):
        return str(error)
    cause = (str(error).splitlines() or [""])[0]
    return f"it cannot be imported: {type(error).__name__}{': ' if cause else ''}{cause}"


def named(text: Any) -> str | None:
    """A name of a source; None if the text only stands where a name is missing."""
    return text if isinstance(text, str) and text.strip().lower() not in PLACEHOLDERS else None


@dataclass
class Column:
    """Points of one metric, in order."""

    agent_steps: array[int] = field(default_factory=lambda: array("q"))
    wall_time_s: array[float] = field(default_factory=lambda: array("d"))
    value: array[float] = field(default_factory=lambda: array("d"))
    frames: array[int] = field(default_factory=lambda: array("q"))
    """Emulator frames of each point; empty if the log has none."""
    counts_agent_steps: bool = False
    """Whether its steps are agent steps, whatever those of the log's other metrics count."""

    def add(
        self,
        agent_steps: int,
        wall_time_s: float,
        value: float,
        frames: int | None = None,
        *,
        is_ordered: bool = True,
    ) -> str | None:
        """Append a point; return why it cannot be, or None. Points that are not ordered are sorted later."""
        if not 0 <= agent_steps <= MAX_STEPS:
            return "points with a step below 0 or above 10**15"
        if is_ordered and self.agent_steps and agent_steps < self.agent_steps[-1]:
            return "points whose step decreases"
        self.agent_steps.append(agent_steps)
        self.wall_time_s.append(wall_time_s if 0 <= wall_time_s < math.inf else 0.0)
        self.value.append(value)
        if frames is not None:
            self.frames.append(frames)
        return None

    def sort(self) -> None:
        """Order the points by their step; those of one step stay in order."""
        steps = np.array(self.agent_steps)
        if np.all(steps[1:] >= steps[:-1]):
            return
        order = np.argsort(steps, kind="stable")
        self.agent_steps = array("q", steps[order].tolist())
        self.wall_time_s = array("d", np.array(self.wall_time_s)[order].tolist())
        self.value = array("d", np.array(self.value)[order].tolist())
        if self.frames:
            self.frames = array("q", np.array(self.frames)[order].tolist())

    def cut(self, first_agent_steps: int) -> int:
        """Remove the points from this agent step on; return how many."""
        n = len(self.agent_steps)
        while self.agent_steps and self.agent_steps[-1] >= first_agent_steps:
            self.agent_steps.pop()
        kept = len(self.agent_steps)
        del self.wall_time_s[kept:], self.value[kept:], self.frames[kept:]
        return n - kept


@dataclass
class Medium:
    """A histogram or an image of one metric."""

    kind: Literal["histogram", "image"]
    metric: str
    agent_steps: int
    wall_time_s: float
    content: tuple[list[float], list[float]] | bytes
    """Edges and counts, or the file."""


@dataclass
class Log:
    """One training."""

    name: str
    identity: str
    """Identifies it when it is imported again."""
    algorithm: str | None = None
    environment: str | None = None
    seed: int | None = None
    return_metric: str | None = None
    """The metric that is the return, if it was named."""
    step_unit: Literal["agent_steps", "iterations"] | None = None
    """What the steps count; None: what the names of the metrics imply."""
    config: dict[str, Any] = field(default_factory=dict)
    config_details: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What the JSON of settings does not say, if they are those of a run."""
    project: str | None = None
    group: str | None = None
    tags: list[str] = field(default_factory=list)
    merged: list[str] = field(default_factory=list)
    """Identities of logs that are part of this one, but are imported separately with other options."""
    series: dict[str, Column] = field(default_factory=dict)
    lines: list[tuple[float, str]] = field(default_factory=list)
    """Unix time and text of each line."""
    media: dict[tuple[str, str, int], Medium] = field(default_factory=dict)
    """By kind, metric and step in the log: what was logged last there."""
    not_kept: Counter[str] = field(default_factory=Counter)
    """What could not be imported -> how many of it."""
    said: list[str] = field(default_factory=list)
    """What the source has lost, or how it was read: a sentence each."""
    state: Literal["finished", "failed", "stopped"] = "finished"
    """How the training has ended, as far as the source says."""
    reason: str | None = None
    """Why it has ended so."""
    problem: str | None = None
    """Why nothing of it can be imported."""
    _has_seed_of_config: bool = False

    def add(
        self,
        metric: str,
        agent_steps: int,
        wall_time_s: float,
        value: float,
        frames: int | None = None,
        *,
        is_ordered: bool = True,
    ) -> None:
        """Add a point, or count it in `not_kept`."""
        column = self.series.get(metric)
        if column is None:
            column = self.series[metric] = Column()
        problem = column.add(agent_steps, wall_time_s, value, frames, is_ordered=is_ordered)
        if problem is not None:
            self.not_kept[problem] += 1

    def add_histogram(self, metric: str, step: int, wall_time_s: float, histogram: Histogram) -> None:
        """Add a histogram, or count it in `not_kept`."""
        try:
            self._add_medium(Medium("histogram", metric, step, wall_time_s, histogram.bins()))
        except (ValueError, TypeError, OverflowError):
            self.not_kept["histograms that are damaged or have no finite value"] += 1

    def add_image(self, metric: str, step: int, wall_time_s: float, content: bytes) -> None:
        """Add an image, or count it in `not_kept`."""
        if len(content) > MAX_MEDIA_BYTES or not content.startswith(IMAGE_SIGNATURES):
            self.not_kept["images that are no PNG, JPEG or WebP of at most 2 MiB"] += 1
        else:
            self._add_medium(Medium("image", metric, step, wall_time_s, content))

    def _add_medium(self, medium: Medium) -> None:
        if not 0 <= medium.agent_steps <= MAX_STEPS:
            self.not_kept["histograms and images with a step below 0 or above 10**15"] += 1
        elif len(self.media) >= MAX_MEDIA and self._key(medium) not in self.media:
            self.not_kept[f"histograms and images after the first {MAX_MEDIA:,}"] += 1
        else:
            if not 0 <= medium.wall_time_s < math.inf:
                medium.wall_time_s = 0.0
            self.media[self._key(medium)] = medium

    @staticmethod
    def _key(medium: Medium) -> tuple[str, str, int]:
        return medium.kind, medium.metric, medium.agent_steps

    def sort(self) -> None:
        """Order the points of every metric by their step."""
        for column in self.series.values():
            column.sort()

    @property
    def given_seed(self) -> int | None:
        """The seed that something else than a setting names."""
        return None if self._has_seed_of_config else self.seed

    @property
    def n_points(self) -> int:
        """Points of all metrics."""
        return sum(len(column.value) for column in self.series.values())

    def describe_by_config(self, config: Mapping[str, Any]) -> None:
        """Add settings; take from them what is not known yet, and the seed unless something else names it."""
        is_given = self.seed is not None and not self._has_seed_of_config
        self.config |= config
        described = described_by(config)
        environment = named(described.get("environment"))
        # The id in a folder's name, as of `runs/ALE/Pong-v5__ppo__1`, lacks its namespace.
        if environment and (not self.environment or environment.endswith(f"/{self.environment}")):
            self.environment = environment
        self.algorithm = self.algorithm or named(described.get("algorithm"))
        seed = config.get("seed")
        if not is_given and is_seed(seed):
            self.seed, self._has_seed_of_config = seed_of(seed), True

    def describe_by_folder(self, folder: Path) -> None:
        """Add what the names of folders say, unless it is known already."""
        described: dict[str, Any] = described_by_folder(folder.resolve())
        self.environment = self.environment or described.get("environment")
        self.algorithm = self.algorithm or described.get("algorithm")
        if self.seed is None:
            self.seed = described.get("seed")

    def describe_by_trial(self, folder: Path) -> None:
        """Add the settings in `params.json` of a folder of Ray Tune."""
        path = folder / "params.json"
        try:
            params = json.loads(path.read_text("utf-8")) if path.stat().st_size <= MAX_PARAMS_BYTES else None
        except (OSError, ValueError, RecursionError):
            return
        if isinstance(params, dict):
            # The rows of a table may have the same settings, with other names of those that are nested.
            self.describe_by_config(params if not self.config else {})
