"""A real S3 server: moto's, in a separate process."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import httpx

from tests.support.waiting import PATIENCE_S

BUCKET = "callboard"


class S3Server:
    """Starts on creation; `environment` holds the variables that a client needs."""

    def __init__(self, log: Path) -> None:
        # Bound, but not listening: nobody else gets the port before the server listens.
        self._reserved = socket.socket()
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._reserved.bind(("127.0.0.1", 0))
        port = self._reserved.getsockname()[1]
        self.endpoint = f"http://127.0.0.1:{port}"
        self.environment = {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
                env=os.environ | self.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        deadline = monotonic() + PATIENCE_S
        while not self._answers():
            assert monotonic() < deadline, log.read_text()
            assert self._process.poll() is None, log.read_text()
            sleep(0.05)
        httpx.put(f"{self.endpoint}/{BUCKET}", timeout=PATIENCE_S).raise_for_status()
        self.url = f"s3://{BUCKET}/lab"

    def stop(self) -> None:
        """Stop the server."""
        self._process.kill()
        self._process.wait()
        self._reserved.close()

    def _answers(self) -> bool:
        try:
            return httpx.get(self.endpoint, timeout=5).status_code == 200
        except httpx.HTTPError:
            return False
