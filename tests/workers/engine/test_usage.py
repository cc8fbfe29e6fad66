import multiprocessing
import time

import numpy as np
import pytest

from workers.engine import usage
from workers.engine.usage import Usage


def _work(ready, done) -> None:  # type: ignore[no-untyped-def]
    held = np.ones(50_000_000, np.uint8)
    until = time.process_time() + 0.3
    while time.process_time() < until:
        held[:100].sum()
    ready.set()
    done.wait()


def test_children_count_too(monkeypatch: pytest.MonkeyPatch) -> None:
    context = multiprocessing.get_context("spawn")
    ready, done = context.Event(), context.Event()
    child = context.Process(target=_work, args=(ready, done))
    alone = Usage()
    monkeypatch.setattr(usage, "INTERVAL_S", 0.0)
    before = alone.take()
    begun = time.monotonic()
    child.start()
    try:
        assert ready.wait(30)
        after = alone.take()
        passed_s = time.monotonic() - begun
    finally:
        done.set()
        child.join()
    assert after["system/rss_bytes"] - before["system/rss_bytes"] > 50_000_000
    assert after["system/cpu_pct"] >= 0.9 * 100 * 0.3 / passed_s


def test_looks_no_oftener_than_is_worth_it() -> None:
    assert Usage().take() == {}
