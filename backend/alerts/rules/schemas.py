"""Bodies of rules for alerts."""

from datetime import datetime
from typing import Any, Self

from pydantic import ConfigDict, Field, model_validator

from backend.db import AlertRule
from backend.db.alert import MAX_METRIC, AlertKind, Comparison
from backend.platform.schemas import Id, Page
from backend.platform.text import Text
from backend.specs.fields import ULID, Schema, Strict
from backend.specs.run_fields import MAX_GROUP, ProjectName

MAX_TARGETS = 10
"""Targets of a rule."""
MAX_MINUTES = 7 * 24 * 60

OF_RUNS = frozenset({"finished", "failed", "lost", "no_points", "metric", "score", "nan", "script"})
"""Kinds that are about a run; the others are about a host, a sweep or a study."""


class RuleRequest(Strict):
    """The body of `POST /alert-rules`, and of `PUT /alert-rules/{id}`, which replaces a rule."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"kinds": ["finished", "failed", "lost"]}]})

    kinds: list[AlertKind] = Field(min_length=1, max_length=12)
    """What it watches for. `finished`, `failed`, `lost`: the run's state. `no_points`: a running run has had
    no new points for `minutes`. `metric`: `metric` is above or below `value` for `minutes` of training, or in
    its latest point if these are 0. `score`: `score` is reached. `nan`: a metric has a value that is not
    finite. `script`: the run's script sends an alert. `host_away`: a host no longer responds. `disk_filling`:
    a host's disk is nearly full; at most once a day. `sweep_done`, `study_done`: it has finished."""
    run_id: str | None = Field(default=None, pattern=ULID)
    """The only run it is about."""
    group: Text | None = Field(default=None, min_length=1, max_length=MAX_GROUP)
    """The group whose runs it is about."""
    project: ProjectName | None = None
    """The project whose runs it is about. Without run, group and project it is about all runs."""
    minutes: float | None = Field(default=None, ge=0, le=MAX_MINUTES, allow_inf_nan=False)
    """Needed for `no_points` and `metric`."""
    metric: Text | None = Field(default=None, min_length=1, max_length=MAX_METRIC)
    """The metric that is compared; needed for `metric`, as are `comparison` and `value`."""
    comparison: Comparison | None = None
    """How it is compared."""
    value: float | None = Field(default=None, allow_inf_nan=False)
    """What it is compared with."""
    score: float | None = Field(default=None, allow_inf_nan=False)
    """Needed for `score`: the mean return of the last 100 episodes. Early scores, of short episodes, do not
    count."""
    targets: list[str] = Field(default=[], max_length=MAX_TARGETS)
    """Ids of the targets to which its alerts are delivered as well; this needs the role operator."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        needed: dict[str, tuple[str, ...]] = {
            "no_points": ("minutes",),
            "metric": ("minutes", "metric", "comparison", "value"),
            "score": ("score",),
        }
        fields = {name for kind in self.kinds for name in needed.get(kind, ())}
        for name in ("minutes", "metric", "comparison", "value", "score"):
            is_given = getattr(self, name) is not None
            if is_given != (name in fields):
                verb = "is needed for" if name in fields else "has no meaning for"
                raise ValueError(f"{name} {verb} these kinds")
        if "no_points" in self.kinds and self.minutes is not None and self.minutes < 1:
            raise ValueError("minutes must be at least 1 for no_points")
        scopes = [name for name in ("run_id", "group", "project") if getattr(self, name) is not None]
        if len(scopes) > 1:
            raise ValueError(f"{' and '.join(scopes)}: a rule is about one of them, or all runs")
        others = [kind for kind in self.kinds if kind not in OF_RUNS]
        if others and scopes:
            raise ValueError(f"{', '.join(others)}: not about runs, so that {scopes[0]} has no meaning")
        return self

    def columns(self) -> dict[str, Any]:
        """The columns of the rule."""
        return {**self.model_dump(exclude={"targets", "kinds"}), "kinds": list(dict.fromkeys(self.kinds))}


class RuleOut(Schema):
    """A rule for alerts."""

    model_config = ConfigDict(from_attributes=True)

    id: Id
    """Id of the rule."""
    owner_id: Id
    """Id of the user in whose inbox its alerts are."""
    created_at: datetime
    """When it was created: it is about what has happened since."""
    kinds: list[str] = Field(examples=[["finished", "failed", "lost"]])
    """What it watches for."""
    run_id: str | None
    """The only run it is about; null: more than one."""
    run_name: str | None = None
    """Name of that run."""
    group: str | None
    """The group whose runs it is about; null: runs of any."""
    project: str | None
    """The project whose runs it is about; null: those of any."""
    minutes: float | None
    """How long a run has no points, or a metric is above or below `value`."""
    metric: str | None
    """The metric that is compared."""
    comparison: Comparison | None
    """How it is compared."""
    value: float | None
    """What it is compared with."""
    score: float | None
    """The score to be reached."""
    targets: list[str] = Field(default=[])
    """Ids of the targets to which its alerts are delivered."""

    @classmethod
    def of(cls, rule: AlertRule, targets: list[str], run_name: str | None) -> Self:
        """From its rows."""
        return cls.model_validate(rule).model_copy(update={"targets": targets, "run_name": run_name})


class RulePage(Page):
    """A page of rules."""

    items: list[RuleOut]
    """Rules of this page."""
