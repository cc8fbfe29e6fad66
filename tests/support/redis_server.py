"""A real Redis server on a private socket."""

import subprocess
from pathlib import Path
from time import monotonic, sleep

import redis

from callboard_cli.servers import redis_program
from tests.support.waiting import PATIENCE_S


class RedisServer:
    """A Redis server that may be stopped and started again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._socket = folder / "redis.sock"
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"unix://{self._socket}"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        command = [redis_program(), "--port", "0", "--unixsocket", str(self._socket)]
        command += ["--save", "", "--appendonly", "no", "--dir", str(self._folder)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = monotonic() + PATIENCE_S
        with redis.Redis.from_url(self.url, socket_timeout=PATIENCE_S) as client:
            while True:
                try:
                    client.ping()
                    return
                except redis.ConnectionError:
                    if monotonic() > deadline:
                        raise
                    sleep(0.02)

    def stop(self) -> None:
        """Kill the server, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @property
    def pid(self) -> int:
        """The server's process id."""
        assert self._process is not None
        return self._process.pid

    def flush(self) -> None:
        """Delete every key."""
        with redis.Redis.from_url(self.url, socket_timeout=PATIENCE_S) as client:
            client.flushall()
