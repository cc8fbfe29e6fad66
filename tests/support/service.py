"""The web service on a port of its own, in a thread."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from typing import Any

import httpx
from sqlalchemy import Engine

from backend.app import create_app
from backend.artifacts import ArtifactStore
from backend.auth import repository as auth_rows
from backend.auth.roles import Role
from backend.auth.service import create_login_link, create_token
from backend.db.engine import writing
from backend.db.ids import new_id
from backend.dependencies import Parts
from backend.server import Server
from backend.settings import Settings


class RunningServer:
    """A server in a thread; as a context, its URL. It connects to nothing by itself."""

    def __init__(self, settings: Settings) -> None:
        self.app = create_app(settings)
        self._server = Server(self.app, settings)
        self._thread = Thread(target=lambda: asyncio.run(self._server.serve()))

    def __enter__(self) -> str:
        self._thread.start()
        deadline = monotonic() + 20
        while not self._server.started:
            if monotonic() > deadline or not self._thread.is_alive():
                raise RuntimeError("the service did not start")
            sleep(0.005)
        return f"http://127.0.0.1:{self._server.port}"

    def __exit__(self, *error: object) -> None:
        self._server.should_exit = True
        self._thread.join()


class RunningService:
    """A running service; `client` is logged in as the owner, an admin."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._server = RunningServer(settings)
        self.app = self._server.app
        self.parts: Parts = self.app.state.parts
        self.url = self._server.__enter__()
        self.client = self.new_client()
        with writing(self.engine) as session:
            token = create_login_link(session)
        self.client.get("/login", params={"token": token})

    @property
    def engine(self) -> Engine:
        """The service's own engine."""
        return self.parts.engine

    @property
    def artifacts(self) -> ArtifactStore:
        """The service's artifact store."""
        return self.parts.artifacts

    def new_client(self) -> httpx.Client:
        """A browser that has not logged in; it says where its requests come from, as browsers do."""
        return httpx.Client(base_url=self.url, headers={"Origin": self.url}, timeout=30)

    def client_as(self, role: Role) -> httpx.Client:
        """A script with a token of this role."""
        with writing(self.engine) as session:
            user = auth_rows.add_user(session, f"{role} {new_id()}", role)
            _, token = create_token(session, user, "test", role, None)
        return httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {token}"}, timeout=30)

    def post_json(self, path: str, body: Any) -> httpx.Response:
        """Post what `httpx` itself would refuse to encode: NaN, halves of surrogate pairs."""
        return self.client.post(
            path, content=json.dumps(body).encode(), headers={"Content-Type": "application/json"}
        )

    def stop(self) -> None:
        """End the service, as SIGTERM would."""
        self.client.close()
        self._server.__exit__()


@contextmanager
def running_service(database_url: str, redis_url: str, home: Path) -> Iterator[RunningService]:
    """A service on a migrated database."""
    service = RunningService(Settings(home=home, database_url=database_url, redis_url=redis_url, port=0))
    try:
        yield service
    finally:
        service.stop()
