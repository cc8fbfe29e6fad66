"""What a transaction changed, kept beside its session until it is committed and may be told.

A repository notes changes while it writes; whoever owns the transaction takes them after the commit and hands
them to `backend.live.bus.Bus.announce`. A rolled back transaction is never told.
"""

from typing import Any

from sqlalchemy.orm import Session

_CHANGES = "callboard_changes"
_POKES = "callboard_pokes"


def note_run(session: Session, run_id: str, revision: int, state: str) -> None:
    """A run is at a new revision."""
    _note(session, ("run", run_id), {"run": run_id, "revision": revision, "state": state})


def note_host(session: Session, host_id: str) -> None:
    """A host's row has changed."""
    _note(session, ("host", host_id), {"host": host_id})


def note_job(session: Session, job_id: str, run_id: str, state: str) -> None:
    """A job's row has changed."""
    _note(session, ("job", job_id), {"job": job_id, "run": run_id, "state": state})


def note_work(session: Session, queue: str) -> None:
    """There is something to claim in `queue`: its workers should be poked."""
    session.info.setdefault(_POKES, {})[queue] = None


def host_queue(host_id: str) -> str:
    """The queue of pokes for one host alone."""
    return f"host.{host_id}"


def take_changes(session: Session) -> list[dict[str, Any]]:
    """The changes noted, the newest of each thing, and forget them. Call after the commit."""
    return list(session.info.pop(_CHANGES, {}).values())


def take_work(session: Session) -> list[str]:
    """The queues to poke, and forget them. Call after the commit."""
    return list(session.info.pop(_POKES, {}))


def _note(session: Session, key: tuple[str, str], change: dict[str, Any]) -> None:
    session.info.setdefault(_CHANGES, {})[key] = change
