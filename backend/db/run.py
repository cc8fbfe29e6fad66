"""Tables `runs`, `attempts`, `external_sources`, `script_processes` and `deleted_runs`."""

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Executable,
    ForeignKey,
    Index,
    String,
    Text,
    and_,
    event,
    false,
    or_,
    true,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, ORMExecuteState, Session, mapped_column, with_loader_criteria
from sqlalchemy.orm.attributes import set_committed_value

from backend.db.base import Base
from backend.db.checked_json import DAMAGED, CheckedJson, UnreadableSpec
from backend.db.json_values import json_text
from backend.specs.algorithms import ALGORITHMS
from backend.specs.problems import quoted
from backend.specs.provenance import Provenance
from backend.specs.run_fields import (
    CALLBOARD,
    DEFAULT_PROJECT,
    EXTERNAL,
    MAX_ALGORITHM,
    MAX_ENVIRONMENT,
    MAX_GROUP,
    MAX_HOST,
    MAX_NAME,
    MAX_PROJECT,
)
from backend.specs.states import RunState

RESTORABLE_S = 3600.0
"""How long a run that was deleted as restorable can be restored."""


class Run(Base):
    """A run. `state` changes only in `backend.runs.runs.service.transition`."""

    __tablename__ = "runs"
    __table_args__ = (
        Index(None, "state", "queue", "priority", "id"),
        Index(None, "created_at", "id"),
    )

    id: Mapped[str] = mapped_column(String(26), primary_key=True)
    """A ULID: sorts by creation time."""
    origin: Mapped[str] = mapped_column(String(20), default=CALLBOARD)
    """`callboard`, or `external`: trained by a script, which never is queued or claimed unless it is a host's
    command."""
    created_at: Mapped[datetime]
    created_by: Mapped[str | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    token_id: Mapped[str | None] = mapped_column(String(26))
    """The token that created an external run, and may be revoked; of a command, that of its attempt."""
    name: Mapped[str] = mapped_column(String(MAX_NAME))
    algorithm: Mapped[str] = mapped_column(String(MAX_ALGORITHM), index=True)
    environment: Mapped[str] = mapped_column(String(MAX_ENVIRONMENT), index=True)
    spec: Mapped[dict[str, Any]] = mapped_column(
        CheckedJson(dict[str, Any]).with_variant(JSONB(), "postgresql")
    )
    """The whole RunSpec, defaults included; of an external run, see `backend.runs.runs.external_spec`.

    Filters read it in every row: jsonb is not parsed for that.
    """
    seed: Mapped[int] = mapped_column(BigInteger)
    queue: Mapped[str] = mapped_column(String(50))
    wanted_host: Mapped[str | None] = mapped_column(String(MAX_HOST))
    priority: Mapped[int] = mapped_column(default=0)
    group: Mapped[str | None] = mapped_column(String(MAX_GROUP), index=True)
    project: Mapped[str] = mapped_column(
        String(MAX_PROJECT), default=DEFAULT_PROJECT, server_default=DEFAULT_PROJECT, index=True
    )
    """What it is filed under."""
    tags: Mapped[list[str]]
    notes: Mapped[str] = mapped_column(Text, default="")
    archived: Mapped[bool] = mapped_column(default=False)
    demo: Mapped[bool] = mapped_column(default=False, server_default=false())
    """Whether it came with the installation: lists, counts and statistics leave it out unless it is
    chosen."""
    deleted_at: Mapped[datetime | None]
    """When it was deleted, if it can still be restored: hidden from every query without `WITH_DELETED`."""
    parent_id: Mapped[str | None] = mapped_column(ForeignKey("runs.id", ondelete="SET NULL"), index=True)
    """The run that it was forked from."""
    forked_at_agent_steps: Mapped[int | None] = mapped_column(BigInteger)
    """Agent steps of the checkpoint it was forked from; its own points start there."""
    memory_estimate_bytes: Mapped[int] = mapped_column(BigInteger)

    state: Mapped[RunState] = mapped_column(String(20))
    state_reason: Mapped[str] = mapped_column(Text, default="")
    stop_requested: Mapped[str | None] = mapped_column(String(10))
    """`stop` or `kill` while a request to end the run is pending."""
    checkpoint_requested_at: Mapped[datetime | None]
    """When a checkpoint was requested, until one is recorded."""
    attempt: Mapped[int] = mapped_column(default=0)
    """The attempt that may write. Writes of any other attempt are rejected."""
    attempts_without_checkpoint: Mapped[int] = mapped_column(default=0)
    """Attempts since the newest checkpoint that ended by themselves or are active."""
    host_deaths: Mapped[int] = mapped_column(default=0)
    """Attempts since the newest checkpoint that ended with their worker or host."""
    host: Mapped[str | None] = mapped_column(String(200))
    """The host that holds the lease."""
    lease_expires_at: Mapped[datetime | None]
    """When the lease ends unless it is renewed; for an external run, by whatever its script sends."""
    error: Mapped[str | None] = mapped_column(Text)
    """Traceback or exit status of the last failure."""

    revision: Mapped[int] = mapped_column(BigInteger, default=0)
    """Number of commits that changed anything that a page shows."""
    started_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]
    step_unit: Mapped[str] = mapped_column(String(20), default="agent_steps", server_default="agent_steps")
    """What `agent_steps` and the steps of points count: `agent_steps`, or `iterations` of an external run."""
    return_metric: Mapped[str | None] = mapped_column(String(200))
    """The metric by which an external run is scored; None: none of its metrics is known to be a return.
    Callboard's own runs have `rollout/episode_return`."""
    agent_steps: Mapped[int] = mapped_column(BigInteger, default=0)
    frames: Mapped[int] = mapped_column(BigInteger, default=0)
    updates: Mapped[int] = mapped_column(BigInteger, default=0)
    episodes: Mapped[int] = mapped_column(BigInteger, default=0)
    wall_time_s: Mapped[float] = mapped_column(default=0.0)
    agent_steps_per_s: Mapped[float | None]
    score: Mapped[float | None]
    """Mean true return of the last 100 training episodes."""
    best_return: Mapped[float | None]
    points_at: Mapped[datetime | None]
    """When points were last recorded."""
    media_not_kept: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    """Histograms, images and tables beyond the maximum of a run, which are not kept."""
    early_agent_steps: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    """Agent steps up to which the training score is *early*: most steps were those of episodes that had not
    ended, so that it is the score of short episodes."""
    departures: Mapped[dict[str, Any]] = mapped_column(default=dict, server_default="{}")
    """How its training departs from its specification: by setting, as text."""

    @property
    def command(self) -> str | None:
        """Name of the host's command that starts its script; None for any other run."""
        command = self.spec.get("command")
        return command["name"] if isinstance(command, dict) and "name" in command else None

    @property
    def runs_here(self) -> bool:
        """Whether workers claim and run it: not a run whose script somebody starts elsewhere."""
        return self.origin != EXTERNAL or self.command is not None

    @property
    def restorable_until(self) -> datetime | None:
        """When a run that was deleted as restorable is deleted for good; None if it was not deleted."""
        return None if self.deleted_at is None else self.deleted_at + timedelta(seconds=RESTORABLE_S)

    @property
    def progress(self) -> float | None:
        """Progress of the run towards its nearest limit, from 0 to 1; None if only a score ends it."""
        if self.state == RunState.FINISHED:
            return 1.0
        stop = self.spec["stop"]
        limits = ((self.agent_steps, stop["agent_steps"]), (self.wall_time_s, stop["wall_time_s"]))
        shares = [reached / limit for reached, limit in limits if limit]
        return min(1.0, max(shares)) if shares else None

    @property
    def time_left_s(self) -> float | None:
        """Training time to the nearest limit, while the run is running; None if it is unknown."""
        if self.state != RunState.RUNNING:
            return None
        stop = self.spec["stop"]
        left_s = []
        if stop["wall_time_s"]:
            left_s.append(stop["wall_time_s"] - self.wall_time_s)
        if stop["agent_steps"] and self.agent_steps_per_s:
            left_s.append((stop["agent_steps"] - self.agent_steps) / self.agent_steps_per_s)
        return max(0.0, min(left_s)) if left_s else None


