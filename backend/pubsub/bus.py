"""Redis pub/sub notifications that something has changed; the database holds the changes.

A lost message loses no data: workers look for work at intervals, and pages catch up by revision. So an
unavailable Redis never fails a request, and delays it by a few times `TIMEOUT_S` at most. The process that
has lost a message reports this with its next one, and pages then read everything again. Until then an open
page may show the former state, at most until its stream is opened again, `LIFETIME_S` later.
"""

from collections.abc import Iterable

import structlog
from celery import Celery
from kombu.exceptions import OperationalError
from redis import Redis, RedisError
from redis.backoff import NoBackoff
from redis.retry import Retry
from sqlalchemy.orm import Session

from backend.db.changes import ChangeEvent, take_changes, take_work

CHANNEL = "callboard:events"
"""Messages: `ChangeEvent` as JSON, or `LOST`."""

LOST = '{"lost":true}'
"""The message which reports that earlier ones of the same process were lost."""

LIFETIME_S = 3600.0
"""Maximum duration of a stream; the browser then reconnects and is authenticated again."""

WAKE_TASK = "callboard.wake"
"""Celery task that makes a worker look for work."""

MAX_WAKES = 100
"""Messages that wait in a queue at most: its workers may be gone for good."""

TIMEOUT_S = 0.5
"""Of one attempt: a publication has two, and may have to connect first."""

WATCH_CHANNEL = "callboard:watch"
"""A web process publishes a run's id here every `WATCH_INTERVAL_S` while a client watches its gameplay."""
WATCH_INTERVAL_S = 2.0
WATCH_EXPIRES_S = 5.0
"""A worker stops publishing frames this long after the last such message."""

PLAYER_INTERVAL_S = 0.5
PLAYER_EXPIRES_S = 2.0
"""The same for the player of a session: a game is paused this long after its player was last there."""

PLAY_PREFIX = "callboard:play:"
"""Beginning of the channels of play sessions."""

log = structlog.get_logger(__name__)


class Bus:
    """Publishes changes and wakes workers."""

    def __init__(self, url: str) -> None:
        # One retry, for a connection that was idle while Redis restarted.
        self._redis = Redis.from_url(
            url,
            socket_timeout=TIMEOUT_S,
            socket_connect_timeout=TIMEOUT_S,
            retry=Retry(NoBackoff(), 1),
        )
        self._n_lost = 0
        """How often messages were lost."""
        self._n_reported = 0
        """How many of these losses have been reported to subscribers."""
        self._celery = Celery(broker=celery_url(url), set_as_current=False)
        self._celery.conf.broker_transport_options = {
            "socket_timeout": TIMEOUT_S,
            "socket_connect_timeout": TIMEOUT_S,
            "max_retries": 0,
        }
        self._celery.conf.task_publish_retry = False
        self._celery.conf.task_ignore_result = True

    def publish_changes(self, session: Session) -> None:
        """Publish the changes of the session's committed transaction, and wake the workers of the queues it
        filled."""
        self.publish(take_changes(session))
        for queue in take_work(session):
            self.wake(queue)

    def publish(self, changes: Iterable[ChangeEvent]) -> None:
        """Publish committed changes."""
        messages = [change.model_dump_json() for change in changes]
        if not messages:
            return
        n_lost = self._n_lost
        if n_lost > self._n_reported:
            messages.append(LOST)
        try:
            with self._redis.pipeline(transaction=False) as pipeline:
                for message in messages:
                    pipeline.publish(CHANNEL, message)
                pipeline.execute()
            self._n_reported = n_lost
        except RedisError as error:
            self._n_lost += 1
            log.warning("redis.unavailable", operation="publish", error=str(error))

    def wake(self, queue: str) -> bool:
        """Make the workers of a queue look for work now; return whether Redis accepted the message."""
        try:
            if int(self._redis.llen(queue)) < MAX_WAKES:
                self._celery.send_task(WAKE_TASK, queue=queue, ignore_result=True, retry=False)
        except (OperationalError, RedisError, OSError) as error:
            log.warning("redis.unavailable", operation="wake", error=str(error))
            return False
        return True

    def ping(self) -> bool:
        """Whether Redis responds."""
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


def frames_channel(owner_id: str) -> str:
    """The channel of the frames of a run or of a play session: agent steps of the parameters (u64,
    little-endian), then a JPEG."""
    return f"callboard:frames:{owner_id}"


def play_channel(session_id: str) -> str:
    """The channel of a play session's messages from its player: JSON of `backend.specs.play`. Its frames have
    the channel `frames_channel` of its id."""
    return f"{PLAY_PREFIX}{session_id}"
