"""The web process as tests ask it: a real server on a free port, in a thread."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import uvicorn

from backend.app import create_app
from backend.auth import service as auth
from backend.db.engine import make_engine, writing
from backend.settings import Settings


@contextmanager
def serving(settings: Settings) -> Iterator[str]:
    """The base URL of a web process with these settings."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(create_app(settings), log_config=None, lifespan="on"))
        ready = threading.Event()
        startup = server.startup

        async def started(sockets: list[socket.socket] | None = None) -> None:
            await startup(sockets)
            ready.set()

        server.startup = started  # type: ignore[method-assign]
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            assert ready.wait(30)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def logged_in(settings: Settings) -> Iterator[httpx.Client]:
    """A client of such a web process, logged in as its owner."""
    engine = make_engine(settings.database)
    with writing(engine) as session:
        token = auth.create_login_link(session)
    engine.dispose()
    with serving(settings) as url, httpx.Client(base_url=url) as client:
        client.get("/login", params={"token": token})
        yield client
