"""Ownership of runs: claim, lease, expiry, fencing, so that no work is lost or done twice.

A claim gives a host the run's next attempt number and a lease that expires by the database's clock unless it
is renewed. Every write of an attempt but its renewals first locks the run with `lock`, which rejects all but
the newest attempt: a worker that was suspended until `expire` took its run changes nothing when it resumes.

All functions run inside the caller's transaction; those that change something, inside a writing one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy.orm import Session

from backend.access.auth import service as auth
from backend.analysis.media import service as media
from backend.analysis.metrics import repository as metrics
from backend.coordination import repository
from backend.db import Attempt, Checkpoint, Run
from backend.db.base import storable
from backend.db.checked_json import UnreadableSpec
from backend.db.clock import database_now
from backend.external import service as external
from backend.fleet.hosts import service as hosts
from backend.runs.runs import service as runs
from backend.specs.algorithms import ALGORITHMS
from backend.specs.states import LEASED, RunState

MAX_ATTEMPTS_WITHOUT_CHECKPOINT = 3
"""A run fails after this many attempts without a new checkpoint, not counting those that its worker or host
ended, or that found their checkpoint damaged."""
MAX_HOST_DEATHS_WITHOUT_CHECKPOINT = 10
"""A run fails after this many deaths of its worker or host without a new checkpoint."""


class Superseded(Exception):
    """This attempt no longer holds the run: write nothing, kill the engine."""


@dataclass(frozen=True)
class Claim:
    """A claimed run."""

    run_id: str
    attempt: int
    memory_estimate_bytes: int
    may_use_gpu: bool
    """Whether it may use a GPU: by its device and its algorithm, or by its command."""
    is_command: bool = False
    """Whether it is started by a command of the host."""


def claim(
    session: Session, host: str, *, queues: Sequence[str], free_memory_bytes: int, lease_s: float
) -> Claim | None:
    """Claim the oldest of the eligible runs with the highest priority; None if there is none.

    Eligibility follows the host's row: a run that needs an environment or GPU that the host lacks is left for
    others. Runs whose specification cannot be read fail instead.

    Args:
        session: a writing session.
        host: this host's id; it must have a row, and a draining host gets none.
        queues: the queues that the host serves. A run pinned to this host is eligible in any queue.
        free_memory_bytes: runs with a greater memory estimate are left for others.
        lease_s: validity of the claim without renewal.
    """
    row = hosts.find(session, host)
    if row is None or row.draining:
        return None
    while run := repository.first_eligible(session, row, queues, free_memory_bytes):
        if not isinstance(run.spec, UnreadableSpec):
            break
        run.error = run.spec.reason
        runs.transition(session, run, RunState.FAILED, run.spec.reason)
        session.flush()
    if run is None:
        return None
    start_attempt(session, run, host, lease_s)
    if run.command is not None:
        may_use_gpu = bool(run.spec["command"].get("gpu"))
    else:
        may_use_gpu = "cuda" in ALGORITHMS[run.algorithm].devices and run.spec["device"] != "cpu"
    return Claim(run.id, run.attempt, run.memory_estimate_bytes, may_use_gpu, run.command is not None)


def start_attempt(session: Session, run: Run, host: str, lease_s: float) -> None:
    """Create the next attempt of a locked, queued run and lease it to a host."""
    now = database_now(session)
    run.attempt += 1
    run.attempts_without_checkpoint += 1
    run.host = host
    run.lease_expires_at = now + timedelta(seconds=lease_s)
    run.error = None
    session.add(Attempt(run_id=run.id, number=run.attempt, host=host, claimed_at=now))
    runs.transition(session, run, RunState.STARTING, f"claimed by {host}")


def renew(session: Session, host: str, held: Mapping[str, int], lease_s: float) -> dict[str, str | None]:
    """Renew the leases of a host's runs, given as run id -> attempt.

    A lease that has expired is renewed too, unless `expire` has already processed it.

    Returns:
        Run id -> `stop` or `kill` if requested, else None, for the runs that it still holds. A run that is
        absent is no longer the host's.
    """
    if not held:
        return {}
    expires_at = database_now(session) + timedelta(seconds=lease_s)
    return repository.renew(session, host, held, expires_at)


def has_expired(session: Session) -> bool:
    """Whether the lease of any run has expired."""
    return repository.has_expired(session, database_now(session))


def expire(session: Session) -> list[str]:
    """Mark runs whose lease has expired `lost`, then queue them again, or mark them stopped or failed.

    Runs that another transaction has locked are left for the next call. An external run stays lost until its
    script sends something; one that was to be stopped is stopped.
    """
    expired = repository.expired(session, database_now(session))
    for run in expired:
        if not run.runs_here:
            external.lose(session, run)
            continue
        lost = f"{run.host} no longer renews its lease"
        runs.transition(session, run, RunState.LOST, lost)
        state, reason = count_host_death(session, run)
        level: runs.LogLevel = "error" if state == RunState.FAILED else "warning"
        end_attempt(session, run, state, f"{lost}: {reason}", level=level)
    return [run.id for run in expired]


def lock(session: Session, run_id: str, attempt: int) -> Run:
    """Lock a run for a write of this attempt.

    Raises:
        Superseded: the attempt no longer holds it.
    """
    run = runs.find(session, run_id, for_update=True)
    if run is None or run.attempt != attempt or run.state not in LEASED:
        raise Superseded(f"run {run_id}, attempt {attempt}")
    return run


def log_offset_bytes(session: Session, run_id: str, attempt: int) -> int:
    """How much of an attempt's event log is recorded.

    Raises:
        Superseded: the run has been deleted.
    """
    row = session.get(Attempt, (run_id, attempt))
    if row is None:
        raise Superseded(f"run {run_id} has been deleted")
    return row.log_offset_bytes


def lock_attempt(session: Session, run_id: str, attempt: int) -> Attempt:
    """Lock and return the row of an attempt of a locked run."""
    return session.get_one(Attempt, (run_id, attempt), with_for_update=True)


def resume_from(
    session: Session, run_id: str, attempt: int, checkpoint: Checkpoint | None, reached: int = 0
) -> dict[str, Any]:
    """Set a claimed attempt to resume from a checkpoint, or without one to start anew; all data recorded
    after it is superseded. `reached`: the agent steps of a checkpoint of which nothing else is known.

    Returns:
        The run's spec. The caller has already recorded the earlier attempt's log, so that the spec has the
        settings that were changed live.

    Raises:
        Superseded: the attempt no longer holds the run.
    """
    run = lock(session, run_id, attempt)
    run.agent_steps = checkpoint.agent_steps if checkpoint else reached
    run.frames = checkpoint.frames if checkpoint else 0
    run.updates = checkpoint.updates if checkpoint else 0
    run.episodes = checkpoint.episodes if checkpoint else 0
    run.wall_time_s = checkpoint.wall_time_s if checkpoint else 0.0
    run.score = checkpoint.score if checkpoint else None
    run.best_return = checkpoint.best_return if checkpoint else None
    row = session.get_one(Attempt, (run_id, attempt))
    row.has_resumed, row.resumed_from_agent_steps = True, run.agent_steps
    # From scratch, points at step 0 are superseded too.
    last_kept = run.agent_steps if checkpoint or reached else -1
    revision = runs.touch(session, run)
    metrics.cut(session, run_id, last_kept, revision)
    media.cut(session, run_id, last_kept)
    repository.supersede(session, run_id, last_kept)
    return run.spec


def has_resumed(session: Session, run_id: str, attempt: int) -> bool:
    """Whether an attempt has superseded what was recorded after the checkpoint from which it resumed."""
    row = session.get(Attempt, (run_id, attempt))
    return row is not None and row.has_resumed


def state_after_death(run: Run) -> tuple[RunState, str]:
    """The next state, and the reason, of a locked run whose engine died."""
    if run.stop_requested:
        return RunState.STOPPED, f"a {run.stop_requested} was requested"
    if run.attempts_without_checkpoint >= MAX_ATTEMPTS_WITHOUT_CHECKPOINT:
        return RunState.FAILED, f"{MAX_ATTEMPTS_WITHOUT_CHECKPOINT} attempts without a new checkpoint"
    return RunState.QUEUED, "to resume from its latest checkpoint, if it has one"


def count_host_death(session: Session, run: Run) -> tuple[RunState, str]:
    """Count the death of a locked run's worker or host, and no longer its attempt; return the next state and
    the reason."""
    uncount_attempt(run)
    run.host_deaths += 1
    if run.stop_requested or run.host_deaths < MAX_HOST_DEATHS_WITHOUT_CHECKPOINT:
        return state_after_death(run)
    n = MAX_HOST_DEATHS_WITHOUT_CHECKPOINT
    names = sorted(set(repository.latest_hosts(session, run.id, n)))
    return (
        RunState.FAILED,
        f"its worker or host died {n} times without a new checkpoint; the latest attempts were on "
        f"{', '.join(names)}",
    )


def uncount_attempt(run: Run) -> None:
    """Do not count the current attempt of a locked run towards its limit."""
    run.attempts_without_checkpoint = max(0, run.attempts_without_checkpoint - 1)


def end_attempt(
    session: Session,
    run: Run,
    after: RunState,
    reason: str,
    error: str | None = None,
    level: runs.LogLevel | None = None,
) -> None:
    """End the current attempt of a locked run: close the attempt's row and move the run to `after`.

    `level` is the level of the log line, by default that of the new state.
    """
    if run.command is not None:
        auth.revoke_token_of_run(session, run)
    attempt = session.get_one(Attempt, (run.id, run.attempt))
    attempt.ended_at = database_now(session)
    reason = storable(reason)
    attempt.outcome = f"{after}: {reason}"
    run.error = storable(error or reason) if error or after == RunState.FAILED else None
    runs.transition(session, run, after, reason, level)
