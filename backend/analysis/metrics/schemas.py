"""Response bodies of series."""

from typing import Literal

from pydantic import Field

from backend.platform.schemas import Id, Number
from backend.runs.runs.fields import FieldKind
from backend.specs.fields import Schema
from callboard.known_tags import StepUnit

X = Literal["agent_steps", "frames", "updates", "wall_time_s", "clock_time_s", "episodes"]
Numbers = list[float | Literal["Infinity", "-Infinity"] | None]
"""Numbers; null is NaN, and infinite ones are text."""

Format = Literal["csv", "parquet", "npz", "tensorboard"]

MEDIA_TYPES: dict[Format, tuple[str, str]] = {
    "csv": ("text/csv", "csv"),
    "parquet": ("application/vnd.apache.parquet", "parquet"),
    "npz": ("application/vnd.numpy.npz", "npz"),
    "tensorboard": ("application/zip", "tensorboard.zip"),
}
"""Media type and file extension."""


class SeriesInfo(Schema):
    """One series of a run."""

    metric: str = Field(examples=["rollout/episode_return"])
    """Name of the metric, such as `rollout/episode_return`."""
    source: str
    """Actor or process that measured the series; empty for the run as a whole."""
    n_points: int = Field(examples=[812])
    """Number of stored points."""
    last_value: float | None
    """Latest value; null if it is not finite."""
    revision: int
    """The run's revision at which it last changed."""
    cut_revision: int
    """The run's revision at which points were last set aside, since the run went on from an earlier point; 0
    if never."""
    cut_agent_steps: int | None
    """The points above these agent steps were set aside then; -1 for all of them, null if never."""
    step_unit: StepUnit
    """What the steps of its points count."""


class SeriesInfos(Schema):
    """All series of a run."""

    items: list[SeriesInfo]
    """Every series, by metric and source."""
    return_metric: str | None
    """The metric by which an external run is scored; null for Callboard's own runs, or if none is known."""
    return_candidates: list[str]
    """Metrics of an external run without one that may be it."""


class MetricChange(Schema):
    """How much a metric changed from the range before to the range."""

    metric: str = Field(examples=["loss/entropy"])
    """Name of the metric."""
    title: str = Field(examples=["Policy entropy"])
    """Its title."""
    unit: str = Field(examples=["MiB"])
    """Unit of the medians; empty where the metric has none of its own."""
    of_machine: bool
    """Whether it measures the machine, on which other programs run too."""
    before: Number = Field(examples=[1.2])
    """Median in the range before."""
    inside: Number = Field(examples=[0.04])
    """Median in the range; null of fewer than three finite values."""
    score: Number = Field(examples=[-31.0])
    """Modified z-score: the difference of the medians in robust standard deviations of the values before;
    null if these were constant and the values are others, or of fewer than three finite values."""
    was_constant: bool
    """Whether it was constant before and is not any more."""
    becomes_not_finite: bool
    """Whether it has NaN or infinite values in the range, and had none before."""


class CheckpointBefore(Schema):
    """The latest checkpoint at the start of a range or before."""

    id: Id
    """Id of the checkpoint."""
    agent_steps: int = Field(examples=[1_800_000])
    """Agent steps at which it was saved."""


class Changes(Schema):
    """The metrics that changed most in a range of x. They changed together; which caused which is not
    known."""

    x: X
    """What the range counts."""
    before_from: float
    """Where the range before starts. It ends where the range starts, and is as long, unless the run starts in
    it."""
    range_from: float
    """Where the range starts."""
    range_to: float
    """Where it ends."""
    agent_steps_from: int
    """Agent steps at which the range starts, to the points of the longest series."""
    agent_steps_to: int
    """Agent steps at which it ends."""
    n_metrics: int
    """Number of metrics that were compared."""
    items: list[MetricChange]
    """Those that changed most, the most first."""
    checkpoint: CheckpointBefore | None
    """The latest checkpoint before the range, to fork from; null without one, and for external runs."""


class MetricSummary(Schema):
    """One metric of one run as a whole; null without a finite value."""

    run: Id
    """Id of the run."""
    metric: str = Field(examples=["rollout/episode_return"])
    """Name of the metric, such as `rollout/episode_return`."""
    last: float | None
    """Latest value; null if it is not finite."""
    best: float | None
    """Best value: the smallest of a `loss/` metric, the largest of others."""
    mean: float | None
    """Mean of all values."""
    min: float | None
    """Smallest value."""
    max: float | None
    """Largest value."""


class MetricSummaries(Schema):
    """Metrics of runs. A requested metric that is missing here has no points."""

    items: list[MetricSummary]
    """One entry for each run and each of its requested metrics."""


class FieldOut(Schema):
    """A field by which runs can be filtered, sorted and shown in a column."""

    name: str = Field(examples=["config.learning_rate"])
    """How `filter` and `sort` of `GET /runs` name the field."""
    title: str = Field(examples=["Learning rate"])
    """Name of the field, as pages show it."""
    kind: FieldKind
    """Kind of the field's values; `any`: a setting of external runs, a number or a text."""
    origin: Literal["run", "setting", "metric"]
    """What the field belongs to. A metric's name stands for its last value; `statistics` lists the suffixes
    of others."""
    unit: str | None = None
    """Unit of the field's numbers; null without one."""
    values: list[str] = Field(default=[])
    """All possible values, if they are few; for `group` and `tag`, those of the latest runs."""


