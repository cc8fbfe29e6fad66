"""Request and response bodies of sweeps."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Self

import numpy as np
from pydantic import BaseModel, Field, JsonValue

from backend.comparisons.schemas import EstimateOut
from backend.db import Sweep, SweepConfiguration
from backend.schemas import Number, Page
from backend.specs.fields import Strict
from backend.specs.run_fields import MAX_SEEDS, GivenName, Notes
from backend.specs.sweep import MAX_CONCURRENCY, MAX_CONFIGURATIONS, Budget, SweepSpec, SweepState
from backend.statistics.estimates import interquartile_mean, median
from backend.sweeps.planning import Counts, MemberRun


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

    @classmethod
    def of(cls, sweep: Sweep, counts: Mapping[str, Counts]) -> "SweepOut":
        """From a sweep's row, and the counts of several sweeps."""
        n = counts[sweep.id]
        return SweepOut(
            id=sweep.id,
            name=sweep.name,
            notes=sweep.spec["notes"],
            algorithm=str(sweep.spec["run"].get("algorithm")),
            environment=str(sweep.spec["run"].get("environment")),
            state=sweep.state,
            state_reason=sweep.state_reason,
            created_at=sweep.created_at,
            created_by=sweep.created_by,
            ended_at=sweep.ended_at,
            revision=sweep.revision,
            looks=sweep.looks,
            n_configurations=n.configurations,
            n_active=n.active,
            runs=dict(n.runs),
            spec=SweepSpec.model_validate(sweep.spec),
        )


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

    @classmethod
    def of(cls, member: MemberRun) -> Self:
        """From a member."""
        state, seed = member.member.state, member.member.seed
        return cls(
            run=member.run_id,
            seed=seed,
            state="deleted" if state is None else state.value,
            score=member.member.counted,
        )


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

    @classmethod
    def of(cls, row: SweepConfiguration, members: Sequence[MemberRun]) -> Self:
        """From a configuration's row and its members."""
        counted = [member.member.counted for member in members]
        scores = np.array([score for score in counted if score is not None], "f8")
        return cls(
            number=row.number,
            settings=row.settings,
            eliminated=row.eliminated,
            n=len(scores),
            iqm=interquartile_mean(scores) if len(scores) else None,
            median=EstimateOut.of(median(scores)) if len(scores) else None,
            runs=[MemberOut.of(member) for member in members],
        )


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

    @classmethod
    def of_rows(
        cls, summary: SweepOut, rows: Sequence[SweepConfiguration], members: Sequence[MemberRun]
    ) -> Self:
        """From a sweep as in lists, its configurations and all their members."""
        by_number: dict[int, list[MemberRun]] = {row.number: [] for row in rows}
        for member in members:
            by_number[member.member.configuration].append(member)
        configurations = [ConfigurationOut.of(row, by_number[row.number]) for row in rows]
        scored = [out for out in configurations if out.iqm is not None]
        best = max(scored, key=lambda out: (not out.eliminated, out.iqm), default=None)
        n_runs = sum(len(out.runs) for out in configurations)
        spec = summary.spec
        beaten = [out for out in configurations if spec.racing is not None and out.eliminated and out.n]
        return cls(
            **summary.model_dump(),
            configurations=configurations,
            best=None if best is None else Best(number=best.number, settings=best.settings, iqm=best.iqm),
            n_not_needed=sum(spec.max_seeds - len(out.runs) for out in beaten),
            n_planned=max(n_runs, len(configurations) * spec.max_seeds),
        )
