"""The web service, in this process."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from socket import SO_REUSEADDR, SOL_SOCKET, socket
from threading import Thread
from time import monotonic, sleep
from typing import Any, Self

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import Engine
from starlette.testclient import TestClient

from backend.access.auth import repository as auth_rows
from backend.access.auth.service import Browser, create_login_link, create_token, log_in_by_link
from backend.access.auth.state import AuthState
from backend.app import create_app
from backend.db.base import new_id
from backend.db.engine import writing
from backend.http import limits
from backend.http.dependencies import PAGE_SECRET_HEADER, AppState
from backend.platform.artifacts import ArtifactStore
from backend.platform.principals import Role
from backend.platform.settings import Settings
from backend.pubsub import bus
from backend.server import WebServer
from tests.support.pages import as_page, session_cookie
from tests.support.waiting import PATIENCE_S

# As in tests/conftest.py: requests wait for the write lock as long as tests wait for them.
limits.WRITE_TIMEOUT_S = PATIENCE_S


def created_run(answer: httpx.Response) -> dict[str, Any]:
    """The run of a `POST /runs` that created one."""
    assert answer.status_code == 201, answer.text
    run: dict[str, Any]
    [run] = answer.json()["items"]
    return run


REDIS_TIMEOUT_S = 3.0
"""Of the service's messages to Redis, in place of `bus.TIMEOUT_S`: a busy machine answers late."""


_openapi_documents: dict[str, dict[str, Any]] = {}
"""By base path, on which alone a document depends."""


def _share_openapi_document(app: FastAPI, prefix: str) -> None:
    """Have `app` give the document of the first service with its base path: a new one takes a second."""
    create = app.openapi

    def shared() -> dict[str, Any]:
        if prefix not in _openapi_documents:
            _openapi_documents[prefix] = create()
        return _openapi_documents[prefix]

    app.openapi = shared  # type: ignore[method-assign]


class _Server(WebServer):
    """Ends when it is asked to; uvicorn looks every 0.1 s whether it was."""

    async def startup(self, sockets: list[socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._ending = asyncio.Event()
        await super().startup(sockets)

    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self._ending.wait()

    def end(self) -> None:
        """Shut down, as after SIGTERM; nothing if it has."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._ending.set)


def _create_app(settings: Settings) -> FastAPI:
    with pytest.MonkeyPatch.context() as patient:
        # A message to Redis that takes longer is lost, or sent again.
        patient.setattr(bus, "TIMEOUT_S", REDIS_TIMEOUT_S)
        app = create_app(settings)
    _share_openapi_document(app, settings.prefix)
    return app


def _await_start(server: WebServer, is_running: Callable[[], bool]) -> None:
    deadline = monotonic() + PATIENCE_S
    while not server.started:
        if monotonic() > deadline or not is_running():
            raise RuntimeError("the service did not start")
        sleep(0.005)


class RunningServer:
    """A server in a thread. As a context manager it yields its URL."""

    def __init__(self, settings: Settings) -> None:
        self._server = _Server(_create_app(settings), settings)
        self._thread = Thread(target=lambda: asyncio.run(self._server.serve()), daemon=True)

    def __enter__(self) -> str:
        self._thread.start()
        _await_start(self._server, self._thread.is_alive)
        return f"http://127.0.0.1:{self._server.port}"

    def __exit__(self, *error: object) -> None:
        self._server.end()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "the service does not stop"


class _Client(TestClient):
    """A client of an application that runs already: as a context manager it closes itself alone."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class RunningService:
    """The web service in this process. `client` is logged in as the owner, an admin.

    Clients call the application itself. Who asks for `url` gets a server there, which serves the same
    application in the same event loop: for streams that nobody reads, WebSockets, limits of connections, and
    other processes.

    Args:
        settings: of the application; port 0 is any free one.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.app = _create_app(settings)
        self.app_state: AppState = self.app.state.app_state
        self.auth_state: AuthState = self.app.state.auth_state
        self._open = ExitStack()
        self._socket = self._open.enter_context(socket())
        self._socket.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        self._socket.bind((settings.host, settings.port))
        self.address = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        """What requests are addressed to, whether a server listens there or not."""
        self._portal = self._open.enter_context(TestClient(self.app)).portal
        self.client = self.new_client()
        self._log_in()

    def _log_in(self) -> None:
        """Log `client` in; over HTTP, each test would take as long again."""
        with writing(self.engine) as session:
            opened = log_in_by_link(session, create_login_link(session), Browser("127.0.0.1", "tests"))
        assert opened is not None
        _, secrets = opened
        self.client.cookies.set(session_cookie(self.address), secrets.cookie, domain="127.0.0.1")
        self.client.headers[PAGE_SECRET_HEADER] = secrets.page

    @cached_property
    def url(self) -> str:
        """The address of a server, which starts with the first use."""
        server = _Server(self.app, self.settings)
        server.config.lifespan = "off"  # the application runs
        assert self._portal is not None
        serving = self._portal.start_task_soon(server.serve, [self._socket])
        _await_start(server, lambda: not serving.done())
        self._open.callback(serving.result, PATIENCE_S)
        self._open.callback(server.end)
        return self.address

    @property
    def engine(self) -> Engine:
        """The service's database engine."""
        return self.app_state.db_engine

    @property
    def artifacts(self) -> ArtifactStore:
        """The service's artifact store."""
        return self.app_state.artifacts

    def login_link(self) -> str:
        """The token of a login link of the owner."""
        with writing(self.engine) as session:
            return create_login_link(session)

    def _client(self, **headers: str) -> Any:
        """Starlette's client: one of `httpx2`, which has the interface of `httpx`."""
        client = _Client(
            self.app,
            base_url=self.address,
            headers=headers,
            raise_server_exceptions=False,
            follow_redirects=False,
            client=("127.0.0.1", 50_000),
        )
        client.portal = self._portal
        return client

    def new_client(self) -> httpx.Client:
        """A client that is not logged in and sends an `Origin` header, as browsers do."""
        return as_page(self._client())

    def client_as(self, role: Role) -> httpx.Client:
        """A client with a token of this role."""
        with writing(self.engine) as session:
            user = auth_rows.add_user(session, f"{role} {new_id()}", role)
            _, token = create_token(session, user, "test", role, None)
        return self.client_with(token)

    def client_with(self, token: str) -> httpx.Client:
        """A client that sends a token."""
        client: httpx.Client = self._client(Authorization=f"Bearer {token}")
        return client

    def post_json(self, path: str, body: Any) -> httpx.Response:
        """Post JSON that `httpx` does not encode: NaN, lone surrogates."""
        return self.client.post(
            path, content=json.dumps(body).encode(), headers={"Content-Type": "application/json"}
        )

    def stop(self) -> None:
        """Stop the service as SIGTERM does."""
        self.client.close()
        self._open.close()


@contextmanager
def running_service(
    database_url: str, redis_url: str, home: Path, **settings: Any
) -> Iterator[RunningService]:
    """Run a service on a migrated database."""
    service = RunningService(
        Settings(home=home, database_url=database_url, redis_url=redis_url, port=0, **settings)
    )
    try:
        yield service
    finally:
        service.stop()
