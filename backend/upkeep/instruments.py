"""Prometheus metrics of runs and hosts, read from the database on each scrape."""

import platform
from collections.abc import Iterator, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import Engine

from backend import __version__
from backend.db.clock import database_now
from backend.db.engine import reading
from backend.fleet.hosts import repository
from backend.fleet.hosts import service as hosts
from backend.fleet.hosts.waiting import ActiveHost
from backend.runs.runs import repository as runs

EXTERNAL = "external"
"""The label `host` of runs that scripts train."""


class ServiceCollector(Collector):
    """Reads runs by state, their rates, hosts and queues."""

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
            by_queue = repository.waiting_by_queue(session)
            oldest = repository.oldest_waiting(session)
            rates = repository.training_rates(session)
            now = database_now(session)
        build = {"version": __version__, "python": platform.python_version()}
        info = _gauge("callboard_build_info", "1, with the versions of the service.", *build)
        info.add_metric([*build.values()], 1)
        yield info
        states = _gauge("callboard_runs", "Runs by state.", "state")
        for state, count in by_state.items():
            states.add_metric([state], count)
        yield states
        rate = _gauge(
            "callboard_training_agent_steps_per_second",
            "Agent steps per second of all running runs of a host.",
            "host",
        )
        for host in {*(active.host.id for active in active_hosts), *rates}:
            rate.add_metric([EXTERNAL if host is None else host], rates.get(host, 0.0))
        yield rate
        yield from _of_hosts(active_hosts)
        waiting = _gauge("callboard_runs_waiting", "Queued runs by queue.", "queue")
        for queue, count in by_queue.items():
            waiting.add_metric([queue], count)
        yield waiting
        age = _gauge(
            "callboard_oldest_waiting_run_seconds",
            "Time that the longest waiting run of a queue has been queued.",
            "queue",
        )
        for queue, since in oldest.items():
            age.add_metric([queue], max(0.0, (now - since).total_seconds()))
        yield age


def _of_hosts(active_hosts: Sequence[ActiveHost]) -> Iterator[Metric]:
    alive = _gauge(
        "callboard_host_alive",
        "Whether a host has sent a heartbeat recently; no value for one whose worker was stopped.",
        "host",
    )
    draining = _gauge("callboard_host_draining", "Whether a host accepts no new runs.", "host")
    slots = _gauge(
        "callboard_host_slots", "Maximum number of runs that a host trains at the same time.", "host"
    )
    busy = _gauge("callboard_host_runs", "Runs on a host.", "host")
    lag = _gauge(
        "callboard_host_recorder_lag_seconds",
        "Longest time since all that an engine of a host had logged was recorded.",
        "host",
    )
    for active in active_hosts:
        name = [active.host.id]
        if active.host.stopped_at is None:
            alive.add_metric(name, active.alive)
        draining.add_metric(name, active.host.draining)
        slots.add_metric(name, active.host.slots)
        busy.add_metric(name, len(active.runs))
        if active.alive:
            lag.add_metric(name, float(active.host.load.get("recorder_lag_s") or 0.0))
    yield from (alive, draining, slots, busy, lag)


def _gauge(name: str, documentation: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, documentation, labels=labels)
