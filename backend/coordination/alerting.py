"""Raises alerts, and delivers them; workers do this, and the web process does not."""

from collections.abc import Callable

import structlog

from backend.alerts.alerts import service as alerts
from backend.alerts.deliveries import service as deliveries
from backend.alerts.evaluation import service as evaluation
from backend.coordination.context import Context
from backend.coordination.lease_expiry import DatabaseLiveness, since_boot_s
from backend.coordination.periodic import PeriodicThread
from backend.fleet.hosts.service import ALIVE_LEASES

log = structlog.get_logger(__name__)

REMOVAL_INTERVAL_S = 3600.0


class Alerting(PeriodicThread):
    """Compares what has happened with the rules every few seconds.

    Args:
        context: connections of this process.
    """

    def __init__(self, context: Context) -> None:
        super().__init__("alerting", context)
        self._compared: evaluation.Compared = {}
        # Hosts could not report during an outage of the database.
        self._liveness = DatabaseLiveness(ALIVE_LEASES * context.settings.lease_s)
        self._next_removal_at = 0.0

    def _step(self) -> None:
        now = since_boot_s()
        try:
            raise_alerts(
                self._context,
                self._compared,
                hosts=self._liveness.may_expire(),
                is_stopping=self._stopping.is_set,
            )
        except BaseException:
            self._compared.clear()  # what was compared may not have been raised
            raise
        self._liveness.record_success(now)
        if now >= self._next_removal_at and not self._stopping.is_set():
            self._next_removal_at = now + REMOVAL_INTERVAL_S
            with self._context.writing() as session:
                alerts.remove_old(session)


def raise_alerts(
    context: Context,
    compared: evaluation.Compared,
    *,
    hosts: bool = True,
    is_stopping: Callable[[], bool] = lambda: False,
) -> None:
    """Raise the alerts that rules are to have now. Where nothing has happened, this only reads.

    Args:
        context: connections of this process.
        compared: see `evaluation.due`.
        hosts: see `evaluation.due`.
        is_stopping: whether to end after the current transaction.
    """
    with context.reading() as session:
        latest = evaluation.latest_signal(session)
        candidates = evaluation.due(session, context.settings, compared, hosts=hosts)
    if candidates:
        with context.writing() as session:
            evaluation.raise_due(session, candidates)
    more = True
    while latest is not None and more and not is_stopping():
        with context.writing() as session:
            more = evaluation.raise_signalled(session, latest)


class AlertDelivery(PeriodicThread):
    """Delivers alerts to targets. A thread of its own: one that does not answer delays nothing else.

    Args:
        context: connections of this process.
    """

    def __init__(self, context: Context) -> None:
        super().__init__("alert-delivery", context)

    def _step(self) -> None:
        while not self._stopping.is_set() and deliver_next(self._context):
            pass


def deliver_next(context: Context) -> bool:
    """Try the next delivery that is due; return whether there was one."""
    with context.reading() as session:
        if not deliveries.is_due(session):
            return False
    with context.writing() as session:
        leased = deliveries.lease(session)
    if leased is None:
        return False
    error = deliveries.send(leased, context.settings)
    with context.writing() as session:
        deliveries.settle(session, leased, error)
    if error is not None:
        log.warning("alert.not_delivered", alert=leased.alert_id, target=leased.target_id, error=error)
    return True
