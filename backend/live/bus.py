"""Redis as a bell: who is awake hears that something changed; the database says what.

A message lost is harmless (pages catch up by revision, workers look for work themselves), so Redis being
away never fails a request or holds it up for longer than `TIMEOUT_S`.
"""

import json
from collections.abc import Iterable
from typing import Any

import structlog
from celery import Celery
from kombu.exceptions import OperationalError
from redis import Redis, RedisError
from redis.backoff import NoBackoff
from redis.retry import Retry
from sqlalchemy.orm import Session

from backend.db.changes import take_changes, take_work

CHANNEL = "callboard:events"
"""JSON messages: `{"run", "revision", "state"}`, `{"host"}` or `{"job", "run", "state"}`."""

LIFETIME_S = 3600.0
"""A stream ends after this long; the browser opens a new one, and is asked who it is again."""

POKE_TASK = "callboard.poke"
"""Celery task that makes a worker look for work."""

TIMEOUT_S = 0.5

log = structlog.get_logger(__name__)


class Bus:
    """Publishes changes and pokes workers."""

    def __init__(self, url: str) -> None:
        # One retry, for a connection that was idle while Redis was restarted.
        self._redis = Redis.from_url(
            url,
            socket_timeout=TIMEOUT_S,
            socket_connect_timeout=TIMEOUT_S,
            retry=Retry(NoBackoff(), 1),
        )
        self._celery = Celery(broker=celery_url(url), set_as_current=False)
        self._celery.conf.broker_transport_options = {
            "socket_timeout": TIMEOUT_S,
            "socket_connect_timeout": TIMEOUT_S,
            "max_retries": 0,
        }
        self._celery.conf.task_publish_retry = False
        self._celery.conf.task_ignore_result = True

    def announce(self, session: Session) -> None:
        """Tell what the session's committed transaction changed, and poke the queues it filled."""
        self.publish(take_changes(session))
        for queue in take_work(session):
            self.poke(queue)

    def publish(self, changes: Iterable[dict[str, Any]]) -> None:
        """Tell of changes already committed."""
        try:
            with self._redis.pipeline(transaction=False) as pipeline:
                for change in changes:
                    pipeline.publish(CHANNEL, json.dumps(change, separators=(",", ":")))
                if len(pipeline):
                    pipeline.execute()
        except RedisError as error:
            log.warning("redis.away", doing="publish", error=str(error))

    def poke(self, queue: str) -> None:
        """Ask the workers of a queue to look for work now."""
        try:
            self._celery.send_task(POKE_TASK, queue=queue, ignore_result=True, retry=False)
        except (OperationalError, RedisError, OSError) as error:
            log.warning("redis.away", doing="poke", error=str(error))

    def ping(self) -> bool:
        """Whether Redis answers."""
        try:
            return self._redis.ping()
        except RedisError:
            return False

    def close(self) -> None:
        """Close the connections."""
        self._celery.close()
        self._redis.close()


def celery_url(redis_url: str) -> str:
    """The same Redis as a Celery broker URL."""
    prefix = "unix://"
    return f"redis+socket://{redis_url.removeprefix(prefix)}" if redis_url.startswith(prefix) else redis_url
