"""Events of an engine's log, in the order in which they happened.

The log is the engine's only output. The recorder turns each event into rows exactly once; a run without a
server writes the same log.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter

from backend.specs.provenance import Provenance

MAX_TEXT = 10_000
"""Characters of a text. An environment's exception or warning may have any length."""


def _shortened(text: str) -> str:
    """A text without its middle, if it is too long."""
    if len(text) <= MAX_TEXT:
        return text
    half = MAX_TEXT // 2 - 50
    return f"{text[:half]} … ({len(text) - 2 * half:,} characters were dropped) … {text[-half:]}"


ShortText = Annotated[str, AfterValidator(_shortened)]


class Event(BaseModel):
    """Base of all events."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ProvenanceEvent(Event):
    """What an attempt is trained with, before it starts. `started` adds device and rollout workers."""

    type: Literal["provenance"] = "provenance"
    provenance: Provenance


class StartingEvent(Event):
    """What the engine does until `started`."""

    type: Literal["starting"] = "starting"
    time: float
    phase: ShortText
    """Such as "starting 64 of 131 processes"."""


class StartedEvent(Event):
    """The engine has built its environment and network and starts to train."""

    type: Literal["started"] = "started"
    time: float
    """Unix time in seconds."""
    device: str
    """Device of the network, such as `cpu` or `cuda:0 (NVIDIA H200)`."""
    pid: int
    resumed_from: str | None = None
    """File name of the checkpoint it resumes from."""
    agent_steps: int = 0
    """Agent steps of earlier attempts."""
    versions: dict[str, str] = {}
    """Package -> version, as in `ProvenanceEvent`."""
    rollout_workers: int | None = None
    """See `Provenance.rollout_workers`."""


class PointsEvent(Event):
    """A batch of points of one series: columns of equal length."""

    type: Literal["points"] = "points"
    metric: str
    """Such as `rollout/episode_return`; the part before `/` is the section on the page."""
    source: str = ""
    """The actor or process that reported it; empty for the run as a whole."""
    agent_steps: list[int]
    """Agent steps (decisions)."""
    frames: list[int]
    """Emulator frames (4 per agent step by default)."""
    wall_time_s: list[float]
    """Training time summed over attempts, evaluation excluded."""
    episodes: list[int]
    """Finished training episodes."""
    value: list[float]


class HistogramEvent(Event):
    """How the values of a metric are distributed since its last histogram."""

    type: Literal["histogram"] = "histogram"
    metric: Annotated[str, Field(max_length=200)]
    """Such as `policy/actions`."""
    agent_steps: int
    wall_time_s: float
    edges: Annotated[list[float], Field(min_length=2, max_length=65)]
    """Edges of the bins, increasing: one more than counts. Of whole numbers, such as actions: halves."""
    counts: Annotated[list[float], Field(min_length=1, max_length=64)]


class ReportEvent(Event):
    """Progress of the run. `train --json` prints each, and each evaluation, on a line."""

    type: Literal["report"] = "report"
    agent_steps: int
    frames: int
    updates: int
    wall_time_s: float
    episodes: int
    agent_steps_per_s: float
    """Since the previous report."""
    mean_return_100: float | None
    """Mean true return of the last 100 training episodes: the run's `score`."""
    best_return: float | None
    """Highest true return of a training episode so far."""


class EpisodeEvent(Event):
    """A training or evaluation episode with a recorded replay."""

    type: Literal["episode"] = "episode"
    agent_steps: int
    """Agent steps of the run at the end of the episode."""
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
    """File name in the run's `replays/`: seed, actions, rewards, values, policies."""
    replay_sha256: str
    """SHA-256 of the file, in hexadecimal."""


class EvaluationEvent(Event):
    """A finished evaluation."""

    type: Literal["evaluation"] = "evaluation"
    protocol: str
    agent_steps: int
    frames: int
    wall_time_s: float
    checkpoint: str
    """File name of the evaluated checkpoint."""
    seed: int
    returns: list[float]
    lengths_frames: list[int]
    mean_return: float


class CheckpointSavedEvent(Event):
    """A checkpoint is complete under its final name on the engine's disk."""

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


class CheckpointsRemovedEvent(Event):
    """The engine has removed older checkpoints."""

    type: Literal["checkpoints_removed"] = "checkpoints_removed"
    files: list[str]


class SettingsChangedEvent(Event):
    """Reply to the command `settings`: the settings in force from here on."""

    type: Literal["settings"] = "settings"
    version: int
    agent_steps: int
    frames: int
    wall_time_s: float
    changes: dict[str, Any]
    """Setting of the algorithm -> value."""
    refused: str | None = None
    """Why nothing was changed, if the change was rejected."""


class LogEvent(Event):
    """A line of the run's log."""

    type: Literal["log"] = "log"
    time: float
    level: Literal["debug", "info", "warning", "error"] = "info"
    message: ShortText


class EndedEvent(Event):
    """The engine's final event. Without it, the engine was killed or crashed."""

    type: Literal["ended"] = "ended"
    time: float
    state: Literal["finished", "stopped", "failed"]
    reason: ShortText
    traceback: ShortText | None = None


AnyEvent = Annotated[
    ProvenanceEvent
    | StartingEvent
    | StartedEvent
    | PointsEvent
    | HistogramEvent
    | ReportEvent
    | EpisodeEvent
    | EvaluationEvent
    | CheckpointSavedEvent
    | CheckpointsRemovedEvent
    | SettingsChangedEvent
    | LogEvent
    | EndedEvent,
    Field(discriminator="type"),
]

BATCH: TypeAdapter[list[AnyEvent]] = TypeAdapter(
    list[AnyEvent], config=ConfigDict(ser_json_inf_nan="constants")
)
"""Reads and writes one batch of the log. NaN and infinities are kept: a diverged run is data."""
