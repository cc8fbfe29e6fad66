"""The engine's end of the socket pair it shares with its supervisor, and its signals.

Commands are received as JSON lines. Frames are sent one per message: the agent step whose parameters played
(u64, little-endian), then a JPEG. A frame that does not fit into the socket's buffer is dropped.
"""

import os
import signal
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from backend.specs.commands import COMMAND, ChangeSettings, SaveCheckpoint, Stop, Watch
from workers.engine.processes.child import kill_all

_HEADER = struct.Struct("<Q")
_MAX_COMMANDS_BYTES = 1 << 16


class Control:
    """Receives commands without blocking the training loop."""

    def __init__(self, fd: int | None = None) -> None:
        self._socket = None if fd is None else socket.socket(fileno=fd)
        self._buffer = b""
        self._stop: Stop | None = None
        self._settings: list[ChangeSettings] = []
        self._is_checkpoint_wanted = False
        self._interrupts = False
        self._signalled = False
        self.watched = False
        """Whether a viewer is watching the agent play."""
        if self._socket is not None:
            self._socket.setblocking(False)

    def handle_signals(self) -> None:
        """Handle SIGTERM and SIGINT as a graceful stop. Main thread only."""
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, self._on_signal)

    @contextmanager
    def interrupting(self) -> Iterator[None]:
        """Within it, a signal kills all children and raises `KeyboardInterrupt`.

        It is for a start, which has nothing to save.

        Raises:
            KeyboardInterrupt: a signal came before it.
        """
        self._interrupts = True
        try:
            if self._signalled:
                raise KeyboardInterrupt
            yield
        finally:
            self._interrupts = False

    def stop(self, reason: str) -> None:
        """Request a graceful stop from within this process."""
        self._stop = Stop(reason=reason)

    def stop_requested(self) -> Stop | None:
        """The requested stop; None if there is none."""
        self._receive()
        return self._stop

    def take_settings(self) -> list[ChangeSettings]:
        """Settings changes requested since the last call, in order."""
        taken, self._settings = self._settings, []
        return taken

    def take_checkpoint_request(self) -> bool:
        """Whether a checkpoint was requested since the last call."""
        taken, self._is_checkpoint_wanted = self._is_checkpoint_wanted, False
        return taken

    def send_frame(self, agent_steps: int, jpeg: bytes) -> None:
        """Send a frame; drop it if the socket is full or closed."""
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
                _exit_with_group()
            self._buffer += data
            *lines, self._buffer = self._buffer.split(b"\n")
            for line in lines:
                match COMMAND.validate_json(line):
                    case Stop() as stop:
                        self._stop = stop
                    case ChangeSettings() as settings:
                        self._settings.append(settings)
                    case SaveCheckpoint():
                        self._is_checkpoint_wanted = True
                    case Watch(on=on):
                        self.watched = on

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._signalled = True
        self.stop(f"stopped by {signal.Signals(number).name}")
        if self._interrupts:
            self._interrupts = False  # what follows is not interrupted again
            kill_all()
            raise KeyboardInterrupt


def _exit_with_group() -> None:
    """Kill the process group: the supervisor has exited, so nothing written from now on would be recorded."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
