"""The engine's end of the socket pair it shares with its supervisor, and its signals.

Commands come in as JSON lines. Pictures go out, one message each: the agent step whose parameters played
(u64, little-endian), then a JPEG. A picture that does not fit into the socket now is dropped.
"""

import os
import signal
import socket
import struct
from contextlib import suppress
from types import FrameType

from backend.specs.commands import COMMAND, Settings, Stop, Watch

_HEADER = struct.Struct("<Q")
_MAX_COMMANDS_BYTES = 1 << 16


class Control:
    """Collects commands without ever blocking the training loop."""

    def __init__(self, fd: int | None = None) -> None:
        self._socket = None if fd is None else socket.socket(fileno=fd)
        self._buffer = b""
        self._stop: Stop | None = None
        self._settings: list[Settings] = []
        self.watched = False
        """Whether someone watches the agent play."""
        if self._socket is not None:
            self._socket.setblocking(False)

    def handle_signals(self) -> None:
        """Take SIGTERM and SIGINT as a polite stop. Main thread only."""
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, self._on_signal)

    def stop(self, reason: str) -> None:
        """Ask for a polite stop from within this process."""
        self._stop = Stop(reason=reason)

    def stop_requested(self) -> Stop | None:
        """The stop someone asked for, once someone has."""
        self._receive()
        return self._stop

    def take_settings(self) -> list[Settings]:
        """Changes asked for since the last call, in order."""
        taken, self._settings = self._settings, []
        return taken

    def show(self, agent_steps: int, jpeg: bytes) -> None:
        """Send a picture, or drop it."""
        if self._socket is not None:
            with suppress(OSError):
                self._socket.send(_HEADER.pack(agent_steps) + jpeg)

    def _receive(self) -> None:
        while self._socket is not None:
            try:
                data = self._socket.recv(_MAX_COMMANDS_BYTES)
            except BlockingIOError:
                return
            except ConnectionResetError:
                data = b""
            if not data:
                _die()
            self._buffer += data
            *lines, self._buffer = self._buffer.split(b"\n")
            for line in lines:
                match COMMAND.validate_json(line):
                    case Stop() as stop:
                        self._stop = stop
                    case Settings() as settings:
                        self._settings.append(settings)
                    case Watch(on=on):
                        self.watched = on

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.stop(f"stopped by {signal.Signals(number).name}")


def _die() -> None:
    """The supervisor is gone: what this process wrote from here on, no one could claim."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
