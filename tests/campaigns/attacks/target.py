"""The attacked installation, and what is measured of it."""

import os
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from time import monotonic, sleep
from typing import Any

import httpx
import psutil

from backend.access.auth import repository as auth_rows
from backend.access.auth.service import create_token
from backend.analysis.metrics import repository as metrics
from backend.db.engine import make_engine, writing
from backend.platform.principals import Role
from backend.runs.runs import service as runs_service
from backend.specs.events import PointsEvent
from backend.specs.states import RunState
from tests.campaigns.attacks.users import Sample, Users, p95_s, summary
from tests.support.installation import Installation
from tests.support.pages import session_headers
from tests.support.rows import make_run

MIB = 2**20
LOOP = Path(__file__).with_name("loop")
"""Where the program is that measures the web process's event loop."""
MAX_WEB_MIB = 400
MAX_WORKER_MIB = 200
MAX_RECOVERY_S = 10.0
QUICK_S = 2.0
"""A request that takes longer counts as not recovered. The machine may be busy with other things."""
MAX_USERS_P95_S = 1.0


@dataclass
class Report:
    """What one attack did."""

    name: str
    answers: Counter[str] = field(default_factory=Counter)
    """Number of answers by status; `none` for requests without one."""
    seconds: float = 0.0
    recovery_s: float = 0.0
    slowest_health_s: float = 0.0
    web_mib: float = 0.0
    worker_mib: float = 0.0
    log_mib: float = 0.0
    problems: list[str] = field(default_factory=list)
    details: str = ""
    writes_must_wait: bool = False
    """Whether the attack is a fault of the database, so that writes are refused while it lasts."""
    users: list[Sample] = field(default_factory=list)
    """The requests of the users meanwhile."""

    def __str__(self) -> str:
        answers = ", ".join(f"{status} x {count}" for status, count in sorted(self.answers.items()))
        lines = [
            f"{self.name}: {self.seconds:.0f} s, recovered after {self.recovery_s:.1f} s; slowest /healthz "
            f"{self.slowest_health_s:.2f} s; peak of web {self.web_mib:.0f} MiB, of worker "
            f"{self.worker_mib:.0f} MiB; logs grew by {self.log_mib:.2f} MiB",
            f"  answers: {answers or '-'} {self.details}",
            *([f"  {summary(self.users)}"] if self.users else []),
        ]
        return "\n".join([*lines, *(f"  PROBLEM {problem}" for problem in self.problems)])


