import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic, sleep

import pytest

from backend.cli import children
from backend.cli.children import Child, processor_waits_s
from tests.workers.support import until

SLEEPS = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]
SPINS = [sys.executable, "-S", "-c", "while True: pass"]


@pytest.fixture
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Child]]:
    """Starts children that are asked often; ends them."""
    monkeypatch.setattr(children, "_ASK_INTERVAL_S", 0.02)
    made: list[Child] = []

    def make(healthy: Callable[[], bool], patience_s: float = 0.3) -> Child:
        child = Child(
            "sleeper",
            SLEEPS,
            environment={},
            log_file=tmp_path / "log",
            healthy=healthy,
            patience_s=patience_s,
        )
        child.start()
        made.append(child)
        return child

    yield make
    for one in made:
        one.end(0.0)


def _tended(child: Child, until_other_than: int | None) -> bool:
    child.tend()
    return child.pid not in (until_other_than, None)


def test_a_child_that_does_not_answer_is_started_again(child: Callable[..., Child]) -> None:
    deaf = child(lambda: False)
    first, begun = deaf.pid, monotonic()
    until(lambda: _tended(deaf, first), 20)
    assert monotonic() - begun >= 0.3
    assert deaf.exit_status is None


def test_one_answer_and_its_patience_begins_anew(child: Callable[..., Child]) -> None:
    asked: list[bool] = []

    def every_other_time() -> bool:
        asked.append(len(asked) % 2 == 1)
        return asked[-1]

    slow = child(every_other_time, patience_s=1.0)
    first, begun = slow.pid, monotonic()
    while monotonic() - begun < 1.5:
        slow.tend()
        assert slow.pid == first
        sleep(0.01)
    assert len(asked) > 2


def test_time_without_a_processor_is_not_held_against_it(
    child: Callable[..., Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    # How crowded the machine is cannot be arranged here: the kernel's account is stood in for.
    crowded = True
    waits_s = 0.0
    looked_at = monotonic()

    def account(pid: int) -> dict[str, float]:
        nonlocal waits_s, looked_at
        now = monotonic()
        waits_s += now - looked_at if crowded else 0.0
        looked_at = now
        return {"1": waits_s, "2": 0.0}

    monkeypatch.setattr(children, "processor_waits_s", account)
    starved = child(lambda: False)
    first, begun = starved.pid, monotonic()
    while monotonic() - begun < 1.0:
        starved.tend()
        assert starved.pid == first
        sleep(0.01)
    crowded = False
    until(lambda: _tended(starved, first), 20)


def test_the_kernels_account_of_waiting() -> None:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})  # what it starts shares one processor
    try:
        crowd = [subprocess.Popen(SPINS) for _ in range(2)]
    finally:
        os.sched_setaffinity(0, before)
    try:
        until(lambda: sum(processor_waits_s(crowd[0].pid).values()) > 0.1, 30)
        assert list(processor_waits_s(crowd[0].pid)) == [str(crowd[0].pid)]
    finally:
        for process in crowd:
            process.send_signal(signal.SIGKILL)
            process.wait()
    assert processor_waits_s(crowd[0].pid) == {}
