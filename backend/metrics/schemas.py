"""Response bodies of series."""

from typing import Literal

from pydantic import BaseModel

from backend.runs.fields import FieldKind

X = Literal["agent_steps", "frames", "updates", "wall_time_s", "clock_time_s", "episodes"]
Numbers = list[float | None]
"""Numbers, with null for a value that is not finite."""

Format = Literal["csv", "parquet", "tensorboard"]

MEDIA_TYPES: dict[Format, tuple[str, str]] = {
    "csv": ("text/csv", "csv"),
    "parquet": ("application/vnd.apache.parquet", "parquet"),
    "tensorboard": ("application/zip", "tensorboard.zip"),
}
"""Media type and file extension."""


class SeriesInfo(BaseModel):
    """One series of a run."""

    metric: str
    source: str
    n_points: int
    last_value: float | None
    revision: int
    """The run's revision at which it last changed."""


class SeriesInfos(BaseModel):
    """All series of a run."""

    items: list[SeriesInfo]


class MetricSummary(BaseModel):
    """One metric of one run as a whole; null without a finite value."""

    run: str
    metric: str
    last: float | None
    best: float | None
    """The smallest of a `loss/` metric, the largest of others."""
    mean: float | None
    min: float | None
    max: float | None


class MetricSummaries(BaseModel):
    """Metrics of runs. A requested metric that is missing here has no points."""

    items: list[MetricSummary]


class FieldOut(BaseModel):
    """A field by which runs can be filtered, sorted and shown in a column."""

    name: str
    title: str
    kind: FieldKind
    """`any`: a setting of external runs, a number or a text."""
    origin: Literal["run", "setting", "metric"]
    """A metric's name stands for its last value; `statistics` lists the suffixes of others."""
    unit: str | None = None
    values: list[str] = []
    """All possible values, if they are few; for `group` and `tag`, those of the latest runs."""


class FieldsOut(BaseModel):
    """All fields, with the metrics that any run has recorded."""

    items: list[FieldOut]
    statistics: list[str]


class MetricInfo(BaseModel):
    """One metric of some runs."""

    metric: str
    title: str
    n_runs: int
    """How many of the runs have points of it."""


class MetricInfos(BaseModel):
    """All metrics of some runs, by name."""

    items: list[MetricInfo]


class Curve(BaseModel):
    """The buckets of one series, from `first_bucket` on. A bucket is `bucket_rows` consecutive points."""

    run: str
    metric: str
    source: str
    revision: int
    """The run's revision of this data: send it as `since_revision` to get later data."""
    n_total: int
    """Number of points, in the range of x if there is one."""
    n_shown: int
    """Number of their buckets before any are merged, including those before `first_bucket`."""
    bucket_rows: int
    reset: bool
    """Discard all earlier buckets; otherwise keep those before `first_bucket`."""
    first_bucket: int
    x: Numbers
    """x of each bucket's last point."""
    mean: Numbers
    min: Numbers
    max: Numbers
    last: Numbers
    count: list[int]
    """Values in the bucket that are not NaN; only these enter the other columns."""
    smoothed: Numbers | None
    """The moving average at each bucket's last point, if there is one."""
    bucket: list[int] | None
    """With `merge_equal_x`, the index of the last bucket merged into each; otherwise null, and they count
    from `first_bucket`."""


class GroupCurve(BaseModel):
    """Runs that differ in their seed alone as one curve, on a grid of power-of-two steps."""

    id: str
    """The same for the same settings, whatever else is shown."""
    algorithm: str
    environment: str
    group: str | None
    runs: list[str]
    seeds: list[int]
    revisions: list[int]
    """Revisions of `runs`, in this order: send them as `since_revision`."""
    metric: str
    source: str
    centre: Literal["median", "mean", "iqm"]
    """What the band is around."""
    interval: str
    """The interval of `low` and `high`, or what is drawn without one."""
    step: float
    n_total: int
    """Points of all runs."""
    n_shown: int
    """Number of grid points, including those before `first_bucket`."""
    reset: bool
    first_bucket: int
    x: Numbers
    mean: Numbers
    median: Numbers
    iqm: Numbers
    """Interquartile mean."""
    low: Numbers
    """Null for fewer runs than the interval needs."""
    high: Numbers
    n: list[int]
    """Runs in each mean: those that have reached this x."""
    seed_values: list[Numbers]
    """The values of each run, in the order of `runs`, if they are too few for an interval; otherwise
    empty."""


class Chart(BaseModel):
    """Response of `GET /series`. A requested series that is missing here has no points."""

    x: X
    smooth: float
    series: list[Curve]
    groups: list[GroupCurve]
