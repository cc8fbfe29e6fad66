"""Expires the leases of workers that no longer renew them; workers and the web process do this."""

import time
from time import clock_gettime

import structlog

from backend.coordination import claims, repository
from backend.coordination.context import Context
from backend.coordination.periodic import PeriodicThread
from backend.replays.play import service as play

log = structlog.get_logger(__name__)


class DatabaseLiveness:
    """Whether this process may expire leases: after a database outage, all leases get one full term of grace.

    During an outage no worker can renew, so leases expire while their engines still run.
    """

    def __init__(self, lease_s: float) -> None:
        self._lease_s = lease_s
        self._since = 0.0
        self._latest: float | None = None

    def record_success(self, now: float) -> None:
        """The database stored a write at `now`, by `since_boot_s`."""
        if self._latest is None or now - self._latest > self._lease_s / 2:
            self._since = now
        self._latest = now

    def may_expire(self) -> bool:
        """Whether the database has been available for a whole lease term."""
        return self._latest is not None and self._latest - self._since >= self._lease_s


def since_boot_s() -> float:
    """Seconds since the machine has started, including those for which it was suspended.

    Unlike `time.monotonic`, which stands still meanwhile: leases expire by the database's clock.
    """
    return clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))  # that of macOS counts them


class LeaseExpiry(PeriodicThread):
    """Expires leases in a thread of the web process, so that runs are found lost when no worker is alive.

    From when it finds the first expired lease, workers have one full term to renew theirs: a machine that was
    suspended, a step of the database's clock, or a lock on the database expires the leases of live workers.
    Only writes count as the database being available, because a renewal is one.

    Args:
        context: connections of this process.
    """

    def __init__(self, context: Context) -> None:
        super().__init__("leases", context)
        self._liveness = DatabaseLiveness(context.settings.lease_s)

    def _step(self) -> None:
        with self._context.reading() as session:
            has_expired = claims.has_expired(session) or play.has_expired(session)
        if not has_expired:
            self._liveness = DatabaseLiveness(self._context.settings.lease_s)
            return
        with self._context.writing() as session:
            repository.check_writable(session)
        self._liveness.record_success(since_boot_s())
        if self._liveness.may_expire():
            expire(self._context)


def expire(context: Context) -> None:
    """Process expired leases: requeue the runs, end the play sessions, and publish the changes."""
    with context.writing() as session:
        expired = claims.expire(session)
        ended = play.expire(session)
    for run_id in expired:
        log.warning("run.lost", run_id=run_id)
    for session_id in ended:
        log.warning("play.lost", session=session_id)
