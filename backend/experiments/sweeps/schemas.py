"""Request and response bodies of sweeps."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Self

import numpy as np
from pydantic import Field, JsonValue

from backend.analysis.comparisons.schemas import EstimateOut
from backend.db import Sweep, SweepConfiguration
from backend.experiments.sweeps.planning import CHANGED, StoredMember, SweepCounts
from backend.platform.schemas import Id, Number, Page
from backend.specs.fields import Schema, Strict
from backend.specs.run_fields import MAX_SEEDS, ChosenName, GivenName, Notes
from backend.specs.states import BROKEN_OFF, ENDED
from backend.specs.sweep import MAX_CONCURRENCY, MAX_CONFIGURATIONS, Budget, SweepSpec, SweepState
from backend.statistics.estimates import interquartile_mean, median


class SweepExpectation(Strict):
    """What the sender of a change has read of the sweep: fields that are left out may have any value."""

    name: GivenName | None = None
    """Name of the sweep."""
    notes: Notes | None = None
    """Free text about the sweep, in Markdown."""
    concurrency: int | None = None
    """Runs that may be queued or running at the same time."""


class SweepChanges(Strict):
    """The body of `PATCH /sweeps/{id}`: fields that are left out do not change."""

    expected: SweepExpectation | None = None
    """Values before the change, as they were read: if one has been changed meanwhile, the answer is 409 with
    the code `changed_meanwhile`, and nothing changes. Without it, the last change wins."""
    name: ChosenName | None = None
    """New name; null changes nothing."""
    notes: Notes | None = None
    """New notes, in Markdown; null changes nothing."""
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
    budget: Budget | None = Field(default=None, description="New limits, which replace the former ones.")


class SweepOut(Schema):
    """A sweep."""

    id: Id
    """Id of the sweep."""
    name: str = Field(examples=["learning rate"])
    """Name of the sweep, as pages show it."""
    notes: str
    """Free text about the sweep, in Markdown."""
    algorithm: str = Field(examples=["paac"])
    """Id of the algorithm of its runs, from `GET /algorithms`."""
    environment: str = Field(examples=["ALE/Pong-v5"])
    """Id of the environment of its runs, from `GET /environments`."""
    state: SweepState
    """State of the sweep."""
    state_reason: str
    """Why the sweep is in its state."""
    created_at: datetime
    """When the sweep was created."""
    created_by: str | None
    """Id of the user who created the sweep; null if that user has been deleted."""
    ended_at: datetime | None
    """When the sweep ended; null before."""
    revision: int
    """Number of changes of the sweep so far."""
    looks: int
    """How often its configurations have been compared."""
    n_configurations: int
    """Number of configurations, with those that are eliminated."""
    n_active: int
    """Number of configurations that are not eliminated."""
    n_not_needed: int
    """Number of seeds of eliminated configurations that were never started."""
    runs: dict[str, int]
    """Its runs by state; `deleted` for runs that have been deleted, `changed` for those that have ended and
    were resumed with another limit or changed live."""
    spec: SweepSpec
    """The requested sweep, with its extensions."""

    @classmethod
    def of(cls, sweep: Sweep, counts: Mapping[str, SweepCounts]) -> "SweepOut":
        """From a sweep's row, and the counts of several sweeps."""
        n = counts[sweep.id]
        spec = SweepSpec.model_validate(sweep.spec)
        n_eliminated = n.configurations - n.active
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
            n_not_needed=n_eliminated * spec.max_seeds - n.runs_of_eliminated if spec.racing else 0,
            runs=dict(n.runs),
            spec=spec,
        )


class SweepPage(Page):
    """A page of sweeps."""

    items: list[SweepOut]
    """Sweeps of this page."""


class MemberOut(Schema):
    """A seed of a configuration."""

    run: str | None
    """Id of the run; null if it has been deleted."""
    seed: int
    """Seed of the run."""
    state: str
    """State of the run; `deleted` if it no longer exists, `changed` if it has ended and was resumed with
    another limit or changed live, so that it has no score here."""
    score: Number = Field(examples=[17.4])
    """Score of a run that is finished as planned; null for any other."""

    @classmethod
    def of(cls, member: StoredMember) -> Self:
        """From a member."""
        state, seed = member.member.state, member.member.seed
        is_changed = member.member.is_changed and state in ENDED
        return cls(
            run=member.run_id,
            seed=seed,
            state="deleted" if state is None else CHANGED if is_changed else state.value,
            score=member.member.counted,
        )


class ConfigurationOut(Schema):
    """A configuration with the scores of its seeds."""

    number: int
    """Number of the configuration, from 0, in the order in which the sampler created them."""
    settings: dict[str, Any]
    """Its values, by field path."""
    eliminated: str | None
    """Why it gets no further seed; null while it may."""
    n: int
    """Number of runs with a score."""
    n_broken_off: int
    """Number of runs that failed, were lost or were stopped: with any, it is the best one only if every other
    has some, too."""
    iqm: Number
    """Interquartile mean of the scores; null without any."""
    median: EstimateOut | None
    """Median of the scores with its interval (from 5 scores on)."""
    runs: list[MemberOut]
    """Its seeds, in order."""

    @classmethod
    def of(cls, row: SweepConfiguration, members: Sequence[StoredMember]) -> Self:
        """From a configuration's row and its members."""
        counted = [member.member.counted for member in members]
        scores = np.array([score for score in counted if score is not None], "f8")
        return cls(
            number=row.number,
            settings=row.settings,
            eliminated=row.eliminated,
            n=len(scores),
            n_broken_off=sum(member.member.state in BROKEN_OFF for member in members),
            iqm=interquartile_mean(scores) if len(scores) else None,
            median=EstimateOut.of(median(scores)) if len(scores) else None,
            runs=[MemberOut.of(member) for member in members],
        )


class Best(Schema):
    """The configuration with the highest interquartile mean, of those not eliminated, if any has a score, and
    of those without seeds that broke off."""

    number: int
    """Number of the configuration, from 0."""
    settings: dict[str, Any]
    """Its values, by field path."""
    iqm: Number
    """Interquartile mean of its scores."""


class SweepDetail(SweepOut):
    """A sweep with its configurations."""

    best: Best | None
    """Configuration with the highest interquartile mean, of those not eliminated if any of them has a score;
    null without any score."""
    n_planned: int
    """Number of runs if no configuration were eliminated."""
    configurations: list[ConfigurationOut]
    """Every configuration, by number."""

    @classmethod
    def of_rows(
        cls, summary: SweepOut, rows: Sequence[SweepConfiguration], members: Sequence[StoredMember]
    ) -> Self:
        """From a sweep as in lists, its configurations and all their members."""
        by_number: dict[int, list[StoredMember]] = {row.number: [] for row in rows}
        for member in members:
            by_number[member.member.configuration].append(member)
        configurations = [ConfigurationOut.of(row, by_number[row.number]) for row in rows]
        scored = [out for out in configurations if out.iqm is not None]
        best = max(scored, key=lambda out: (not out.eliminated, not out.n_broken_off, out.iqm), default=None)
        n_runs = sum(len(out.runs) for out in configurations)
        return cls(
            **summary.model_dump(),
            configurations=configurations,
            best=None if best is None else Best(number=best.number, settings=best.settings, iqm=best.iqm),
            n_planned=max(n_runs, len(configurations) * summary.spec.max_seeds),
        )
