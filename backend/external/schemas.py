"""Request and response bodies of external runs."""

import math
import re
from datetime import datetime
from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    JsonValue,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)

from backend.db.alert import MAX_TITLE
from backend.db.media import MAX_CAPTION
from backend.runs.runs.script_provenance import MAX_OUTPUT_CHARACTERS, ScriptProvenance
from backend.specs.events import MAX_TEXT
from backend.specs.fields import NAME, SHA256, SUFFIX, ULID, Schema, Strict, Text, whole
from backend.specs.run_fields import ExternalSeed
from backend.specs.states import RunState
from backend.statistics.histograms import MAX_BINS
from callboard.known_tags import RunUnit

MAX_UPLOAD_BYTES = 2**30
"""Maximum size of a file."""
MAX_ROWS = 10_000
MAX_SERIES_OF_REQUEST = 250
MAX_METRIC = 200
MAX_LINES = 1_000
MAX_HISTOGRAMS = 100
"""Histograms of a request."""
MAX_MEDIA_BYTES = 2 * 2**20
"""Maximum size of an image or a table."""
MAX_STEPS = 10**15
MAX_WALL_TIME_S = 10**10
MAX_SEQUENCE = 2**62


METRIC_NAME = re.compile(NAME)
MetricName = Annotated[str, StringConstraints(max_length=MAX_METRIC, pattern=NAME)]
Steps = Annotated[int, Field(ge=0, le=MAX_STEPS)]


def _whole_items(values: object) -> object:
    """Floats without a fraction as integers: JSON has one number type, and some languages write 1e5."""
    if isinstance(values, list) and float in set(map(type, values)):
        return [*map(whole, values)]
    return values


StepsColumn = Annotated[list[Steps], BeforeValidator(_whole_items)]
WallTime = Annotated[float, Field(ge=0, le=MAX_WALL_TIME_S, strict=False, allow_inf_nan=False)]
Value = Annotated[float, Field(strict=False)]


NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""JSON has no numbers for these: they are text."""


def _number(value: object) -> object:
    """A number, or the text of one that is not finite."""
    if type(value) is str and value in NOT_FINITE:
        return NOT_FINITE[value]
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"must be a finite number, or text: {', '.join(NOT_FINITE)}")
    if isinstance(value, str | bool):
        raise ValueError(f"must be a number, or one of the texts {', '.join(NOT_FINITE)}")
    return value


Number = Annotated[
    float,
    Field(strict=False, allow_inf_nan=True),
    BeforeValidator(_number),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string", "enum": [*NOT_FINITE]}]}),
]


class NumberedBatch(Strict):
    """What a process sends, once: its batches are numbered from 1."""

    source: Annotated[str, StringConstraints(pattern=ULID)] = Field(
        description="The process that writes: a ULID that it chooses when it starts."
    )
    sequence: int = Field(
        ge=1, le=MAX_SEQUENCE, description="Number of the batch; each is one more than before."
    )


class SeriesPoints(Strict):
    """Points of one metric: columns of equal length."""

    metric: MetricName = Field(description="Name of the metric, such as `loss/policy`; `/` makes sections.")
    agent_steps: StepsColumn = Field(
        max_length=MAX_ROWS, description="Agent steps (decisions), which never decrease."
    )
    frames: StepsColumn | None = Field(
        default=None, max_length=MAX_ROWS, description="Emulator frames; default: as many as agent steps."
    )
    wall_time_s: list[WallTime] = Field(max_length=MAX_ROWS, description="Training time in seconds.")
    value: list[Number | None] = Field(
        max_length=MAX_ROWS,
        description="Values of the metric. One that is not finite is text: `NaN`, `Infinity` or `-Infinity`. "
        "Null is NaN.",
    )


class PointsBatch(NumberedBatch):
    """The body of `POST /runs/{id}/points`."""

    series: list[SeriesPoints] = Field(
        max_length=MAX_ROWS, description=f"Points of each metric, at most {MAX_ROWS:,} in total."
    )


class EpisodeRow(Strict):
    """One finished training episode."""

    agent_steps: Steps = Field(description="Agent steps of the run at its end.")
    wall_time_s: WallTime = Field(description="Training time of the run at its end.")
    episode_return: Number | None = Field(
        alias="return",
        description="True, unclipped return; null: not known, and not stored. One that is not finite is the "
        "text `NaN`, `Infinity` or `-Infinity`; the run's score leaves it out.",
    )
    length: Steps | None = Field(description="Agent steps of the episode; null: not known, and not stored.")
    frames: Steps | None = Field(
        default=None,
        description="Emulator frames of the run at its end; null: in proportion to its agent steps, as those "
        "of the run so far.",
    )


class EpisodesBatch(NumberedBatch):
    """The body of `POST /runs/{id}/episodes`."""

    episodes: list[EpisodeRow] = Field(
        max_length=MAX_ROWS, description="Episodes, in the order in which they ended."
    )


def _in_range(time: datetime) -> datetime:
    if not 1970 <= time.year < 9999:
        raise ValueError("must be in a year from 1970 to 9998")
    return time


class SentLine(Strict):
    """A line for the run's log."""

    time: Annotated[datetime, AfterValidator(_in_range)] = Field(
        strict=False,
        description="When it was written, in a year from 1970 to 9998; without a time zone, in UTC.",
    )
    level: Literal["debug", "info", "warning", "error"] = "info"
    """Severity of the line."""
    message: Text = Field(max_length=MAX_TEXT, description="Text of the line.")
    agent_steps: Steps | None = Field(
        default=None, description="Agent steps of the run that the line belongs to."
    )
    alert: Text | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_TITLE,
        description="Title of an alert, whose text is `message`, cut at 4,096 characters. It is raised in "
        "the inbox of the token's user, and where rules send it; the line of the log has both.",
    )