class Target:
    """A running installation with a logged-in client, its database, and users who work with it meanwhile.

    Args:
        home: its home directory, which does not exist.
        short: whether long attacks take a quarter of their time.
        n_users: number of users.
    """

    def __init__(self, home: Path, *, short: bool = False, n_users: int = 0) -> None:
        self._slow_callbacks = home.with_name("slow-callbacks.txt")
        os.environ["SLOW_CALLBACKS"] = str(self._slow_callbacks)
        paths = [str(LOOP), *filter(None, [os.environ.get("PYTHONPATH")])]
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
        self.installation = Installation(home, slots=1)
        self.client = self.installation.log_in()
        self.engine = make_engine(f"sqlite:///{home / 'callboard.sqlite3'}")
        self.home = home
        self.short = short
        self.has_many_runs = False
        scopes = {
            "viewer": ("viewer", None),
            "operator": ("operator", None),
            "external": ("operator", "external_runs"),
        }
        self.tokens = {
            name: self._token({"name": name, "role": role, "scope": scope})
            for name, (role, scope) in scopes.items()
        }
        """Token by what it may do; each is of the owner, but `another`."""
        self.tokens["another"] = self._token_of_another("another")
        self.run_id = make_run(self.engine, RunState.FAILED).id
        """A run that nobody else changes."""
        self.users = self._start_users(n_users) if n_users else None

    def _token(self, request: dict[str, Any]) -> str:
        answer = self.client.post("/api/v1/tokens", json=request)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["token"])

    def _token_of_another(self, name: str) -> str:
        with writing(self.engine) as session:
            user = auth_rows.add_user(session, name, Role.OPERATOR)
            _, token = create_token(session, user, "campaign", Role.OPERATOR, None)
        return token

    def _start_users(self, n: int) -> Users:
        tokens, runs = [], []
        at = list(range(2_000))
        rest = {"agent_steps": at, "frames": at, "episodes": at, "wall_time_s": [float(step) for step in at]}
        points = PointsEvent(metric="flood/0000", value=[0.5] * len(at), **rest)
        for number in range(n):
            run = make_run(self.engine, RunState.FAILED)
            tokens.append(self._token_of_another(f"user {number}"))
            with writing(self.engine) as session:
                metrics.append(session, run.id, 1, runs_service.bump_revision(session, run.id), [points])
            runs.append(run.id)
        return Users(self.url, tokens, runs, self.home.with_name("users.txt"))

    @property
    def url(self) -> str:
        """Where it listens."""
        return self.installation.url

    @property
    def session_headers(self) -> dict[str, str]:
        """The headers of the client's session."""
        return session_headers(self.client)

    def process(self, name: str) -> psutil.Process:
        """A process of the installation."""
        return self.installation.children()[name]

    def status_of(
        self,
        method: str,
        path: str,
        timeout_s: float = 60.0,
        *,
        headers: Mapping[str, str] | None = None,
        json: object = None,
        params: Mapping[str, str] | None = None,
    ) -> str:
        """Send a request on a connection of its own, as the owner. The status, or `none`."""
        sent = {"Origin": self.url, **self.session_headers, **(headers or {})}
        with suppress(httpx.HTTPError):
            answer = httpx.request(
                method, f"{self.url}{path}", headers=sent, timeout=timeout_s, json=json, params=params
            )
            return str(answer.status_code)
        return "none"

    def at_once(self, n: int, request: Callable[[int], str]) -> Counter[str]:
        """Send many requests at the same time."""
        with ThreadPoolExecutor(n) as threads:
            return Counter(threads.map(request, range(n)))

    def run(self, name: str, attack: Callable[["Target", Report], None]) -> Report:
        """Run an attack, and measure the service during and after it."""
        report = Report(name)
        web, worker = self.process("web"), self.process("worker")
        for process in (web, worker):
            _reset_peak(process)
        log_bytes = self._log_bytes()
        self._take_callbacks()
        done = Event()
        health = Thread(target=self._watch_health, args=(done, report), daemon=True)
        health.start()
        started = monotonic()
        attack(self, report)
        ended = monotonic()
        report.seconds = ended - started
        while (recovery_s := monotonic() - ended) < 60 and not self._is_quick():
            sleep(0.2)
        report.recovery_s = recovery_s
        done.set()
        health.join()
        report.log_mib = (self._log_bytes() - log_bytes) / MIB
        ended_processes = [
            name for name, process in (("web", web), ("worker", worker)) if not process.is_running()
        ]
        if ended_processes:
            report.problems.append(f"restarted: {', '.join(ended_processes)}")
        else:
            report.web_mib, report.worker_mib = _peak_mib(web), _peak_mib(worker)
        report.problems += [f"a callback of the event loop took {line}" for line in self._take_callbacks()]
        if self.users is not None:
            report.users = [sample for sample in self.users.samples(started) if sample.began_s < ended]
            counted = [sample for sample in report.users if not (report.writes_must_wait and sample.is_write)]
            if (p95 := p95_s(counted)) > MAX_USERS_P95_S:
                report.problems.append(f"the users' requests took {p95:.2f} s (p95)")
        if report.web_mib > MAX_WEB_MIB:
            report.problems.append(f"web used more than {MAX_WEB_MIB} MiB")
        if report.worker_mib > MAX_WORKER_MIB:
            report.problems.append(f"worker used more than {MAX_WORKER_MIB} MiB")
        if report.recovery_s > MAX_RECOVERY_S:
            report.problems.append(f"no quick answers for {report.recovery_s:.0f} s afterwards")
        return report

    def stop(self) -> None:
        """Stop the users and the installation."""
        if self.users is not None:
            self.users.stop()
        self.engine.dispose()
        self.installation.stop()

    def _take_callbacks(self) -> list[str]:
        """The callbacks of the web process's event loop that took long, once each."""
        try:
            lines = self._slow_callbacks.read_text().splitlines()
        except FileNotFoundError:
            return []
        self._slow_callbacks.unlink()
        return lines

    def _is_quick(self) -> bool:
        started = monotonic()
        statuses = {self.status_of("GET", path, 5.0) for path in ("/healthz", "/readyz", "/api/v1/runs")}
        return statuses == {"200"} and monotonic() - started < QUICK_S

    def _watch_health(self, done: Event, report: Report) -> None:
        while not done.wait(0.5):
            started = monotonic()
            if self.status_of("GET", "/healthz", 60.0) != "200":
                report.problems.append("/healthz was not answered")
            report.slowest_health_s = max(report.slowest_health_s, monotonic() - started)

    def _log_bytes(self) -> int:
        return sum(file.stat().st_size for file in (self.home / "logs").glob("*.log"))


def _reset_peak(process: psutil.Process) -> None:
    with suppress(OSError):
        Path(f"/proc/{process.pid}/clear_refs").write_text("5")


def _peak_mib(process: psutil.Process) -> float:
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0