class FieldsOut(Schema):
    """All fields, with the metrics that any run has recorded."""

    items: list[FieldOut]
    """Every field: of runs themselves, of their settings, and their metrics."""
    statistics: list[str]
    """Suffixes of a metric's name that stand for another statistic than its last value, as in `.best`."""


class MetricInfo(Schema):
    """One metric of some runs."""

    metric: str = Field(examples=["rollout/episode_return"])
    """Name of the metric, such as `rollout/episode_return`."""
    title: str = Field(examples=["Episode return"])
    """Name of the metric in words, as charts show it."""
    n_runs: int
    """How many of the runs have points of it."""


class MetricInfos(Schema):
    """All metrics of some runs, by name."""

    items: list[MetricInfo]
    """Every metric that any of the runs has points of."""


class Curve(Schema):
    """The buckets of one series, from `first_bucket` on. A bucket is `bucket_rows` consecutive points."""

    run: Id
    """Id of the run."""
    metric: str = Field(examples=["rollout/episode_return"])
    """Name of the metric, such as `rollout/episode_return`."""
    source: str
    """Actor or process that measured the series; empty for the run as a whole."""
    step_unit: StepUnit
    """What its x counts if that of the chart is `agent_steps`: `iterations` or `seconds` of some external
    runs."""
    revision: int
    """The run's revision of this data: send it as `since_revision` to get later data."""
    n_total: int
    """Number of points, in the range of x if there is one."""
    n_shown: int
    """Number of their buckets before any are merged, including those before `first_bucket`."""
    bucket_rows: int
    """Number of points in a full bucket, a power of two."""
    reset: bool
    """Discard all earlier buckets; otherwise keep those before `first_bucket`."""
    first_bucket: int
    """Index of the first bucket below; those before it have not changed since the given revision."""
    x: Numbers
    """x of each bucket's last point."""
    mean: Numbers
    """Mean of the points in each bucket."""
    min: Numbers
    """Smallest point in each bucket."""
    max: Numbers
    """Largest point in each bucket."""
    last: Numbers
    """Last point in each bucket."""
    count: list[int]
    """Values in the bucket that are not NaN; only these enter the other columns."""
    smoothed: Numbers | None
    """The moving average of the finite points up to each bucket's last one, if there is one; null where
    `mean` is not finite."""
    bucket: list[int] | None
    """With `merge_equal_x`, the index of the last bucket merged into each; otherwise null, and they count
    from `first_bucket`."""


class GroupCurve(Schema):
    """Runs that differ in their seed alone as one curve, on a grid of power-of-two steps."""

    id: str
    """Id of the group: the same for the same settings, whatever else is shown."""
    algorithm: str = Field(examples=["paac"])
    """Algorithm of the runs: an id from `GET /algorithms`, or the name that scripts of external runs have
    chosen."""
    environment: str = Field(examples=["ALE/Pong-v5"])
    """Environment of the runs: an id from `GET /environments`, or the name that scripts of external runs have
    chosen."""
    group: str | None = Field(examples=["learning rates"])
    """Name of the group that the runs belong to; null for none."""
    runs: list[str]
    """Ids of the runs."""
    seeds: list[int]
    """Seeds of `runs`, in this order."""
    revisions: list[int]
    """Revisions of `runs`, in this order: send them as `since_revision`."""
    metric: str = Field(examples=["rollout/episode_return"])
    """Name of the metric, such as `rollout/episode_return`."""
    source: str
    """Actor or process that measured the series; empty for the runs as a whole."""
    step_unit: StepUnit
    """What its x counts if that of the chart is `agent_steps`."""
    centre: Literal["median", "mean", "iqm"]
    """What the band is around."""
    interval: str
    """The interval of `low` and `high`, or what is drawn without one."""
    step: float
    """Distance of two grid points on the horizontal axis, a power of two."""
    n_total: int
    """Points of all runs."""
    n_shown: int
    """Number of grid points, including those before `first_bucket`."""
    reset: bool
    """Discard all earlier grid points; otherwise keep those before `first_bucket`."""
    first_bucket: int
    """Index of the first grid point below; those before it have not changed since the given revisions."""
    x: Numbers
    """Position of each grid point on the horizontal axis, in the requested unit."""
    mean: Numbers
    """Mean over the runs at each grid point; null where a run has come further but has no value there."""
    median: Numbers
    """Median over the runs at each grid point."""
    iqm: Numbers
    """Interquartile mean over the runs at each grid point."""
    low: Numbers
    """Lower bound of the interval; null for fewer runs than it needs."""
    high: Numbers
    """Upper bound of the interval; null where `low` is."""
    n: list[int]
    """Number of runs with a value at each grid point."""
    seed_values: list[Numbers]
    """The values of each run, in the order of `runs`, if they are too few for an interval or `seeds` asks for
    them; otherwise empty."""


class Chart(Schema):
    """Response of `GET /series`. A requested series that is missing here has no points, or no place on the
    axis."""

    x: X
    """Unit of the horizontal axis."""
    n_left_out: int
    """Number of series that are left out because their steps count something else than those of others."""
    smooth: float
    """Weight of the past in the moving average over points; 0 without one."""
    scales: list[float]
    """Width of the window or time constant of the smoothing over x: one if it is that of all runs, else one
    for each; empty without any."""
    series: list[Curve]
    """One curve for each run, metric and source; empty with `group_by`."""
    groups: list[GroupCurve]
    """One curve for each group of runs, metric and source; empty without `group_by`."""