class SentHistogram(Strict):
    """How many values of a metric lie between each two edges."""

    metric: MetricName = Field(description="Name of the metric, such as `policy/actions`.")
    agent_steps: Steps = Field(description="Agent steps of the run that it belongs to.")
    wall_time_s: WallTime = Field(description="Training time of the run then.")
    edges: list[Annotated[float, Field(strict=False, allow_inf_nan=False)]] = Field(
        min_length=2,
        max_length=MAX_BINS + 1,
        description="Edges of the bins, increasing: one more than `counts`. Bins of one whole number each, "
        "such as actions, have the edges -0.5, 0.5, 1.5, … and are drawn as shares.",
    )
    counts: list[Annotated[float, Field(strict=False, ge=0, le=1e18, allow_inf_nan=False)]] = Field(
        min_length=1, max_length=MAX_BINS, description="Values in each bin; at least one is above 0."
    )

    @model_validator(mode="after")
    def _is_histogram(self) -> Self:
        if len(self.edges) != len(self.counts) + 1:
            raise ValueError(f"edges: must be {len(self.counts) + 1}, one more than counts")
        if any(low >= high for low, high in pairwise(self.edges)):
            raise ValueError("edges: must increase")
        if not any(self.counts):
            raise ValueError("counts: at least one must be above 0")
        return self


class HistogramsBatch(NumberedBatch):
    """The body of `POST /runs/{id}/histograms`."""

    histograms: list[SentHistogram] = Field(
        max_length=MAX_HISTOGRAMS, description="Histograms, in the order in which they were logged."
    )


class LogBatch(NumberedBatch):
    """The body of `POST /runs/{id}/log`."""

    lines: list[SentLine] = Field(
        max_length=MAX_LINES, description="Lines, in the order in which they were written."
    )


class ConfigBatch(NumberedBatch):
    """The body of `POST /runs/{id}/config`: what a script has learnt of its run after its start."""

    config: dict[str, JsonValue] = Field(default={})
    """Settings to add to those of the run, or to replace there."""
    config_details: dict[str, JsonValue] = Field(default={})
    """What the JSON of these settings does not say, as in `POST /runs`."""
    algorithm: Text | None = None
    """Name of the algorithm, if that of the run is `unknown`."""
    environment: Text | None = None
    """Name of the environment, if that of the run is `unknown`, or its id without the namespace."""
    seed: ExternalSeed | None = None
    """Seed of the script, if the run was created without one."""
    return_metric: MetricName | None = None
    """The metric by which the run is scored from now on."""
    step_unit: RunUnit | None = None
    """What the run's steps count."""


class ProvenanceBatch(NumberedBatch):
    """The body of `POST /runs/{id}/provenance`: where the script came from, and what it has printed since."""

    provenance: ScriptProvenance | None = Field(
        default=None, description="Where the process came from; null leaves what is stored."
    )
    output: Text = Field(
        default="",
        max_length=MAX_OUTPUT_CHARACTERS,
        description="What it has printed since the last batch; the last 64 KiB of all are kept.",
    )


class CompletedUpload(NumberedBatch):
    """What becomes of a complete upload."""

    upload: Annotated[str, StringConstraints(pattern=ULID)] = Field(
        description="The file: a complete upload of the run."
    )
    size_bytes: int = Field(ge=1, le=MAX_UPLOAD_BYTES, description="Size of the file.")
    sha256: Annotated[str, StringConstraints(pattern=SHA256)] = Field(
        description="Checksum of the file, in hexadecimal."
    )
    agent_steps: Steps = Field(description="Agent steps of the run that the file belongs to.")
    wall_time_s: WallTime = Field(description="Training time of the run that the file belongs to.")


