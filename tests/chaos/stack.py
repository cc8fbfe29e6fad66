"""The real processes of a small lab: a database, a Redis, a web process and two worker hosts."""

import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep

import httpx
import psutil

from backend.auth import repository as users
from backend.auth.roles import Role
from backend.auth.service import create_token
from backend.cli.children import processor_waits_s
from backend.db.engine import make_engine, writing
from tests.chaos.databases import Database
from tests.support.installation import CALLBOARD, environment
from tests.support.redis_server import RedisServer

LEASE_S = 3.0
HOSTS = ("alpha", "beta")
WORKER_STOP_LIMIT_S = 12.0
"""The promise is 10 s; the time for which it or its engines wait for a processor is not counted."""


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

    def end(self) -> bool:
        """Ask it to end, and kill it where it takes too long. Whether it was gone in time."""
        process, begun = self.process, monotonic()
        process.terminate()
        before: dict[tuple[int, str], float] = {}
        waits_s: dict[tuple[int, str], float] = {}
        while process.poll() is None:
            for pid in (process.pid, *(engine.pid for engine in self.engines())):
                for thread, wait_s in processor_waits_s(pid).items():
                    before.setdefault((pid, thread), wait_s)
                    waits_s[pid, thread] = wait_s - before[pid, thread]
            longest_s: dict[int, float] = {}
            for (pid, _), wait_s in waits_s.items():
                longest_s[pid] = max(wait_s, longest_s.get(pid, 0.0))
            if monotonic() - begun - sum(longest_s.values()) > WORKER_STOP_LIMIT_S:
                process.kill()
                process.wait()
                return False
            sleep(0.05)
        return True

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
        """End every worker; gives those that took too long."""
        with ThreadPoolExecutor() as threads:
            in_time = list(threads.map(Service.end, self.workers))
        return [worker.name for worker, ended in zip(self.workers, in_time, strict=True) if not ended]

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
