"""The attacked installation, and what is measured of it."""

from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from time import monotonic, sleep

import httpx
import psutil

from backend.db.engine import make_engine
from tests.support.installation import Installation
from tests.support.pages import session_headers

MIB = 2**20
MAX_WEB_MIB = 400
MAX_WORKER_MIB = 200
MAX_RECOVERY_S = 10.0
QUICK_S = 2.0
"""A request that takes longer counts as not recovered. The machine may be busy with other things."""


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

    def __str__(self) -> str:
        answers = ", ".join(f"{status} x {count}" for status, count in sorted(self.answers.items()))
        lines = [
            f"{self.name}: {self.seconds:.0f} s, recovered after {self.recovery_s:.1f} s; slowest /healthz "
            f"{self.slowest_health_s:.2f} s; peak of web {self.web_mib:.0f} MiB, of worker "
            f"{self.worker_mib:.0f} MiB; logs grew by {self.log_mib:.2f} MiB",
            f"  answers: {answers or '-'} {self.details}",
        ]
        return "\n".join([*lines, *(f"  PROBLEM {problem}" for problem in self.problems)])


class Target:
    """A running installation with a logged-in client, and its database."""

    def __init__(self, home: Path) -> None:
        self.installation = Installation(home, slots=1)
        self.client = self.installation.log_in()
        self.engine = make_engine(f"sqlite:///{home / 'callboard.sqlite3'}")
        self.home = home

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
        if report.web_mib > MAX_WEB_MIB:
            report.problems.append(f"web used more than {MAX_WEB_MIB} MiB")
        if report.worker_mib > MAX_WORKER_MIB:
            report.problems.append(f"worker used more than {MAX_WORKER_MIB} MiB")
        if report.recovery_s > MAX_RECOVERY_S:
            report.problems.append(f"no quick answers for {report.recovery_s:.0f} s afterwards")
        return report

    def stop(self) -> None:
        """Stop the installation."""
        self.engine.dispose()
        self.installation.stop()

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
