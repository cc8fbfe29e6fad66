"""The engine's end of the socket pair it shares with its supervisor, and its signals."""

import os
import select
import signal
from types import FrameType

from backend.specs.commands import COMMAND, AnyCommand, Stop


class Control:
    """Collects commands without ever blocking the training loop."""

    def __init__(self, fd: int | None = None) -> None:
        self._fd = fd
        self._buffer = b""
        self._stop: Stop | None = None
        if fd is not None:
            os.set_blocking(fd, False)

    def handle_signals(self) -> None:
        """Take SIGTERM and SIGINT as a polite stop. Main thread only."""
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, self._on_signal)

    def stop_requested(self) -> Stop | None:
        """The stop someone asked for, once someone has.

        When the supervisor's end is closed the supervisor is gone, and so is this process at once: what
        it wrote after that no one could claim.
        """
        if self._fd is not None and select.select([self._fd], [], [], 0)[0]:
            data = os.read(self._fd, 65536)
            if not data:
                os.killpg(0, signal.SIGKILL) if os.getpgrp() == os.getpid() else os._exit(1)
            self._buffer += data
            *lines, self._buffer = self._buffer.split(b"\n")
            for line in lines:
                self._obey(COMMAND.validate_json(line))
        return self._stop

    def _obey(self, command: AnyCommand) -> None:
        match command:
            case Stop():
                self._stop = command

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._stop = Stop(reason=f"stopped by {signal.Signals(number).name}")