_LIMITS = frozenset({"agent_steps", "wall_time_s", "score"})


def is_whole(spec: Any) -> bool:
    """Whether a stored specification has the parts that every run has."""
    return bool(
        isinstance(spec, dict)
        and all(isinstance(spec.get(name), dict) for name in ("config", "environment_config", "stop"))
        and all(isinstance(spec.get(name), str) for name in ("algorithm", "environment"))
        and spec["stop"].keys() >= _LIMITS
    )


@event.listens_for(Run, "load")
@event.listens_for(Run, "refresh")
def _show_unreadable(run: Run, *context: Any) -> None:
    """Show the reason why a row cannot be read in place of its state's; it must not break a list."""
    loaded = run.__dict__
    has_state, spec, reason = loaded.get("state", RunState.FAILED) in _STATES, loaded.get("spec"), None
    if not has_state:
        set_committed_value(run, "state", RunState.FAILED)
    if "spec" in loaded and not is_whole(spec):
        known = {name: loaded.get(name) for name in ("name", "seed", "group", "tags", "notes")}
        ids = {name: loaded.get(name, "") for name in ("algorithm", "environment")}
        sections = {"config": {}, "environment_config": {}, "stop": dict.fromkeys(sorted(_LIMITS))}
        spec, reason = known | ids | sections | {"device": "auto"}, DAMAGED
    elif not has_state:
        reason = DAMAGED
    elif spec is not None and spec.get("origin") != EXTERNAL and spec["algorithm"] not in ALGORITHMS:
        of_package = f" of {spec['package']}" if spec.get("package") else ""
        reason = f"its algorithm {quoted(spec['algorithm'])}{of_package} is not installed"
    if reason is not None:
        set_committed_value(run, "state_reason", reason)
        if spec is not None:
            set_committed_value(run, "spec", UnreadableSpec(spec, reason))


