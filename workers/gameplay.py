"""Live video: publishes frames from engines to the runs' viewers; none without viewers."""

import threading
from time import monotonic

import structlog
from redis import Redis, RedisError

from backend.pubsub.bus import WATCH_CHANNEL, WATCH_EXPIRES_S, frames_channel

TIMEOUT_S = 1.0
"""How long Redis may block a supervisor: frames may be lost, recorded data may not."""

log = structlog.get_logger(__name__)


class Gameplay:
    """Tracks which runs are watched, and publishes their frames. Created once per worker process."""

    def __init__(self, redis_url: str) -> None:
        self._redis = Redis.from_url(redis_url, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S)
        self._watched_at: dict[str, float] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="gameplay", daemon=True)

    def start(self) -> None:
        """Start listening."""
        self._thread.start()

    def begin_stop(self) -> None:
        """Stop listening; returns immediately."""
        self._stopping.set()

    def stop(self, timeout_s: float) -> None:
        """Wait for the listening thread and close the connection; give up after `timeout_s`."""
        self.begin_stop()
        self._thread.join(timeout_s)
        if not self._thread.is_alive():
            self._redis.close()

    def is_watched(self, run_id: str, expires_s: float = WATCH_EXPIRES_S) -> bool:
        """Whether the run, or the session, has had a viewer in this time."""
        watched_at = self._watched_at.get(run_id)
        return watched_at is not None and monotonic() - watched_at < expires_s

    def publish(self, run_id: str, frame: bytes) -> None:
        """Publish a frame; drop it if Redis is unavailable."""
        try:
            self._redis.publish(frames_channel(run_id), frame)
        except RedisError as error:
            log.warning("redis.unavailable", operation="publish", error=str(error))

    def _listen(self) -> None:
        while not self._stopping.is_set():
            try:
                with self._redis.pubsub(ignore_subscribe_messages=True) as listener:  # type: ignore[no-untyped-call]
                    listener.subscribe(WATCH_CHANNEL)
                    while not self._stopping.is_set():
                        message = listener.get_message(timeout=TIMEOUT_S / 2)
                        if message is not None:
                            self._on_watch(message["data"].decode(errors="replace"))
            except RedisError as error:
                log.warning("redis.unavailable", operation="listen", error=str(error))
                self._stopping.wait(TIMEOUT_S)

    def _on_watch(self, run_id: str) -> None:
        now = monotonic()
        expired = [
            known for known, watched_at in self._watched_at.items() if now - watched_at > WATCH_EXPIRES_S
        ]
        for known in expired:
            del self._watched_at[known]
        self._watched_at[run_id] = now
