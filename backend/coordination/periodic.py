"""Threads that repeat a step at an interval: `LeaseExpiry` and `Reconciler`.

Two threads of workers are not of this kind: that of `workers.clean_up` begins at once and is woken when a
disk fills, and that of `workers.gameplay` waits for messages.
"""

import threading
from abc import ABC, abstractmethod

import structlog

from backend.coordination.context import TRANSIENT_ERRORS, Context

log = structlog.get_logger(__name__)


class PeriodicThread(ABC):
    """Repeats a step until it is stopped; an error of the step is logged and ends nothing.

    `start` it once, `begin_stop` and `join` it once.

    Args:
        name: name of the thread, and of its errors in the log.
        context: connections of this process.
    """

    def __init__(self, name: str, context: Context) -> None:
        self._name = name
        self._context = context
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def begin_stop(self) -> None:
        """Stop after the current transaction; returns immediately."""
        self._stopping.set()

    def join(self, timeout_s: float) -> None:
        """Wait until the thread has ended."""
        self._thread.join(timeout_s)

    @abstractmethod
    def _step(self) -> None:
        """What is done after each interval of `Settings.reconcile_interval_s`."""

    def _run(self) -> None:
        while not self._stopping.wait(self._context.settings.reconcile_interval_s):
            try:
                self._step()
            except TRANSIENT_ERRORS as error:
                log.warning("database.unavailable", error=str(error)[:500])
            except Exception:
                log.exception(f"{self._name}.error")
