"""Running the web process: uvicorn, ended without waiting for streams that never end."""

import socket

import uvicorn
from fastapi import FastAPI

from backend.app import create_app
from backend.settings import Settings

GRACE_S = 5
"""How long requests under way may take once the process is asked to end."""


class Server(uvicorn.Server):
    """A server that tells endless answers to end before it waits for requests under way."""

    def __init__(self, app: FastAPI, settings: Settings) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                host=settings.host,
                port=settings.port,
                lifespan="on",
                ws_per_message_deflate=False,  # pictures are compressed already
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=GRACE_S,
            )
        )
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End streams, let requests finish, close."""
        self._app.state.parts.stopping.set()
        await super().shutdown(sockets)

    @property
    def port(self) -> int:
        """The port it listens on, once `started`: with port 0, the one it was given."""
        bound: tuple[str, int] = self.servers[0].sockets[0].getsockname()
        return bound[1]


def run(settings: Settings) -> None:
    """Serve until SIGINT or SIGTERM."""
    Server(create_app(settings), settings).run()
