"""A whole installation: `callboard up` in a separate process."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

import httpx
import psutil

from tests.support.pages import page_client
from tests.support.waiting import PATIENCE_S

COMMAND = ("-m", "callboard_cli.main")
CALLBOARD = (sys.executable, *COMMAND)


def environment(home: Path, **settings: object) -> dict[str, str]:
    """Return the environment variables of a process of the installation in `home`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CALLBOARD_")}
    given = {f"CALLBOARD_{name.upper()}": str(value) for name, value in settings.items()}
    ours = {"CALLBOARD_HOME": str(home), "CALLBOARD_PORT": "0", "CALLBOARD_ENGINE_NICENESS": "0"}
    ours["CALLBOARD_DEMO"] = "false"
    return kept | ours | given


class Installation:
    """Starts on creation and waits until `url` answers.

    Args:
        home: its home directory.
        prefix: the beginning of the command, such as a program that starts the rest of it.
        python: the interpreter of another environment.
        settings: values of settings.
    """

    def __init__(
        self,
        home: Path,
        *,
        prefix: Sequence[str] = (),
        python: str = sys.executable,
        **settings: object,
    ) -> None:
        self.home = home
        self._output = home.with_name(f"{home.name}-output.txt")
        home.parent.mkdir(parents=True, exist_ok=True)
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                [*prefix, python, *COMMAND, "up"],
                env=environment(home, **settings),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self.login_url = self._await_link()
        self.url = self.login_url.partition("/login")[0]
        self.client = page_client(self.url)

    @property
    def output(self) -> str:
        """The text that it has printed."""
        return self._output.read_text()

    def log_in(self) -> httpx.Client:
        """Log in by the login link and return the client."""
        self.client.get(self.login_url)
        return self.client

    def children(self) -> dict[str, psutil.Process]:
        """Return its child processes by name: `redis`, `web`, `worker`."""
        by_name = {}
        for child in psutil.Process(self.process.pid).children():
            try:
                line = " ".join(child.cmdline())
            except psutil.Error:  # it has just ended
                continue
            for name, mark in (("redis", "valkey-server"), ("web", "main web"), ("worker", "main worker")):
                if mark in line:
                    by_name[name] = child
        return by_name

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal, wait for the end and return the exit status."""
        self.client.close()
        self.process.send_signal(number)
        return self.process.wait(timeout=PATIENCE_S)

    def _await_link(self) -> str:
        deadline = monotonic() + PATIENCE_S
        while (match := re.search(r"http://\S+/login\?token=\S+", self.output)) is None:
            if self.process.poll() is not None or monotonic() > deadline:
                self.process.kill()
                self.process.wait()
                raise RuntimeError(f"callboard up did not start:\n{self.output}")
            sleep(0.05)
        return match[0]


@contextmanager
def installation(home: Path, *, python: str = sys.executable, **settings: object) -> Iterator[Installation]:
    """Run an installation, with the interpreter of any environment, and stop it afterwards."""
    running = Installation(home, prefix=(), python=python, **settings)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.stop()
