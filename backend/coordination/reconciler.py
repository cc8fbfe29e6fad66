"""Starts what running experiments need next; workers and the web process do this."""

from collections.abc import Callable

import structlog

from backend.coordination.context import TRANSIENT_ERRORS, Context
from backend.coordination.periodic import PeriodicThread
from backend.experiments.experiments import service as experiments

log = structlog.get_logger(__name__)


class Reconciler(PeriodicThread):
    """Reconciles the running sweeps and studies every few seconds, in a thread of its own.

    The state of an experiment is in its rows alone: several processes can do this, and each may end at
    any time.

    Args:
        context: connections of this process.
    """

    def __init__(self, context: Context) -> None:
        super().__init__("reconciler", context)

    def _step(self) -> None:
        reconcile(self._context, self._stopping.is_set)


def reconcile(context: Context, is_stopping: Callable[[], bool] = lambda: False) -> None:
    """Do what every running sweep and study needs next. Those with nothing to do are only read."""
    with context.reading() as session:
        running = experiments.running(session)
    for experiment_id in running:
        try:
            _reconcile(context, experiment_id, is_stopping)
        except TRANSIENT_ERRORS:
            raise
        except Exception:  # the others continue
            log.exception("experiment.error", experiment_id=experiment_id)


def _reconcile(context: Context, experiment_id: str, is_stopping: Callable[[], bool]) -> None:
    with context.reading() as session:
        changed = experiments.is_due(session, experiment_id)
    while changed and not is_stopping():
        with context.writing() as session:
            changed = experiments.reconcile(session, experiment_id)
        if changed:
            log.info("experiment.reconciled", experiment_id=experiment_id)