class CheckpointUpload(CompletedUpload):
    """The body of `POST /runs/{id}/checkpoints`."""

    suffix: Annotated[str, StringConstraints(pattern=SUFFIX)] = Field(
        default="", description="Suffix of the file's name, such as `.zip`."
    )
    frames: Steps | None = Field(
        default=None, description="Emulator frames; default: as many as agent steps."
    )
    score: Annotated[Value, Field(allow_inf_nan=False)] | None = Field(
        default=None, description="Score that the script measured for it, such as a mean return."
    )


class VideoUpload(CompletedUpload):
    """The body of `POST /runs/{id}/videos`."""

    form: Literal["file", "frames"] = Field(
        description="`file`: an MP4, MOV, WebM, Matroska, AVI or GIF file. `frames`: a NumPy archive (.npz) "
        "with the uint8 array `frames` of the shape (T, H, W, 3), RGB."
    )
    fps: Annotated[float, Field(gt=0, le=240, strict=False, allow_inf_nan=False)] | None = Field(
        default=None, description="Frames per second, of `frames`; default: 30."
    )


class MediaUpload(CompletedUpload):
    """The body of `POST /runs/{id}/media`."""

    kind: Literal["image", "table"] = Field(
        description="`image`: a PNG, JPEG or WebP file of at most 4,096 pixels per side. `table`: JSON with "
        "`columns`, at most 50 names, and `rows`, at most 1,000 lists of as many cells: texts of at most "
        "1,000 characters, numbers, booleans or null."
    )
    metric: MetricName = Field(description="Name that it is shown under, such as `observation`.")
    caption: Annotated[Text, StringConstraints(max_length=MAX_CAPTION)] | None = Field(
        default=None, description="A line below it."
    )
    size_bytes: int = Field(ge=1, le=MAX_MEDIA_BYTES, description="Size of the file.")


class UploadOut(Schema):
    """How far an upload is."""

    received_bytes: int
    """Bytes of the file that are stored: the offset of the next part."""


DropReason = Literal["agent_steps_decrease", "too_many_metrics", "too_many_media"]


class DroppedRows(Schema):
    """Rows of a batch that are not stored, for one reason."""

    reason: DropReason
    """`agent_steps_decrease`: their metric has reached more agent steps. `too_many_metrics`: their metric is
    new, and the run has as many as it may have. `too_many_media`: the run has as many histograms, images and
    tables as are kept of one."""
    rows: int
    """Number of rows."""
    metric: str
    """Metric of the first of the rows."""
    agent_steps: int
    """The most agent steps that this metric has reached."""


class Stored(Schema):
    """What of a batch was stored."""

    sequence: int
    """The last batch of this source that is stored."""
    stored: int
    """Rows of this batch that are stored now; 0 if it was stored before."""
    dropped: int
    """Rows of this batch that are not stored: see `dropped_rows`."""
    dropped_rows: list[DroppedRows]
    """The dropped rows of this batch, by reason."""
    dropped_in_all: int
    """Rows of all batches of this source that are not stored, those whose answers were lost included."""


class Heartbeat(Strict):
    """The body of `POST /runs/{id}/heartbeat`."""

    state: Literal["running", "finished", "failed", "stopped"] = Field(
        default="running",
        description="What the script does; `running` resumes a lost, finished or failed run.",
    )
    reason: Annotated[Text, Field(max_length=2_000)] | None = Field(
        default=None, description="One line for the run's page."
    )
    resume: bool = Field(
        default=False,
        description="With `running`: resume the run even if it is stopped. Without it, a script that was out "
        "of reach while a user stopped its run is asked to end. The first heartbeat of a process that "
        "continues a run has it.",
    )
    rewind_to: Steps | None = Field(
        default=None,
        description="With `running`: resume the run from a checkpoint at these agent steps. Its later points "
        "and checkpoints are kept aside, and no chart draws them. Repeating it changes nothing while nothing "
        "new was sent.",
    )


class HeartbeatOut(Schema):
    """The answer to a heartbeat."""

    state: RunState
    """State of the run: `stopping` once a stop was requested, `stopped` if its script was then silent."""
    stop_requested: bool
    """Whether a user has requested that the script ends."""
    agent_steps: int
    """Agent steps that the run has reached: a script that resumes it goes on from here."""
    wall_time_s: float
    """Training time that it has reached."""
    step_unit: RunUnit
    """What `agent_steps` counts: `iterations` of some runs."""
    records_scripts: bool = True
    """Whether this installation stores where scripts come from, what they print and what they use."""
