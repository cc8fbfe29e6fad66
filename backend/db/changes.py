"""Notifications of a transaction's changes, kept in its session until the commit.

A repository records changes while it writes. After the commit, the owner of the transaction passes
them to `backend.pubsub.bus.Bus.publish_changes`. Changes of a rolled back transaction are never published.
"""

from collections.abc import Collection
from typing import Any

from sqlalchemy.orm import Session

_CHANGES = "callboard_changes"
_WAKE_UPS = "callboard_wake_ups"


def record_run_change(
    session: Session, run_id: str, revision: int, state: str, parts: Collection[str] | None = None
) -> None:
    """Record that a run has a new revision.

    Args:
        session: the writing session.
        run_id: the run.
        revision: the run's new revision.
        state: the run's state.
        parts: what has changed apart from the columns of the run itself: `series/<section>` for points of
            metrics whose names begin with `<section>/`, `metrics` for new metrics, `episodes`, `evaluations`,
            `checkpoints`, `videos`, `step_notes`, `log`. None: anything may have.
    """
    change: dict[str, Any] = {"run": run_id, "revision": revision, "state": state}
    earlier = session.info.get(_CHANGES, {}).get(("run", run_id))
    if parts is not None and (earlier is None or "changed" in earlier):
        change["changed"] = sorted({*parts, *(earlier or change).get("changed", ())})
    _note(session, ("run", run_id), change)


def record_host_change(session: Session, host_id: str) -> None:
    """Record that a host has changed."""
    _note(session, ("host", host_id), {"host": host_id})


def record_job_change(session: Session, job_id: str, kind: str, run_id: str | None, state: str) -> None:
    """Record that a job of a kind has changed; `run_id` is None if it belongs to no run."""
    of_run = {} if run_id is None else {"run": run_id}
    _note(session, ("job", job_id), {"job": job_id, "kind": kind, "state": state} | of_run)


def record_sweep_change(session: Session, sweep_id: str, revision: int, state: str) -> None:
    """Record that a sweep has a new revision."""
    _note(session, ("sweep", sweep_id), {"sweep": sweep_id, "revision": revision, "state": state})


def record_study_change(session: Session, study_id: str, revision: int, state: str) -> None:
    """Record that a study has a new revision."""
    _note(session, ("study", study_id), {"study": study_id, "revision": revision, "state": state})


def record_work(session: Session, queue: str) -> None:
    """Record that `queue` has something to claim, so that its workers are woken."""
    session.info.setdefault(_WAKE_UPS, {})[queue] = None


def host_queue(host_id: str) -> str:
    """The queue of a single host."""
    return f"host.{host_id}"


def take_changes(session: Session) -> list[dict[str, Any]]:
    """Return the recorded changes, the latest of each object, and clear them. Call after the commit."""
    return list(session.info.pop(_CHANGES, {}).values())


def take_work(session: Session) -> list[str]:
    """Return the queues to wake, and clear them. Call after the commit."""
    return list(session.info.pop(_WAKE_UPS, {}))


def discard_changes(session: Session) -> None:
    """Clear the recorded changes and queues, so that the commit publishes nothing."""
    take_changes(session)
    take_work(session)


def _note(session: Session, key: tuple[str, str], change: dict[str, Any]) -> None:
    session.info.setdefault(_CHANGES, {})[key] = change
