"""Series as REST shows them."""

from typing import Literal

from pydantic import BaseModel

X = Literal["agent_steps", "frames", "wall_time_s", "episodes"]
Numbers = list[float | None]
"""Null stands for what is no finite number."""

Format = Literal["csv", "parquet", "tensorboard"]

MEDIA_TYPES: dict[Format, tuple[str, str]] = {
    "csv": ("text/csv", "csv"),
    "parquet": ("application/vnd.apache.parquet", "parquet"),
    "tensorboard": ("application/zip", "tensorboard.zip"),
}
"""Media type and file name ending."""


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


class Curve(BaseModel):
    """The buckets of one series, from `first_bucket` on. A bucket is `bucket_rows` consecutive points."""

    run: str
    metric: str
    source: str
    revision: int
    """The run's revision this tells of: send it as `since_revision` for what comes after."""
    n_total: int
    """Points there are."""
    n_shown: int
    """Buckets they make, those before `first_bucket` included."""
    bucket_rows: int
    reset: bool
    """Forget all earlier buckets; otherwise keep those before `first_bucket`."""
    first_bucket: int
    x: Numbers
    """Of each bucket's last point."""
    mean: Numbers
    min: Numbers
    max: Numbers
    last: Numbers
    count: list[int]
    """Values in the bucket that are not NaN; only these are in the other columns."""
    smoothed: Numbers | None
    """The moving average at each bucket's last point, where `smooth` is above 0."""


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
    """Of `runs`, in their order: send them as `since_revision`."""
    metric: str
    source: str
    interval: str
    """What `low` and `high` are."""
    step: float
    n_total: int
    """Points of all runs."""
    n_shown: int
    """Grid points they make, those before `first_bucket` included."""
    reset: bool
    first_bucket: int
    x: Numbers
    mean: Numbers
    low: Numbers
    high: Numbers
    n: list[int]
    """Runs in each mean: those that reach this x."""


class Chart(BaseModel):
    """What `GET /series` answers. A series of the request that is not here has no points."""

    x: X
    smooth: float
    series: list[Curve]
    groups: list[GroupCurve]