_STATES = frozenset(RunState)

WITH_DELETED = {"callboard_with_deleted": True}
"""Execution options of a query that also finds deleted runs that can still be restored."""

_NOT_DELETED = with_loader_criteria(Run, Run.deleted_at.is_(None), include_aliases=True)

_without_deleted: WeakKeyDictionary[Executable, Executable] = WeakKeyDictionary()
"""By statement, the same without deleted runs. Statements do not change: one that stands in a module is
extended once, and keeps the key by which SQLAlchemy finds its SQL."""


@event.listens_for(Session, "do_orm_execute")
def _hide_deleted(state: ORMExecuteState) -> None:
    if (
        state.is_select
        and not state.is_column_load
        and not WITH_DELETED.items() <= state.execution_options.items()
    ):
        extended = _without_deleted.get(state.statement)
        if extended is None:
            extended = _without_deleted[state.statement] = state.statement.options(_NOT_DELETED)
        state.statement = extended


class Attempt(Base):
    """Attempt `number` of a run, from 1: one claim by a host, and the recorded part of its log."""

    __tablename__ = "attempts"

    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    host: Mapped[str] = mapped_column(String(200))
    claimed_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    outcome: Mapped[str | None] = mapped_column(Text)
    resumed_from_agent_steps: Mapped[int] = mapped_column(BigInteger, default=0)
    """Agent steps at which this attempt's points start; later points of earlier attempts are superseded."""
    has_resumed: Mapped[bool] = mapped_column(default=False, server_default=true())
    """Whether it has come so far, and these points are superseded: without, it has changed nothing."""
    log_offset_bytes: Mapped[int] = mapped_column(BigInteger, default=0)
    """Everything before this offset of the attempt's event log is in the database."""
    log_bytes: Mapped[int | None] = mapped_column(BigInteger)
    """Size of its compressed event log, 0 if it was removed; None until either happens."""
    provenance: Mapped[dict[str, Any] | None] = mapped_column(CheckedJson(Provenance | None))
    """See `backend.specs.provenance`; None until the engine has reported it."""


class ExternalSource(Base):
    """A process that writes an external run, and the last of its batches that is stored."""

    __tablename__ = "external_sources"

    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    source: Mapped[str] = mapped_column(String(26), primary_key=True)
    """A ULID that the process has chosen."""
    sequence: Mapped[int] = mapped_column(BigInteger, default=0)
    """Every batch up to this number is in the database."""
    dropped: Mapped[int] = mapped_column(BigInteger, default=0)
    """Its rows that were not stored."""


class ScriptProcess(Base):
    """Where a process that writes an external run came from, and the end of what it has printed."""

    __tablename__ = "script_processes"

    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    source: Mapped[str] = mapped_column(String(26), primary_key=True)
    """As in `external_sources`."""
    provenance: Mapped[dict[str, Any]]
    """See `backend.runs.runs.script_provenance`; empty until the process has reported it."""
    diff: Mapped[str] = mapped_column(Text, default="", deferred=True)
    """How tracked files differed from the commit."""
    output: Mapped[str] = mapped_column(Text, default="", deferred=True)


def has_packages(provided: Mapping[str, str]) -> ColumnElement[bool]:
    """Whether a host has the distributions that a run's algorithm and environment are of, or its command.

    Args:
        provided: the host's; a run of another version of a distribution, or of another definition of a
            command, is left to other hosts.
    """
    installed = [f"{name}=={version}" for name, version in provided.items()]
    needed = (json_text(Run.spec, ("package",)), json_text(Run.spec, ("custom", "package")))
    # NULL of Callboard's own, and where the spec is damaged.
    return and_(*(or_(package.is_(None), package.in_(installed)) for package in needed))


RATE_TIME_CONSTANT_S = 120.0
"""Training time over which a run's rate is averaged: on a busy machine the rates of the last seconds differ
by factors, and with them would the estimated time left."""


def averaged_rate(before: float | None, rate: float, passed_s: float, wall_time_s: float) -> float:
    """A run's agent steps per second, now that its last `passed_s` of `wall_time_s` had `rate`.

    The mean over its training time, weighted by exp(-age / `RATE_TIME_CONSTANT_S`), or `before` if no time
    has passed.
    """
    if before is None:
        return rate
    if passed_s <= 0:
        return before
    weight = math.expm1(-passed_s / RATE_TIME_CONSTANT_S) / math.expm1(-wall_time_s / RATE_TIME_CONSTANT_S)
    return before + (rate - before) * weight


class DeletedRun(Base):
    """A deleted run, for the worker hosts that still have its folder. Other unknown ids belong to other
    databases."""

    __tablename__ = "deleted_runs"

    id: Mapped[str] = mapped_column(String(26), primary_key=True)
