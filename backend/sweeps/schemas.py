"""Request and response bodies of sweeps."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field, JsonValue

from backend.comparisons.schemas import EstimateOut
from backend.schemas import Number, Page
from backend.specs.fields import Strict
from backend.specs.run_fields import MAX_SEEDS, GivenName, Notes
from backend.specs.sweep import MAX_CONCURRENCY, MAX_CONFIGURATIONS, Budget, SweepSpec, SweepState


class SweepChanges(Strict):
    """The body of `PATCH /sweeps/{id}`: fields that are left out do not change."""

    name: GivenName | None = None
    notes: Notes | None = None
    concurrency: int | None = Field(
        default=None,
        ge=1,
        le=MAX_CONCURRENCY,
        description="Runs that may be queued or running at the same time.",
    )


class SweepExtension(Strict):
    """The body of `POST /sweeps/{id}/extend`: what is left out does not change."""

    max_seeds: int | None = Field(
        default=None, ge=1, le=MAX_SEEDS, description="Seeds of each configuration, at most."
    )
    n_configurations: int | None = Field(
        default=None, ge=1, le=MAX_CONFIGURATIONS, description="Random configurations, with those so far."
    )
    values: dict[str, list[JsonValue]] | None = Field(
        default=None, description="Further values by field, of settings that vary over a list of values."
    )
    budget: Budget | None = Field(default=None, description="Replaces the limits.")


class SweepOut(BaseModel):
    """A sweep."""

    id: str
    name: str
    notes: str
    algorithm: str
    environment: str
    state: SweepState
    state_reason: str
    created_at: datetime
    created_by: str | None
    ended_at: datetime | None
    revision: int
    looks: int
    """How often its configurations have been compared."""
    n_configurations: int
    """Configurations, with those that are eliminated."""
    n_active: int
    """Configurations that are not eliminated."""
    runs: dict[str, int]
    """Its runs by state; `deleted` for runs that have been deleted."""
    spec: SweepSpec
    """The requested sweep, with its extensions."""


class SweepPage(Page[SweepOut]):
    """A page of sweeps."""


class MemberOut(BaseModel):
    """A seed of a configuration."""

    run: str | None
    """Null if the run has been deleted."""
    seed: int
    state: str
    """State of the run; `deleted` if it no longer exists."""
    score: Number
    """Score of a finished run; null for any other."""


class ConfigurationOut(BaseModel):
    """A configuration with the scores of its seeds."""

    number: int
    """From 0, in the order in which the sampler made them."""
    settings: dict[str, Any]
    """Its values, by field path."""
    eliminated: str | None
    """Why it gets no further seed; null while it may."""
    n: int
    """Number of runs with a score."""
    iqm: Number
    """Interquartile mean of the scores; null without any."""
    median: EstimateOut | None
    """Median of the scores with its interval (from 5 scores on)."""
    runs: list[MemberOut]
    """Its seeds, in order."""


class Best(BaseModel):
    """The configuration with the highest interquartile mean, of those that are not eliminated."""

    number: int
    """Number of the configuration, from 0."""
    settings: dict[str, Any]
    """Its values, by field path."""
    iqm: Number
    """Interquartile mean of its scores."""


class SweepDetail(SweepOut):
    """A sweep with its configurations."""

    best: Best | None
    """Null without any score."""
    n_planned: int
    """Runs if no configuration were eliminated."""
    n_not_needed: int
    """Number of these that are seeds of eliminated configurations and were never started."""
    configurations: list[ConfigurationOut]
    """In the order of their numbers."""
