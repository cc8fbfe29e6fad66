"""The real processes of a small lab: a database, a Redis, a web process and two worker hosts."""

import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import psutil

from backend.auth import repository as users
from backend.auth.roles import Role
from backend.auth.service import create_token
from backend.db.engine import make_engine, writing
from tests.chaos.databases import Database
from tests.support.installation import CALLBOARD, environment
from tests.support.redis_server import RedisServer

LEASE_S = 3.0
HOSTS = ("alpha", "beta")
WORKER_STOP_LIMIT_S = 15.0
"""The promise is 10 s; chaos crowds the machine."""


class Service:
    """A process of ours that someone starts again when it dies, as `callboard up` or a container would."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        given: dict[str, str],
        log: Path,
        pass_fds: Sequence[int] = (),
    ) -> None:
        self.name = name
        self.home = Path(given["CALLBOARD_HOME"])
        self._command = command
        self._given = given
        self._log = log
        self._pass_fds = pass_fds
        self.paused = threading.Lock()
        """Held by who freezes or ends it, one at a time."""
        self.process = self._start()

    def tend(self) -> None:
        """Start it again if it has died."""
        if self.process.poll() is not None:
            self.process = self._start()

    def engines(self) -> list[psutil.Process]:
        """The engines it has started."""
        with suppress(psutil.Error):
            children = psutil.Process(self.process.pid).children()
            return [child for child in children if "--attempt" in child.cmdline()]
        return []

    def _start(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as output:
            return subprocess.Popen(
                self._command,
                env=self._given,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=self._pass_fds,
            )


class Stack:
    """Everything, running; `close` ends it in order."""

    def __init__(self, folder: Path, database: Database, worker: Sequence[str]) -> None:
        self.folder = folder
        self.database = database
        self.disturbed = threading.Lock()
        """Held by who disturbs the database or Redis, one at a time."""
        self.redis = RedisServer(folder)
        self.redis.start()
        self.engine = make_engine(database.url)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        fd = self._listener.fileno()
        self.web = Service(
            "web", [*CALLBOARD, "web", "--fd", str(fd)], self._given("web"), folder / "web.log", [fd]
        )
        self.workers = [
            Service(f"worker {host}", worker, self._given(host), folder / f"{host}.log") for host in HOSTS
        ]
        with writing(self.engine) as session:
            user = users.add_user(session, "chaos", Role.OPERATOR)
            _, token = create_token(session, user, "chaos", Role.OPERATOR, None)
        self._client = httpx.Client(
            base_url=f"{self.url}/api/v1", headers={"Authorization": f"Bearer {token}"}, timeout=3.0
        )

    def ask(self, method: str, path: str, body: object = None) -> httpx.Response | None:
        """A request of a user's; none where nothing answered in time."""
        try:
            return self._client.request(method, path, json=body)
        except httpx.HTTPError:
            return None

    def tend(self) -> None:
        """Start again what has died."""
        for service in (self.web, *self.workers):
            service.tend()

    def stop_workers(self) -> list[str]:
        """Ask every worker to end; gives those that took too long."""
        late = []
        for worker in self.workers:
            worker.process.terminate()
        for worker in self.workers:
            try:
                worker.process.wait(WORKER_STOP_LIMIT_S)
            except subprocess.TimeoutExpired:
                late.append(worker.name)
                worker.process.kill()
                worker.process.wait()
        return late

    def orphans(self) -> list[str]:
        """What still runs of our hosts although no worker does."""
        homes = {str(worker.home) for worker in self.workers}
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                mine = process.environ().get("CALLBOARD_HOME") in homes
                if mine and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(f"{process.pid} {' '.join(process.cmdline())}")
        return found

    def close(self) -> None:
        """End what is left."""
        for service in (self.web, *self.workers):
            service.process.kill()
            service.process.wait()
        self._client.close()
        self._listener.close()
        self.engine.dispose()
        self.redis.stop()

    def _given(self, host: str) -> dict[str, str]:
        home = self.folder / host
        home.mkdir()
        return environment(
            home,
            database_url=self.database.url,
            redis_url=self.redis.url,
            artifacts_url=(self.folder / "artifacts").as_uri(),
            host_name=host,
            slots=2,
            lease_s=LEASE_S,
            reconcile_interval_s=0.5,
            log_format="json",
        )


@contextmanager
def running_stack(
    folder: Path, make_database: Callable[[Path], Database], worker: Sequence[str] = (*CALLBOARD, "worker")
) -> Iterator[Stack]:
    """A stack on a new database, with workers of this command; ended afterwards."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    database = make_database(folder)
    stack = Stack(folder, database, worker)
    try:
        yield stack
    finally:
        stack.close()
        database.close()
