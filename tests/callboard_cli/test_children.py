import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from callboard_cli import children
from callboard_cli.children import ServiceProcess, cpu_waits_s
from tests.support.waiting import until

pytestmark = pytest.mark.service

SLEEPS = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]
SPINS = [sys.executable, "-S", "-c", "while True: pass"]


class Clock:
    """A fake of the parent's clock and of its children's waiting time for a processor."""

    def __init__(self) -> None:
        self.now = 100.0
        self.contended = False
        self.waits_s = 0.0

    def monotonic(self) -> float:
        return self.now

    def cpu_waits_s(self, pid: int) -> dict[str, float]:
        return {"1": self.waits_s, "2": 0.0}

    def tend(self, child: ServiceProcess, for_s: float) -> None:
        """Tend a child every 0.1 s for `for_s` seconds."""
        for _ in range(round(10 * for_s)):
            self.now += 0.1
            self.waits_s += 0.1 if self.contended else 0.0
            child.check()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(children, "monotonic", clock.monotonic)
    monkeypatch.setattr(children, "cpu_waits_s", clock.cpu_waits_s)
    return clock


@pytest.fixture
def child(tmp_path: Path, clock: Clock) -> Iterator[Callable[..., ServiceProcess]]:
    """Return a function that starts children with a patience of 10 s; end them afterwards."""
    children_started: list[ServiceProcess] = []

    def start(
        healthy: Callable[[], bool], on_restart: Callable[[str, str], None] = lambda name, reason: None
    ) -> ServiceProcess:
        child = ServiceProcess(
            "sleeper",
            SLEEPS,
            environment={},
            log_file=tmp_path / "log",
            healthy=healthy,
            unhealthy_timeout_s=10.0,
            on_restart=on_restart,
        )
        child.start()
        children_started.append(child)
        return child

    yield start
    for started in children_started:
        started.wait(0.0)


def _replaced(clock: Clock, child: ServiceProcess, first: int | None) -> bool:
    clock.tend(child, 0.1)
    return child.pid not in (first, None)


def test_unhealthy_child_is_restarted_after_its_patience(
    child: Callable[..., ServiceProcess], clock: Clock
) -> None:
    restarts: list[tuple[str, str]] = []
    unhealthy = child(lambda: False, lambda *restart: restarts.append(restart))
    first = unhealthy.pid
    clock.tend(unhealthy, 9)
    assert unhealthy.pid == first
    until(lambda: _replaced(clock, unhealthy, first))
    assert unhealthy.exit_status is None
    assert restarts == [("sleeper", "it did not respond")]


def test_healthy_answer_resets_patience(child: Callable[..., ServiceProcess], clock: Clock) -> None:
    answers: list[bool] = []

    def every_other_time() -> bool:
        answers.append(len(answers) % 2 == 1)
        return answers[-1]

    slow = child(every_other_time)
    first = slow.pid
    clock.tend(slow, 60)
    assert slow.pid == first
    assert len(answers) > 2


def test_one_failed_check_long_after_the_one_before_does_not_exhaust_patience(
    child: Callable[..., ServiceProcess], clock: Clock
) -> None:
    answers = iter([False])
    paused = child(lambda: next(answers, True))
    first = paused.pid
    clock.now += 60.0
    clock.tend(paused, 12)
    assert next(answers, None) is None
    assert paused.pid == first


@pytest.mark.long
def test_time_waiting_for_processor_does_not_count_against_patience(
    child: Callable[..., ServiceProcess], clock: Clock
) -> None:
    # The load of the machine cannot be set by a test, so the kernel's accounting is replaced.
    starved = child(lambda: False)
    first = starved.pid
    clock.contended = True
    clock.tend(starved, 60)
    assert starved.pid == first
    clock.contended = False
    until(lambda: _replaced(clock, starved, first))


def test_restart_that_fails_is_tried_again(tmp_path: Path, clock: Clock) -> None:
    logs = tmp_path / "logs"
    child = ServiceProcess("sleeper", SLEEPS, environment={}, log_file=logs / "sleeper.log")
    child.start()
    first = child.pid
    assert first is not None
    logs.rename(tmp_path / "moved")
    logs.touch()  # in the place of the folder: it cannot be created
    os.kill(first, signal.SIGKILL)
    until(lambda: child.pid is None)
    clock.tend(child, 5)
    assert child.pid is None
    logs.unlink()
    try:
        until(lambda: _replaced(clock, child, first))
    finally:
        child.wait(0.0)


def test_cpu_waits_s_grows_under_contention_and_is_empty_after_exit() -> None:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})  # its children share one processor
    try:
        competitors = [subprocess.Popen(SPINS) for _ in range(2)]
    finally:
        os.sched_setaffinity(0, before)
    try:
        until(lambda: sum(cpu_waits_s(competitors[0].pid).values()) > 0.1)
        assert list(cpu_waits_s(competitors[0].pid)) == [str(competitors[0].pid)]
    finally:
        for process in competitors:
            process.send_signal(signal.SIGKILL)
            process.wait()
    assert cpu_waits_s(competitors[0].pid) == {}


def test_log_is_rotated_while_the_child_writes(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "MAX_LOG_BYTES", 10_000)
    program = (
        "import sys, time\nwhile True: sys.stdout.write('line\\n' * 200); sys.stdout.flush(); time.sleep(.01)"
    )
    log_file = tmp_path / "web.log"
    child = ServiceProcess("writer", [sys.executable, "-S", "-c", program], environment={}, log_file=log_file)
    child.start()
    try:
        for _ in range(2):
            until(lambda: log_file.stat().st_size > children.MAX_LOG_BYTES)
            before = log_file.stat().st_size
            clock.tend(child, 6.0)
            rotated = tmp_path / "web.1.log"
            assert rotated.stat().st_size >= before
            assert rotated.read_text().startswith("line\n")
            # The child goes on at the start of the emptied file.
            until(lambda: log_file.read_bytes().strip(b"\0").startswith(b"line\n"))
            assert not log_file.read_bytes().startswith(b"\0")
    finally:
        child.wait(0.0)
