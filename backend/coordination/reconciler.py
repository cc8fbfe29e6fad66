"""Starts what running sweeps need next; workers and the web process do this."""

import threading
from collections.abc import Callable

import structlog

from backend.coordination.context import TRANSIENT_ERRORS, Context
from backend.sweeps import service as sweeps

log = structlog.get_logger(__name__)


class SweepReconciler:
    """Reconciles the running sweeps every few seconds, in a thread of its own.

    A sweep is rows: a process that ends, or a second one that does the same, changes nothing.

    Args:
        context: connections of this process.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sweeps", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def begin_stop(self) -> None:
        """Stop after the current transaction; returns immediately."""
        self._stopping.set()

    def join(self, timeout_s: float) -> None:
        """Wait until the thread has ended."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._stopping.wait(self._context.settings.reconcile_interval_s):
            try:
                reconcile(self._context, self._stopping.is_set)
            except TRANSIENT_ERRORS as error:
                log.warning("database.unavailable", error=str(error)[:500])
            except Exception:
                log.exception("sweeps.error")


def reconcile(context: Context, is_stopping: Callable[[], bool] = lambda: False) -> None:
    """Do what every running sweep needs next. Sweeps with nothing to do are only read."""
    with context.reading() as session:
        running = sweeps.running(session)
    for sweep_id in running:
        try:
            _reconcile(context, sweep_id, is_stopping)
        except TRANSIENT_ERRORS:
            raise
        except Exception:  # the other sweeps continue
            log.exception("sweep.error", sweep_id=sweep_id)


def _reconcile(context: Context, sweep_id: str, is_stopping: Callable[[], bool]) -> None:
    with context.reading() as session:
        changed = sweeps.is_due(session, sweep_id)
    while changed and not is_stopping():
        with context.writing() as session:
            changed = sweeps.reconcile(session, sweep_id)
        if changed:
            log.info("sweep.reconciled", sweep_id=sweep_id)
