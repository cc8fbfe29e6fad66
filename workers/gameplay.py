"""Pictures of training, from engines to whoever watches; none while nobody does."""

import threading
from time import monotonic

import structlog
from redis import Redis, RedisError

from backend.live.gameplay import WATCH_CHANNEL, WATCH_LAPSES_S, pictures_channel

TIMEOUT_S = 1.0
"""How long Redis may keep a supervisor: pictures are lossy, recording is not."""

log = structlog.get_logger(__name__)


class Gameplay:
    """Hears who watches, and publishes pictures. Made once a worker process."""

    def __init__(self, redis_url: str) -> None:
        self._redis = Redis.from_url(redis_url, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S)
        self._said_at: dict[str, float] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="gameplay", daemon=True)

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def begin_stop(self) -> None:
        """Listen no more. Returns at once."""
        self._stopping.set()

    def stop(self, timeout_s: float) -> None:
        """Wait until nobody listens and close the connection; leave it to its thread after `timeout_s`."""
        self.begin_stop()
        self._thread.join(timeout_s)
        if not self._thread.is_alive():
            self._redis.close()

    def is_watched(self, run_id: str) -> bool:
        """Whether someone watches the run now."""
        said_at = self._said_at.get(run_id)
        return said_at is not None and monotonic() - said_at < WATCH_LAPSES_S

    def show(self, run_id: str, picture: bytes) -> None:
        """Pass a picture on, or drop it."""
        try:
            self._redis.publish(pictures_channel(run_id), picture)
        except RedisError as error:
            log.warning("redis.away", doing="show", error=str(error))

    def _listen(self) -> None:
        while not self._stopping.is_set():
            try:
                with self._redis.pubsub(ignore_subscribe_messages=True) as listener:  # type: ignore[no-untyped-call]
                    listener.subscribe(WATCH_CHANNEL)
                    while not self._stopping.is_set():
                        message = listener.get_message(timeout=TIMEOUT_S / 2)
                        if message is not None:
                            self._hear(message["data"].decode(errors="replace"))
            except RedisError as error:
                log.warning("redis.away", doing="listen", error=str(error))
                self._stopping.wait(TIMEOUT_S)

    def _hear(self, run_id: str) -> None:
        now = monotonic()
        lapsed = [known for known, said_at in self._said_at.items() if now - said_at > WATCH_LAPSES_S]
        for known in lapsed:
            del self._said_at[known]
        self._said_at[run_id] = now
