import multiprocessing
import time
from multiprocessing.synchronize import Event

import numpy as np
import pytest

from tests.support.waiting import PATIENCE_S
from workers.engine.training import usage
from workers.engine.training.usage import Usage


def _work(ready: Event, done: Event) -> None:
    held = np.ones(50_000_000, np.uint8)
    until = time.process_time() + 0.3
    while time.process_time() < until:
        held[:100].sum()
    ready.set()
    done.wait()


@pytest.mark.service
def test_usage_includes_child_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    context = multiprocessing.get_context("spawn")
    ready, done = context.Event(), context.Event()
    child = context.Process(target=_work, args=(ready, done))
    alone = Usage()
    monkeypatch.setattr(usage, "INTERVAL_S", 0.0)
    begun = time.monotonic()  # first: the time that is measured with must not be the shorter one
    before = alone.sample()
    child.start()
    try:
        assert ready.wait(PATIENCE_S)
        after = alone.sample()
        passed_s = time.monotonic() - begun
    finally:
        done.set()
        child.join()
    assert after["system/rss_bytes"] - before["system/rss_bytes"] > 50_000_000
    assert after["system/cpu_pct"] >= 0.9 * 100 * 0.3 / passed_s


def test_usage_is_sampled_at_most_every_interval() -> None:
    assert Usage().sample() == {}
