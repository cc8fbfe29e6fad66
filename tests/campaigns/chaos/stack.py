"""The processes of a small installation: a database, Redis, a web process and two worker hosts."""

import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep

import httpx
import psutil

from backend.access.auth import repository as users
from backend.access.auth.service import create_token
from backend.db.engine import make_engine, writing
from backend.platform.principals import Role
from callboard_cli.children import cpu_waits_s
from tests.campaigns.chaos.databases import Database
from tests.support.installation import CALLBOARD, environment
from tests.support.redis_server import RedisServer
from tests.workers.fake_engine import flip_bit
from workers.host_files import COMPRESSED, decompress

LEASE_S = 3.0
UNAVAILABLE = "unavailable"
"""A plain file in place of the artifact store's folder."""
HOSTS = ("alpha", "beta")
WORKER_STOP_LIMIT_S = 30.0
"""Documented: 10 s, but a slow machine computes and writes for longer, and a hanging worker never ends. The
time that the worker and its engines wait for a processor is not counted."""


class Service:
    """A process that is restarted when it dies, as `callboard up` or a container runtime would."""

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
        """Held while a fault freezes or ends the process."""
        self.process = self._start()

    def tend(self) -> None:
        """Restart the process if it has died."""
        if self.process.poll() is not None:
            self.process = self._start()

    def end(self) -> bool:
        """Send SIGTERM, then SIGKILL if it takes too long. Return whether it ended in time."""
        process, started_at = self.process, monotonic()
        process.terminate()
        before: dict[tuple[int, str], float] = {}
        waits_s: dict[tuple[int, str], float] = {}
        while process.poll() is None:
            for pid in (process.pid, *(engine.pid for engine in self.engines())):
                for thread, wait_s in cpu_waits_s(pid).items():
                    before.setdefault((pid, thread), wait_s)
                    waits_s[pid, thread] = wait_s - before[pid, thread]
            longest_s: dict[int, float] = {}
            for (pid, _), wait_s in waits_s.items():
                longest_s[pid] = max(wait_s, longest_s.get(pid, 0.0))
            if monotonic() - started_at - sum(longest_s.values()) > WORKER_STOP_LIMIT_S:
                process.kill()
                process.wait()
                return False
            sleep(0.05)
        return True

    def engines(self) -> list[psutil.Process]:
        """The engine processes that it has started."""
        return self._children("--attempt")

    def engine_servers(self) -> list[psutil.Process]:
        """Its engine server; empty before it is started."""
        return self._children("serve")

    def _children(self, argument: str) -> list[psutil.Process]:
        with suppress(psutil.Error):
            children = psutil.Process(self.process.pid).children()
            # An engine's command line is one text.
            return [child for child in children if argument in " ".join(child.cmdline()).split()]
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


def repair_logs(folder: Path, damage: Mapping[Path, Sequence[int]]) -> None:
    """Decompress every event log below a folder, and flip every damaged bit back.

    Workers compress recorded logs while a disk is full.
    """
    for compressed in folder.rglob(f"events.log{COMPRESSED}"):
        decompress(compressed)
    for path, places in damage.items():
        for place in places:
            flip_bit(path, place)


class Stack:
    """All processes, running; `close` ends them in order."""

    def __init__(self, folder: Path, database: Database, worker: Sequence[str]) -> None:
        self.folder = folder
        self.database = database
        self.disturbed = threading.Lock()
        """Held while a fault disturbs the database or Redis."""
        self.redis = RedisServer(folder)
        self.redis.start()
        self.engine = make_engine(database.url)
        self.damage: dict[Path, list[int]] = {}
        """By event log, the places of the bytes in which a fault has flipped a bit."""
        self._artifacts = folder / "artifacts"
        (folder / "artifact-files").mkdir()
        (folder / UNAVAILABLE).touch()
        self._link_artifacts("artifact-files")
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        fd = self._listener.fileno()
        self.web = Service(
            "web", [*CALLBOARD, "web", "--fd", str(fd)], self.given("web"), folder / "web.log", [fd]
        )
        self._worker = worker
        self.workers = [self.start_worker(host) for host in HOSTS]
        with writing(self.engine) as session:
            user = users.add_user(session, "chaos", Role.OPERATOR)
            _, token = create_token(session, user, "chaos", Role.OPERATOR, None)
        self._client = httpx.Client(
            base_url=f"{self.url}/api/v1", headers={"Authorization": f"Bearer {token}"}, timeout=3.0
        )

    def start_worker(self, host: str, home: str | None = None) -> Service:
        """Start a worker on a host, which may have one already, in another home."""
        given = self.given(host, home)
        return Service(f"worker {host}", self._worker, given, self.folder / f"{host}.log")

    @contextmanager
    def without_artifacts(self) -> Iterator[None]:
        """Make the artifact store unavailable."""
        self._link_artifacts(UNAVAILABLE)
        try:
            yield
        finally:
            self._link_artifacts("artifact-files")

    def repair_logs(self) -> None:
        """Make the event logs show what the engines wrote."""
        repair_logs(self.folder, self.damage)

    def given(self, host: str, home: str | None = None) -> dict[str, str]:
        """The environment variables of a process on a host."""
        folder = self.folder / (home or host)
        folder.mkdir(exist_ok=True)
        return environment(
            folder,
            database_url=self.database.url,
            redis_url=self.redis.url,
            artifacts_url=self._artifacts.as_uri(),
            host_name=host,
            slots=2,
            lease_s=LEASE_S,
            reconcile_interval_s=0.5,
            log_format="json",
        )

    def ask(self, method: str, path: str, body: object = None) -> httpx.Response | None:
        """Send a user's request. Return None when there was no response in time."""
        try:
            return self._client.request(method, path, json=body)
        except httpx.HTTPError:
            return None

    def stream(self, path: str) -> AbstractContextManager[httpx.Response]:
        """A user's request whose response is read in parts."""
        return self._client.stream("GET", path)

    def tend(self) -> None:
        """Restart every service that has died."""
        for service in (self.web, *self.workers):
            service.tend()

    def stop_workers(self) -> list[str]:
        """Stop every worker. Return the names of those that took too long."""
        with ThreadPoolExecutor() as threads:
            in_time = list(threads.map(Service.end, self.workers))
        return [worker.name for worker, ended in zip(self.workers, in_time, strict=True) if not ended]

    def orphans(self) -> list[str]:
        """Return the processes of our hosts that still run although no worker does."""
        homes = {str(worker.home) for worker in self.workers}
        lines = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                mine = process.environ().get("CALLBOARD_HOME") in homes
                if mine and process.status() != psutil.STATUS_ZOMBIE:
                    lines.append(f"{process.pid} {' '.join(process.cmdline())}")
        return lines

    def close(self) -> None:
        """Stop the remaining processes."""
        for service in (self.web, *self.workers):
            service.process.kill()
            service.process.wait()
        self._client.close()
        self._listener.close()
        self.engine.dispose()
        self.redis.stop()

    def _link_artifacts(self, target: str) -> None:
        link = self.folder / "artifacts.new"
        link.symlink_to(self.folder / target)
        link.replace(self._artifacts)


@contextmanager
def running_stack(
    folder: Path, make_database: Callable[[Path], Database], worker: Sequence[str] = (*CALLBOARD, "worker")
) -> Iterator[Stack]:
    """Run a stack on a new database, with this command as workers."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    database = make_database(folder)
    stack = Stack(folder, database, worker)
    try:
        yield stack
    finally:
        stack.close()
        database.close()
