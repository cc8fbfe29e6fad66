"""Executes each attempt as a Celery task, so that Celery's own tools show what trains where.

The worker that claims an attempt sends the task `callboard.train` with the id `<run>-<attempt>` to its own
host's queue and receives it itself. The claim is a row, so the message decides nothing: if it is lost, the
attempt starts without it; a repeated one, or one for an attempt that this worker does not hold, is ignored.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic

import structlog

from backend.coordination.claims import Claim
from workers.supervisor import Supervisor

MESSAGE_TIMEOUT_S = 2.0
"""An attempt whose task has not arrived by then starts without it."""
RESEND_INTERVAL_S = 10.0
"""Time until the message of an attempt is sent again after Redis was unavailable."""

Send = Callable[[Claim], bool]
"""Sends the task of an attempt to this host's queue; returns whether Redis accepted it."""

log = structlog.get_logger(__name__)


@dataclass
class _Dispatched:
    supervisor: Supervisor
    sent_at: float
    sent: bool
    executed_by_task: threading.Lock = field(default_factory=threading.Lock)


class Dispatcher:
    """The attempts that this worker holds, and their Celery tasks.

    Args:
        send: sends a task. The default sends none: every attempt starts in a thread of its own.
    """

    def __init__(self, send: Send = lambda claim: False) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._attempts: dict[tuple[str, int], _Dispatched] = {}

    def supervisors(self) -> list[Supervisor]:
        """The supervisors of all attempts that are not over, oldest claim first."""
        with self._lock:
            for key, attempt in list(self._attempts.items()):
                if not attempt.supervisor.is_alive():
                    del self._attempts[key]
            return [attempt.supervisor for attempt in self._attempts.values()]

    def add(self, supervisor: Supervisor) -> None:
        """Send the task of a claimed attempt; without Redis, start the attempt immediately."""
        claim = supervisor.claim
        attempt = _Dispatched(supervisor, monotonic(), False)
        with self._lock:
            # Before the message: the task may arrive immediately.
            self._attempts[claim.run_id, claim.attempt] = attempt
        attempt.sent = self._send(claim)
        if not attempt.sent:
            supervisor.start()

    def check(self) -> None:
        """Start the attempts whose message is late, and send again those that Redis did not accept."""
        now = monotonic()
        with self._lock:
            late = [
                attempt
                for attempt in self._attempts.values()
                if not attempt.executed_by_task.locked() and now >= attempt.sent_at + MESSAGE_TIMEOUT_S
            ]
        for attempt in late:
            claim = attempt.supervisor.claim
            if not attempt.supervisor.has_begun:
                log.warning("run.started_without_message", run_id=claim.run_id, attempt=claim.attempt)
                attempt.supervisor.start()
            if not attempt.sent and now >= attempt.sent_at + RESEND_INTERVAL_S:
                attempt.sent_at, attempt.sent = now, self._send(claim)

    def is_waiting(self) -> bool:
        """Whether an attempt waits for its message."""
        return any(not supervisor.has_begun for supervisor in self.supervisors())

    def execute(self, run_id: str, attempt: int) -> Supervisor | None:
        """Execute an attempt in the calling thread, the Celery task's, and return it when it is over.

        An attempt that has started without its task is waited for.

        Returns:
            None, immediately, if this worker does not hold the attempt or another task executes it.
        """
        with self._lock:
            found = self._attempts.get((run_id, attempt))
        if found is None or not found.executed_by_task.acquire(blocking=False):
            return None
        found.supervisor.run()
        return found.supervisor
