"""Request and response bodies of sweeps."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field, JsonValue

from backend.analysis.comparisons.schemas import EstimateOut
from backend.db import Experiment, ExperimentCell
from backend.db.experiment import ExperimentState
from backend.experiments.cells.planning import CHANGED
from backend.experiments.cells.rows import CellRow
from backend.experiments.experiments.repository import CellCounts
from backend.experiments.experiments.scripts import Taken
from backend.experiments.specs.sweep import MAX_CONFIGURATIONS, Budget, SweepSpec
from backend.platform.schemas import Id, Number, Page
from backend.platform.text import Text
from backend.runs.runs.names import names_of_settings
from backend.specs.fields import ULID, Schema, Strict
from backend.specs.run_fields import MAX_SEEDS
from backend.specs.states import BROKEN_OFF, ENDED, RunState
from backend.statistics.estimates import interquartile_mean, median


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


class NextRun(Schema):
    """The next run of a sweep whose script somebody starts."""

    run: Id | None
    """Id of the run; null if none is due now. Ask again while the sweep is running."""
    config: dict[str, Any]
    """Settings of the run, to be handed to the script."""
    seed: int | None
    """Seed to be handed to the script; null if it gets none."""
    token: str | None
    """Token with which the script can write this run alone, until its end is reported."""
    state: ExperimentState
    """State of the sweep."""
    state_reason: str
    """Why the sweep is in its state."""

    @classmethod
    def of(cls, sweep: Experiment, taken: Taken | None) -> Self:
        """From the sweep's row, and what was taken."""
        run, config, seed, token = taken or (None, {}, None, None)
        return cls(
            run=None if run is None else run.id,
            config=config,
            seed=seed,
            token=token,
            state=sweep.state,
            state_reason=sweep.state_reason,
        )


class ScriptReport(Strict):
    """The body of `POST /sweeps/{id}/report`."""

    run: str = Field(pattern=ULID, description="Id of the run.")
    state: Literal["running", "finished", "failed", "stopped"] = Field(
        description="Whether its script goes on, or how it has ended."
    )
    reason: Text | None = Field(default=None, max_length=2_000, description="A line for the run's page.")
    free: bool = Field(
        default=False, description="Whether its configuration and seed are to be run again, by another run."
    )


class ScriptState(Schema):
    """What is known of a run whose script somebody has started."""

    state: RunState
    """State of the run."""
    stop_requested: bool
    """Whether its script is to be stopped."""


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
    state: ExperimentState
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
    def of(
        cls,
        sweep: Experiment,
        counts: Mapping[str, CellCounts],
        configurations: Mapping[str, tuple[int, int]],
    ) -> "SweepOut":
        """From a sweep's row, and of several sweeps the counts of cells, and of all and active
        configurations."""
        n = counts[sweep.id]
        n_configurations, n_active = configurations.get(sweep.id, (0, 0))
        spec = SweepSpec.model_validate(sweep.spec)
        n_needless = (n_configurations - n_active) * spec.max_seeds - n.n_eliminated
        return SweepOut(
            id=sweep.id,
            name=sweep.name,
            notes=sweep.spec["notes"],
            algorithm=str(spec.runs_have("algorithm")),
            environment=str(spec.runs_have("environment")),
            state=sweep.state,
            state_reason=sweep.state_reason,
            created_at=sweep.created_at,
            created_by=sweep.created_by,
            ended_at=sweep.ended_at,
            revision=sweep.revision,
            looks=sweep.looks,
            n_configurations=n_configurations,
            n_active=n_active,
            n_not_needed=n_needless if spec.racing else 0,
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
    def of(cls, row: CellRow, seed: int) -> Self:
        """From a cell that has had a run, and its seed."""
        is_changed = row.is_changed and row.state in ENDED
        return cls(
            run=row.run_id,
            seed=seed,
            state="deleted" if row.state is None else CHANGED if is_changed else row.state.value,
            score=row.score if row.counts else None,
        )


class ConfigurationOut(Schema):
    """A configuration with the scores of its seeds."""

    number: int
    """Number of the configuration, from 0, in the order in which the sampler created them."""
    name: str = Field(examples=["lr 0.001 · γ 0.9"])
    """Its values that differ among the configurations."""
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
    def of(cls, name: str, first: ExperimentCell, runs: list[MemberOut]) -> Self:
        """From a configuration's name, its first cell, and its seeds that have had a run."""
        scores = np.array([run.score for run in runs if run.score is not None], "f8")
        return cls(
            number=first.arm,
            name=name,
            settings=first.settings,
            eliminated=first.error,
            n=len(scores),
            n_broken_off=sum(run.state in BROKEN_OFF for run in runs),
            iqm=interquartile_mean(scores) if len(scores) else None,
            median=EstimateOut.of(median(scores)) if len(scores) else None,
            runs=runs,
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
        cls, summary: SweepOut, configurations: Sequence[ExperimentCell], rows: Sequence[CellRow]
    ) -> Self:
        """From a sweep as in lists, the first cell of each configuration, and all cells."""
        runs: dict[int, list[MemberOut]] = {first.arm: [] for first in configurations}
        for row in sorted(rows, key=lambda row: row.draw):
            if row.started or row.run_id is not None:
                runs[row.arm].append(MemberOut.of(row, summary.spec.seed_of(row.arm, row.draw)))
        named = [(f"configuration {first.arm}", first.settings) for first in configurations]
        names = names_of_settings(summary.algorithm, summary.environment, named)
        shown = [
            ConfigurationOut.of(name, first, runs[first.arm])
            for name, first in zip(names, configurations, strict=True)
        ]
        scored = [out for out in shown if out.iqm is not None]
        best = max(scored, key=lambda out: (not out.eliminated, not out.n_broken_off, out.iqm), default=None)
        n_runs = sum(len(out.runs) for out in shown)
        return cls(
            **summary.model_dump(),
            configurations=shown,
            best=None if best is None else Best(number=best.number, settings=best.settings, iqm=best.iqm),
            n_planned=max(n_runs, len(shown) * summary.spec.max_seeds),
        )
