"""Starts what running sweeps and studies need next; workers and the web process do this."""

from collections.abc import Callable
from types import ModuleType

import structlog

from backend.coordination.context import TRANSIENT_ERRORS, Context
from backend.coordination.periodic import PeriodicThread
from backend.experiments.studies import service as studies
from backend.experiments.sweeps import service as sweeps

log = structlog.get_logger(__name__)

_KINDS: dict[str, ModuleType] = {"sweep": sweeps, "study": studies}


class Reconciler(PeriodicThread):
    """Reconciles the running sweeps and studies every few seconds, in a thread of its own.

    The state of a sweep or a study is in its rows alone: several processes can do this, and each may end at
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
        running = [(kind, row_id) for kind, service in _KINDS.items() for row_id in service.running(session)]
    for kind, row_id in running:
        try:
            _reconcile(context, kind, row_id, is_stopping)
        except TRANSIENT_ERRORS:
            raise
        except Exception:  # the others continue
            log.exception(f"{kind}.error", **{f"{kind}_id": row_id})


def _reconcile(context: Context, kind: str, row_id: str, is_stopping: Callable[[], bool]) -> None:
    service = _KINDS[kind]
    with context.reading() as session:
        changed = service.is_due(session, row_id)
    while changed and not is_stopping():
        with context.writing() as session:
            changed = service.reconcile(session, row_id)
        if changed:
            log.info(f"{kind}.reconciled", **{f"{kind}_id": row_id})
