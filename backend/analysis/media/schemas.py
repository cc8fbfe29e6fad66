"""Response bodies of histograms, images and tables."""

from typing import Literal

from pydantic import Field

from backend.db import Media
from backend.platform.schemas import Id, Number
from backend.specs.fields import Schema
from backend.statistics.histograms import Histogram

MediaKind = Literal["histogram", "image", "table"]


class MediaSeries(Schema):
    """What a run has logged of one kind for one metric; the two columns are of equal length."""

    kind: MediaKind
    """What they are."""
    metric: str = Field(examples=["policy/actions"])
    """Name that they were logged under."""
    agent_steps: list[int]
    """Agent steps of each, in order; several may have the same."""
    ids: list[Id]
    """Ids of each."""


class RunMedia(Schema):
    """The histograms, images and tables of a run."""

    items: list[MediaSeries]
    """By kind and metric."""
    n_not_kept: int
    """How many more were logged and are not kept, because the run has the maximum of 10,000, or 1 GiB."""


class MediaOut(Schema):
    """A histogram, an image or a table."""

    id: Id
    """Its id."""
    run_id: Id
    """Id of its run."""
    kind: MediaKind
    """What it is."""
    metric: str = Field(examples=["policy/actions"])
    """Name that it was logged under."""
    agent_steps: int = Field(examples=[1_000_000])
    """Agent steps of the run when it was logged."""
    wall_time_s: Number = Field(examples=[294.5])
    """Training time of the run then, in seconds."""
    caption: str | None
    """What its script says of it."""
    width: int | None
    """Of an image in pixels; of a table its columns; null for a histogram."""
    height: int | None
    """Of an image in pixels; of a table its rows; null for a histogram."""
    size_bytes: int
    """Size of it."""
    edges: list[float] | None
    """Of a histogram: edges of its bins, one more than counts."""
    counts: list[float] | None
    """Of a histogram: values in each bin."""

    @classmethod
    def of(cls, row: Media) -> "MediaOut":
        """From its row."""
        names = ("id", "run_id", "kind", "metric", "agent_steps", "wall_time_s", "caption")
        fields = {name: getattr(row, name) for name in (*names, "width", "height", "size_bytes")}
        bins = None if row.bins is None else Histogram.of_bytes(row.bins)
        fields["edges"] = None if bins is None else bins.edges.tolist()
        fields["counts"] = None if bins is None else bins.counts.tolist()
        return cls.model_validate(fields)
