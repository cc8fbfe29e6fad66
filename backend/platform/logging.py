"""Structured log lines with the ids of their request and run, at a bounded rate."""

import logging
import sys
from dataclasses import dataclass
from threading import RLock
from time import monotonic

import structlog
from structlog.tracebacks import ExceptionDictTransformer

from backend.platform.settings import Settings

INTERVAL_S = 10.0
MAX_LINES = 2000
"""Lines of one kind in an interval."""
MAX_WARNINGS = 20
"""Warnings and errors of one kind in an interval. They may have tracebacks."""


@dataclass
class _Kind:
    """Lines of one logger with the same event, or the same format string."""

    interval: int
    n_lines: int = 0


class RateLimit(logging.Filter):
    """Drops lines beyond the maximum of their kind, and logs how many."""

    def __init__(self) -> None:
        super().__init__()
        self._kinds: dict[tuple[str, int, str], _Kind] = {}
        self._lock = RLock()  # reentrant: `_begin` logs while it holds the lock

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is within the limits."""
        text = record.msg.get("event") if isinstance(record.msg, dict) else record.msg
        key = (record.name, record.levelno, str(text)[:100])
        with self._lock:
            interval = int(monotonic() // INTERVAL_S)
            kind = self._kinds.get(key)
            if kind is None or kind.interval != interval:
                self._begin(interval)
                kind = self._kinds.setdefault(key, _Kind(interval))
            kind.n_lines += 1
            return kind.n_lines <= _maximum(record.levelno)

    def _begin(self, interval: int) -> None:
        """Forget the kinds of earlier intervals, and log how many lines were dropped."""
        ended = [(key, kind) for key, kind in self._kinds.items() if kind.interval != interval]
        for key, _ in ended:
            self._kinds.pop(key, None)
        for (name, level, text), kind in ended:
            if (n_dropped := kind.n_lines - _maximum(level)) > 0:
                logging.getLogger(name).warning("%d more lines were dropped: %s", n_dropped, text)


def _maximum(level: int) -> int:
    return MAX_LINES if level < logging.WARNING else MAX_WARNINGS


def configure(settings: Settings) -> None:
    """Send the lines of structlog and of the standard library to standard error, in one format.

    Bind ids with `structlog.contextvars.bound_contextvars(run_id=...)`.
    """
    shared: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    # Without local variables: rendering those of a deep stack takes half a minute.
    last: list[structlog.types.Processor] = (
        [
            structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False)),
            structlog.processors.JSONRenderer(),
        ]
        if settings.log_format == "json"
        else [
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
            )
        ]
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(RateLimit())
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(settings.log_level)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers = []
        logger.propagate = True
    # `backend.http.security` logs every request, with its id.
    logging.getLogger("uvicorn.access").disabled = True
    # Alembic names each of its plugins when it is imported.
    logging.getLogger("alembic.runtime.plugins").setLevel(logging.WARNING)
