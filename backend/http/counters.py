"""Prometheus counters of requests.

Apart from `backend.upkeep.instruments`, which reads the tables: security counts requests without a database.
"""

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest

# Created metrics would add a line for each route, method and status: the time of the first such request.
disable_created_metrics()  # type: ignore[no-untyped-call]


class RequestCounters:
    """The counters of one web process.

    Args:
        registry: also holds what others collect, so that one exposition has all of it.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._requests = Counter(
            "callboard_http_requests",
            "HTTP requests.",
            ["method", "route", "status"],
            registry=registry,
        )
        self._seconds = Histogram(
            "callboard_http_request_seconds",
            "Duration of HTTP requests.",
            ["method", "route"],
            registry=registry,
        )

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request; `route` is a template without `/api/v1`, so that ids create no label values."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def exposition(self) -> bytes:
        """All metrics of the registry in Prometheus' text format."""
        return generate_latest(self._registry)
