"""Prometheus metrics of runs and hosts, read from the database on each scrape."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import Engine

from backend.db.engine import reading
from backend.hosts import service as hosts
from backend.hosts.repository import waiting_by_queue
from backend.runs import repository as runs


class ServiceCollector(Collector):
    """Reads runs by state, hosts and queues."""

    def __init__(self, db_engine: Engine, lease_s: float) -> None:
        self._db_engine = db_engine
        self._lease_s = lease_s

    def describe(self) -> list[Metric]:
        """Nothing before the first scrape."""
        # Without it, registering would query the database.
        return []

    def collect(self) -> Iterator[Metric]:
        """The current values."""
        with reading(self._db_engine) as session:
            by_state = runs.count_by_state(session)
            active_hosts = hosts.active_hosts(session, self._lease_s)
            by_queue = waiting_by_queue(session)
        states = GaugeMetricFamily("callboard_runs", "Runs by state.", labels=["state"])
        for state, count in by_state.items():
            states.add_metric([state], count)
        yield states
        alive = GaugeMetricFamily(
            "callboard_host_alive", "Whether a host has sent a heartbeat recently.", labels=["host"]
        )
        slots = GaugeMetricFamily(
            "callboard_host_slots",
            "Maximum number of runs that a host trains at the same time.",
            labels=["host"],
        )
        busy = GaugeMetricFamily("callboard_host_runs", "Runs on a host.", labels=["host"])
        for active in active_hosts:
            alive.add_metric([active.host.id], active.alive)
            slots.add_metric([active.host.id], active.host.slots)
            busy.add_metric([active.host.id], len(active.runs))
        yield from (alive, slots, busy)
        waiting = GaugeMetricFamily("callboard_runs_waiting", "Queued runs by queue.", labels=["queue"])
        for queue, count in by_queue.items():
            waiting.add_metric([queue], count)
        yield waiting
