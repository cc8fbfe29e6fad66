"""A script that plays: opens a session over REST, and its stream."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from tests.support.pages import session_headers
from tests.support.waiting import PATIENCE_S, Patience


@dataclass
class Shown:
    """A message of the stream."""

    status: dict[str, Any]
    jpeg: bytes


class Player:
    """The connection of a player, or of who watches."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    def send(self, **message: Any) -> None:
        """Send a message."""
        self._socket.send(json.dumps(message, ensure_ascii=False))

    def hold(self, action: int | None, seq: int = 0) -> None:
        """Hold an action down."""
        self.send(type="action", action=action, seq=seq)

    def next(self) -> Shown | str:
        """The next frame, or the reason of a refusal."""
        message = self._socket.recv(PATIENCE_S)
        if isinstance(message, str):
            return str(json.loads(message)["refused"])
        length = int.from_bytes(message[:2], "little")
        return Shown(json.loads(message[2 : 2 + length]), message[2 + length :])

    def until(self, **status: Any) -> Shown:
        """Read frames until one has this status."""
        return next(shown for shown in self._frames(status) if shown.status.items() >= status.items())

    def after(self, frames: int) -> Shown:
        """Read frames until a game is this long."""
        awaited = f"{frames} frames"
        return next(shown for shown in self._frames(awaited) if shown.status.get("frames", 0) >= frames)

    def refusal(self) -> str:
        """Read frames until a message is refused."""
        return next(reason for reason in self._messages("a refusal") if isinstance(reason, str))

    def _frames(self, awaited: object) -> Iterator[Shown]:
        return (message for message in self._messages(awaited) if isinstance(message, Shown))

    def _messages(self, awaited: object) -> Iterator[Shown | str]:
        """Messages until the deadline of what is awaited; frames may come for ever."""
        status: dict[str, Any] = {}

        def detail() -> str:
            return f"awaited {awaited}, the last status is {status}"

        patience = Patience(detail=detail)
        while patience.lasts():
            try:
                message = self.next()
            except TimeoutError:
                raise AssertionError(f"no message within {PATIENCE_S:g} s: {detail()}") from None
            status = message.status if isinstance(message, Shown) else status
            yield message


def open_session(client: httpx.Client, environment: str, **changes: Any) -> dict[str, Any]:
    """Open a session."""
    answer = client.post("/api/v1/play", json={"environment": environment} | changes)
    assert answer.status_code == 201, answer.text
    session: dict[str, Any] = answer.json()
    return session


@contextmanager
def playing(client: httpx.Client, session_id: str, server: str | None = None) -> Iterator[Player]:
    """Connect to a session with what the client logs in by.

    Args:
        client: of the service.
        session_id: the session's.
        server: address of the service's server, where the client calls the application itself.
    """
    headers = (
        {"Authorization": client.headers["Authorization"]}
        if "Authorization" in client.headers
        else session_headers(client)
    )
    url = server or str(client.base_url).rstrip("/")
    address = f"{url.replace('http', 'ws', 1)}/api/v1/play/{session_id}/stream"
    with connect(
        address,
        origin=Origin(url),
        additional_headers=headers,
        open_timeout=PATIENCE_S,
        ping_timeout=PATIENCE_S,
    ) as socket:
        yield Player(socket)
