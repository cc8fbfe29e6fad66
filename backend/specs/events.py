"""What an engine says: the typed events of its log, in the order they happened.

The log is the engine's only output. The recorder turns each event into rows exactly once; a run in a
terminal without a server leaves the same log behind.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter


class Event(BaseModel):
    """Base of all events."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Started(Event):
    """The engine has built its world and network and is about to train."""

    type: Literal["started"] = "started"
    time: float
    """Unix time in seconds."""
    device: str
    """Where the network lives, such as `cpu` or `cuda:0 (NVIDIA H200)`."""
    pid: int
    resumed_from: str | None = None
    """File name of the checkpoint it goes on from."""
    agent_steps: int = 0
    """Agent steps already done in earlier attempts."""
    versions: dict[str, str] = {}


class Points(Event):
    """A batch of points of one series: five columns of equal length and the values."""

    type: Literal["points"] = "points"
    metric: str
    """Such as `rollout/episode_return`; the part before `/` makes a section on the page."""
    source: str = ""
    """Which actor or part said it; empty for the run as a whole."""
    agent_steps: list[int]
    """Decisions taken by the agent."""
    frames: list[int]
    """Emulator frames (4 a decision by default)."""
    wall_time_s: list[float]
    """Training time summed over attempts, evaluation excluded."""
    episodes: list[int]
    """Training episodes finished."""
    value: list[float]


class Report(Event):
    """How far the run is. `train --json` prints one of these a line."""

    type: Literal["report"] = "report"
    agent_steps: int
    frames: int
    updates: int
    wall_time_s: float
    episodes: int
    agent_steps_per_s: float
    """Over the time since the last report."""
    mean_return_100: float | None
    """Mean true return of the last 100 training episodes: the run's `score`."""
    best_return: float | None
    """Best true return of a training episode so far."""


class Episode(Event):
    """A training or evaluation episode whose replay was kept."""

    type: Literal["episode"] = "episode"
    agent_steps: int
    """Agent steps of the run when the episode ended."""
    frames: int
    wall_time_s: float
    kind: Literal["training", "evaluation"] = "training"
    source: str = ""
    seed: int
    episode_return: float
    """True, unclipped return."""
    length_steps: int
    length_frames: int
    replay: str
    """File name in the run's `replays/`: start seed, actions, rewards, values, policies."""


class Evaluation(Event):
    """A finished evaluation."""

    type: Literal["evaluation"] = "evaluation"
    protocol: str
    agent_steps: int
    frames: int
    wall_time_s: float
    checkpoint: str
    """File name of the checkpoint whose parameters were evaluated."""
    seed: int
    returns: list[float]
    lengths_frames: list[int]
    mean_return: float


class CheckpointSaved(Event):
    """A checkpoint is complete on the engine's disk under its final name."""

    type: Literal["checkpoint"] = "checkpoint"
    agent_steps: int
    frames: int
    updates: int
    episodes: int
    wall_time_s: float
    file: str
    """File name in the run's `checkpoints/`."""
    sha256: str
    size_bytes: int


class CheckpointsRemoved(Event):
    """Older checkpoints the engine has thinned out."""

    type: Literal["checkpoints_removed"] = "checkpoints_removed"
    files: list[str]


class SettingsChanged(Event):
    """Settings that are in force from here on: an answer to the command `settings`."""

    type: Literal["settings"] = "settings"
    version: int
    agent_steps: int
    frames: int
    wall_time_s: float
    changes: dict[str, Any]
    """Setting of the algorithm -> value."""
    refused: str | None = None
    """Why nothing was changed, where something was wrong."""


class Log(Event):
    """A line for the run's log."""

    type: Literal["log"] = "log"
    time: float
    level: Literal["debug", "info", "warning", "error"] = "info"
    message: str


class Ended(Event):
    """The engine's last word. Without it, the engine died."""

    type: Literal["ended"] = "ended"
    time: float
    state: Literal["finished", "stopped", "failed"]
    reason: str
    traceback: str | None = None


AnyEvent = Annotated[
    Started
    | Points
    | Report
    | Episode
    | Evaluation
    | CheckpointSaved
    | CheckpointsRemoved
    | SettingsChanged
    | Log
    | Ended,
    Field(discriminator="type"),
]

BATCH: TypeAdapter[list[AnyEvent]] = TypeAdapter(
    list[AnyEvent], config=ConfigDict(ser_json_inf_nan="constants")
)
"""Reads and writes one batch of the log. Divergence is data: NaN and infinities pass through."""
