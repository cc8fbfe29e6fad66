"""What runs would need, before they are created."""

from typing import Any

from sqlalchemy.orm import Session

from backend.db import Run
from backend.hosts import service as hosts
from backend.runs import service
from backend.runs.schemas import RunEstimate


def estimate(session: Session, body: dict[str, Any]) -> RunEstimate:
    """The need of the runs of a request; nothing is stored.

    Raises:
        InvalidSpec: with one problem per invalid field.
    """
    rows = [
        Run(
            environment=spec.environment,
            queue=spec.queue,
            wanted_host=spec.host,
            spec=spec.model_dump(mode="json"),
            memory_estimate_bytes=spec.memory_estimate_bytes,
        )
        for spec in service.specs(session, body)
    ]
    return RunEstimate(
        memory_bytes=max(row.memory_estimate_bytes for row in rows), warnings=hosts.warnings(session, rows)
    )
