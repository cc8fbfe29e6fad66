"""What a view holds: which runs a page shows, and how. All of it is declared here.

A page's address has the same state, and a page turns one into the other. A new kind of panel is a class of
`Panel`; a field that an earlier Callboard would misread needs another `VERSION`.
"""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Field, StringConstraints, ValidationError, model_validator

from backend.analysis.comparisons.schemas import At, Score
from backend.analysis.metrics.schemas import X
from backend.specs.fields import NAME, ULID, WITHOUT_QUOTES, Strict, Text

VERSION = 1
MAX_DOCUMENT_BYTES = 64 * 1024
"""Size of a document as JSON."""

_Ulid = Annotated[str, StringConstraints(pattern=ULID)]
_Series = Annotated[str, StringConstraints(min_length=1, max_length=26, pattern=WITHOUT_QUOTES)]
"""Id of a run or of a group of runs."""
_Name = Annotated[str, StringConstraints(min_length=1, max_length=250, pattern=NAME)]
"""Name of a field, setting or metric."""
_Formula = Annotated[Text, Field(min_length=1, max_length=200)]
"""A formula of metrics."""
_PanelScore = Literal["score", "best_return"]
"""A score of a run that panels draw."""


class ListColumn(Strict):
    """A column of the list of runs."""

    field: _Name
    """What it shows, such as `score`, `config.learning_rate` or `loss/value`."""
    width_px: int | None = Field(default=None, ge=1, le=2_000)
    """Its width, if it was changed."""


class _Placed(Strict):
    """A panel in the grid."""

    title: Annotated[Text, Field(max_length=100)] | None = None
    """Its title; null for one that says what it shows."""
    columns: int | None = Field(default=None, ge=1, le=12)
    """Width in columns of a grid of twelve; null for that of its kind."""
    height_px: int | None = Field(default=None, ge=100, le=2_000)
    """Height of the plot; null for that of its kind."""
    tab: Annotated[Text, Field(max_length=50)] | None = None
    """Name of its tab; null for the first tab, which has no name."""


class LinePanel(_Placed):
    """Metrics over the course of training, or over another metric."""

    kind: Literal["lines"]
    """`lines`: metrics over the course of training."""
    metrics: tuple[_Name, ...] = Field(default=(), max_length=10, strict=False)
    """Names of the metrics."""
    formulas: tuple[_Formula, ...] = Field(default=(), max_length=10, strict=False)
    """Formulas of metrics, such as `ema(loss/value, 0.9) / loss/policy`, which are drawn beside them."""
    x: _Name | None = None
    """The metric over which they are drawn; null for the x axis of the view."""
    log: bool = False
    """Whether the axis of the metrics is logarithmic."""

    @model_validator(mode="after")
    def _check_lines(self) -> "LinePanel":
        if not self.metrics and not self.formulas:
            raise ValueError("needs a metric or a formula")
        return self


class ScatterPanel(_Placed):
    """Scores over a setting. Without a width it stands below the other panels."""

    kind: Literal["scatter"]
    """`scatter`: scores over a setting."""
    setting: _Name | None = None
    """Path of the setting; null for the first that differs."""
    score: _PanelScore = "score"
    """The score."""


class BarsPanel(_Placed):
    """The score of each config as a bar with its interval, as the verdict of the view compares it."""

    kind: Literal["bars"]
    """`bars`: scores with their intervals."""


class StripsPanel(_Placed):
    """The score of each seed, by config or by the values of a setting, as the verdict compares it."""

    kind: Literal["strips"]
    """`strips`: the scores of single seeds."""
    setting: _Name | None = None
    """Path of the setting; null for a strip for each config."""


class HeatmapPanel(_Placed):
    """The score over two settings, as the verdict compares it."""

    kind: Literal["heatmap"]
    """`heatmap`: scores over two settings."""
    settings: tuple[_Name, ...] = Field(default=(), max_length=2, strict=False)
    """Paths of the settings of columns and rows; those left out are the ones that explain most."""


class ImportancePanel(_Placed):
    """Which share of the variance of scores each setting explains, with the seed as one of them."""

    kind: Literal["importance"]
    """`importance`: shares of variance by setting."""


class ParallelPanel(_Placed):
    """Settings and score as parallel axes, with a line for each run or group."""

    kind: Literal["parallel"]
    """`parallel`: settings and score as parallel axes."""
    settings: tuple[_Name, ...] = Field(default=(), max_length=20, strict=False)
    """Paths of the settings, in order; none for all that differ."""
    score: _PanelScore = "score"
    """The score."""


class TextPanel(_Placed):
    """A text."""

    kind: Literal["text"]
    """`text`: a text."""
    text: Annotated[Text, Field(max_length=10_000)]
    """Markdown."""


class DiffPanel(_Placed):
    """The settings in which the visible runs differ."""

    kind: Literal["diff"]
    """`diff`: settings that differ."""


Panel = Annotated[
    LinePanel
    | ScatterPanel
    | BarsPanel
    | StripsPanel
    | HeatmapPanel
    | ImportancePanel
    | ParallelPanel
    | TextPanel
    | DiffPanel,
    Discriminator("kind"),
]


