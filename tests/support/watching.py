"""Frames from a run's live websocket."""

from websockets.sync.client import ClientConnection

from tests.support.frames import unpack_frame
from tests.support.waiting import PATIENCE_S


def await_frame(socket: ClientConnection) -> tuple[int, bytes]:
    """Wait for the next frame and return its agent step and JPEG."""
    message = socket.recv(timeout=PATIENCE_S)
    assert isinstance(message, bytes)
    return unpack_frame(message)
