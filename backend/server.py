"""The web server: uvicorn, with a shutdown that does not wait for streams."""

import socket

import uvicorn
from fastapi import FastAPI

from backend.app import create_app
from backend.http.connections import HttpConnection, WebSocketConnection
from backend.platform.settings import Settings

KEEP_ALIVE_S = 8
"""How long an idle connection stays open: longer than clients keep theirs (httpx: 5 s). Else a request sent
while the server closes its connection would fail."""

GRACE_S = 5
"""How long requests in progress may take after a shutdown signal."""

MAX_SOCKET_MESSAGE_BYTES = 2**16
"""Maximum size of a client's message: players send some, others are ignored."""


class WebServer(uvicorn.Server):
    """A server that ends streams before it waits for requests in progress."""

    def __init__(self, app: FastAPI, settings: Settings) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                host=settings.host,
                port=settings.port,
                lifespan="on",
                # uvicorn's default believes every client on this machine.
                proxy_headers=bool(settings.trusted_proxies),
                forwarded_allow_ips=settings.trusted_proxies,
                http=HttpConnection,
                ws=WebSocketConnection,
                ws_max_size=MAX_SOCKET_MESSAGE_BYTES,
                ws_per_message_deflate=False,  # frames are JPEGs
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=GRACE_S,
            )
        )
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End streams, let requests finish, close."""
        self._app.state.app_state.stopping.set()
        await super().shutdown(sockets)

    @property
    def port(self) -> int:
        """The port it listens on, once started; with port 0, the assigned one."""
        bound: tuple[str, int] = self.servers[0].sockets[0].getsockname()
        return bound[1]


def run(settings: Settings) -> None:
    """Serve until SIGINT or SIGTERM."""
    WebServer(create_app(settings), settings).run()