class Zoom(Strict):
    """A part of an axis."""

    start: float
    """Its lower end."""
    end: float
    """Its upper end."""


class Curves(Strict):
    """How all charts of the view draw series."""

    x: X = "agent_steps"
    """The x axis."""
    smoothing: Literal["window", "ema", "points"] = "window"
    """A moving average over x, an exponential one, or one over points."""
    weight: float | None = Field(default=None, ge=0, lt=1)
    """Weight of the smoothing over points."""
    scale: float | None = Field(default=None, gt=0, le=1e15)
    """Width of the other two, in units of x; null for the service's choice."""
    zoom: Zoom | None = None
    """The part of the x axis that is shown; null for all."""
    centre: Literal["median", "mean", "iqm"] = "mean"
    """The line of several seeds."""
    interval: Literal["se", "sd", "ci95", "bootstrap", "min_max"] = "se"
    """The band of several seeds."""
    seeds: bool = False
    """Whether each seed is drawn as a thin line."""


class Verdict(Strict):
    """How groups of runs are compared: see `GET /comparisons`."""

    score: Score = "training"
    """The score."""
    at: At = "common"
    """Where it is compared."""
    protocol: Annotated[Text, Field(max_length=50)] | None = None
    """Protocol of the evaluations; null for that of each group."""
    threshold: float | None = None
    """The score whose first reach is compared."""
    pairs: Literal["baseline", "all"] = "baseline"
    """Whether each group is compared with the baseline, or all pairs are."""


class ViewDocument(Strict):
    """Which runs a page shows, and how: the runs of `filter`, `state` and `archived`, or named ones."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "version": 1,
                    "filter": "algorithm:paac tag:baseline",
                    "grouping": "seed",
                    "columns": [{"field": "state"}, {"field": "name", "width_px": 220}, {"field": "score"}],
                    "panels": [{"kind": "lines", "metrics": ["rollout/episode_return"]}],
                }
            ]
        }
    )

    version: int = Field(default=VERSION, ge=VERSION, le=VERSION)
    """Version of the document's form."""
    filter: Annotated[Text, Field(max_length=2_000)] = ""
    """Which runs, as in `GET /runs`."""
    state: Literal["all", "active", "finished", "stopped", "failed"] = "all"
    """Runs in these states only."""
    archived: bool = False
    """Whether archived runs are shown, in place of the others."""
    runs: tuple[_Ulid, ...] = Field(default=(), max_length=100, strict=False)
    """Ids of the runs, if they were chosen one by one: runs that match the filter later are not added."""
    list: Literal["alone", "beside", "hidden"] = "alone"
    """Whether the list of runs stands alone, beside the panels, or is hidden."""
    columns: tuple[ListColumn, ...] | None = Field(default=None, max_length=100, strict=False)
    """The columns of the list, in order; null for the default ones."""
    sort: _Name | None = None
    """Field by which the list is sorted, with `-` in descending order; null for the latest first."""
    grouping: _Name | None = None
    """What the runs of a row or line have in common, as in `GET /comparisons/groups`; null for none."""
    hidden: tuple[_Series, ...] | None = Field(default=None, max_length=200, strict=False)
    """Runs or groups that are not drawn; null for all but the best six."""
    pins: tuple[_Series, ...] = Field(default=(), max_length=200, strict=False)
    """Runs or groups that stay on top of the list."""
    baseline: _Series | None = None
    """Run or group with which the others are compared; null for the first."""
    colours: dict[_Series, Annotated[int, Field(ge=0, le=99)]] = Field(default={}, max_length=200)
    """Number of the line's style by run or group, where it was chosen."""
    panels: tuple[Panel, ...] = Field(default=(), max_length=100, strict=False)
    """The panels, in order."""
    curves: Curves = Curves()
    """How all charts draw series."""
    verdict: Verdict = Verdict()
    """How groups are compared."""

    @model_validator(mode="after")
    def _check_size(self) -> "ViewDocument":
        n_bytes = len(self.model_dump_json(exclude_defaults=True).encode())
        if n_bytes > MAX_DOCUMENT_BYTES:
            raise ValueError(f"has {n_bytes:,} bytes as JSON; the maximum is {MAX_DOCUMENT_BYTES:,}")
        return self

    def stored(self) -> dict[str, Any]:
        """As JSON, without what is the default."""
        return self.model_dump(mode="json", exclude_defaults=True) | {"version": self.version}


def read(stored: dict[str, Any]) -> tuple[ViewDocument, bool]:
    """A stored document, and whether this Callboard can read all of it.

    Of another version's, or a damaged one, it has the parts that are valid by themselves.
    """
    try:
        return ViewDocument.model_validate({"version": 0} | stored), True
    except ValidationError:
        parts = {name: value for name, value in stored.items() if _is_valid(name, value)}
        return ViewDocument.model_validate(parts), False


def _is_valid(name: str, value: Any) -> bool:
    try:
        ViewDocument.model_validate({name: value})
    except ValidationError:
        return False
    return True
