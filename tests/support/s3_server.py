"""A real S3 server of our own: moto's, in a process of its own."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import httpx

BUCKET = "callboard"


class S3Server:
    """Started on creation; `environment` is what a client needs to find it."""

    def __init__(self, log: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
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
        deadline = monotonic() + 60
        while not self._answers():
            assert monotonic() < deadline, log.read_text()
            assert self._process.poll() is None, log.read_text()
            sleep(0.05)
        httpx.put(f"{self.endpoint}/{BUCKET}").raise_for_status()
        self.url = f"s3://{BUCKET}/lab"

    def stop(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()

    def _answers(self) -> bool:
        try:
            return httpx.get(self.endpoint, timeout=5).status_code == 200
        except httpx.HTTPError:
            return False
