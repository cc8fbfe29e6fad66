"""The web service on a free port, in a thread."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import socket
from threading import Thread
from time import monotonic, sleep
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import Engine

from backend.app import create_app
from backend.artifacts import ArtifactStore
from backend.auth import repository as auth_rows
from backend.auth.service import create_login_link, create_token
from backend.auth.state import AuthState
from backend.db.base import new_id
from backend.db.engine import writing
from backend.http import limits
from backend.http.dependencies import AppState
from backend.principals import Role
from backend.pubsub import bus
from backend.server import WebServer
from backend.settings import Settings
from tests.support.pages import TRUST, page_client
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
    """Ends when it is asked to; uvicorn looks every 0.1 s whether it was, in each of a thousand tests."""

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


class RunningServer:
    """A server in a thread. As a context manager it yields its URL."""

    def __init__(self, settings: Settings) -> None:
        with pytest.MonkeyPatch.context() as patient:
            # A message to Redis that takes longer is lost, or sent again.
            patient.setattr(bus, "TIMEOUT_S", REDIS_TIMEOUT_S)
            self.app = create_app(settings)
        _share_openapi_document(self.app, settings.prefix)
        self._server = _Server(self.app, settings)
        self._thread = Thread(target=lambda: asyncio.run(self._server.serve()), daemon=True)

    def __enter__(self) -> str:
        self._thread.start()
        deadline = monotonic() + PATIENCE_S
        while not self._server.started:
            if monotonic() > deadline or not self._thread.is_alive():
                raise RuntimeError("the service did not start")
            sleep(0.005)
        return f"http://127.0.0.1:{self._server.port}"

    def __exit__(self, *error: object) -> None:
        self._server.end()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "the service does not stop"


class RunningService:
    """A running service. `client` is logged in as the owner, an admin."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._server = RunningServer(settings)
        self.app = self._server.app
        self.app_state: AppState = self.app.state.app_state
        self.auth_state: AuthState = self.app.state.auth_state
        self.url = self._server.__enter__()
        self.client = self.new_client()
        self.client.get("/login", params={"token": self.login_link()})

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

    def new_client(self) -> httpx.Client:
        """A client that is not logged in and sends an `Origin` header, as browsers do."""
        return page_client(self.url)

    def client_as(self, role: Role) -> httpx.Client:
        """A client with a token of this role."""
        with writing(self.engine) as session:
            user = auth_rows.add_user(session, f"{role} {new_id()}", role)
            _, token = create_token(session, user, "test", role, None)
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=PATIENCE_S, verify=TRUST)

    def post_json(self, path: str, body: Any) -> httpx.Response:
        """Post JSON that `httpx` does not encode: NaN, lone surrogates."""
        return self.client.post(
            path, content=json.dumps(body).encode(), headers={"Content-Type": "application/json"}
        )

    def stop(self) -> None:
        """Stop the service as SIGTERM does."""
        self.client.close()
        self._server.__exit__()


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
