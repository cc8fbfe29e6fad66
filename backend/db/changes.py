"""Notifications of a transaction's changes, kept in its session until the commit.

A repository records changes while it writes. After the commit, the owner of the transaction passes
them to `backend.pubsub.bus.Bus.publish_changes`. Changes of a rolled back transaction are never published.
"""

from collections.abc import Collection, Mapping

from pydantic import ConfigDict
from sqlalchemy.orm import Session

from backend.specs.fields import Schema

_CHANGES = "callboard_changes"
_WAKE_UPS = "callboard_wake_ups"


class ChangeEvent(Schema):
    """Something has changed. Clients ignore kinds that they do not know."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "kind": "run",
                    "id": "01JD3QZ6W9K0Y5T8H2V4B7N1XC",
                    "parents": {},
                    "state": "running",
                    "changed": ["episodes", "series/rollout"],
                }
            ]
        }
    )

    kind: str
    """What has changed, such as `run`, `host`, `job`, `sweep` or `study`."""
    id: str
    """Its id."""
    parents: dict[str, str]
    """What it belongs to: kind -> id, such as the run of a job."""
    state: str | None
    """Its state now, or `deleted`; null if it has none."""
    changed: list[str]
    """The parts that have changed, of it or of what it belongs to; empty: anything may have. Of a run, such
    as `series/<section>` (points of metrics whose names begin with `<section>/`), `metrics` (new metrics),
    `episodes`, `evaluations`, `checkpoints`, `videos` (sent by a script), `media` (histograms, images and
    tables), `thumbnails`, `step_notes`, `log`, and `progress`, its own counters. Of a job: `state`, `result`
    once it has ended, and what it does, such as `video` or `evaluation`, a part of its run. Of a host:
    `heartbeat`."""


def record_change(
    session: Session,
    kind: str,
    object_id: str,
    *,
    state: str | None = None,
    parents: Mapping[str, str | None] | None = None,
    changed: Collection[str] = (),
) -> None:
    """Record that something has changed. `changed` of the same transaction are joined.

    Args:
        session: the writing session.
        kind: what it is, as REST calls it, such as `run`.
        object_id: its id.
        state: its state, if it has any.
        parents: kind -> id of what it belongs to; None where it belongs to none of this kind.
        changed: the parts that have changed, of it or of its parents; empty: anything may have.
    """
    changes = session.info.setdefault(_CHANGES, {})
    earlier = changes.get((kind, object_id))
    if earlier is not None:
        changed = {*changed, *earlier.changed} if changed and earlier.changed else ()
    changes[kind, object_id] = ChangeEvent(
        kind=kind,
        id=object_id,
        parents={name: value for name, value in (parents or {}).items() if value is not None},
        state=state,
        changed=sorted(changed),
    )


def record_work(session: Session, queue: str) -> None:
    """Record that `queue` has something to claim, so that its workers are woken."""
    session.info.setdefault(_WAKE_UPS, {})[queue] = None


def host_queue(host_id: str) -> str:
    """The queue of a single host."""
    return f"host.{host_id}"


def take_changes(session: Session) -> list[ChangeEvent]:
    """Return the recorded changes, the latest of each object, and clear them. Call after the commit."""
    return list(session.info.pop(_CHANGES, {}).values())


def take_work(session: Session) -> list[str]:
    """Return the queues to wake, and clear them. Call after the commit."""
    return list(session.info.pop(_WAKE_UPS, {}))


def discard_changes(session: Session) -> None:
    """Clear the recorded changes and queues, so that the commit publishes nothing."""
    take_changes(session)
    take_work(session)
