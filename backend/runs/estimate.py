"""What runs would need, and what may be wrong with them although they are valid."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from backend.db import Run
from backend.hosts import service as hosts
from backend.runs import requests
from backend.runs.schemas import RunEstimate, RunFields
from backend.specs.annealing import annealing_warning


def estimate(session: Session, request: RunFields) -> RunEstimate:
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
        for spec in requests.specs(session, request)
    ]
    return RunEstimate(
        memory_bytes=max(row.memory_estimate_bytes for row in rows), warnings=warnings(session, rows)
    )


def warnings(session: Session, runs: Sequence[Run]) -> list[str]:
    """Why no host that may claim these runs, which are of one request, can run them well, and which of their
    settings have no effect."""
    without_effect = filter(None, (annealing_warning(run.spec) for run in runs))
    return [*hosts.warnings(session, runs), *dict.fromkeys(without_effect)]
