"""Processes that play independently and count their agent steps."""

import multiprocessing
import os
import time
from collections.abc import Callable
from ctypes import c_longlong
from multiprocessing.sharedctypes import RawArray
from typing import Any

from benchmarks.rows import RowGenerator, RowProgress
from workers.engine.processes.child import die_with_parent

POLL_INTERVAL_S = 0.05
"""How often the counts are read."""


def count_agent_steps(play: Callable[..., None], processes: int, *args: Any) -> RowGenerator:
    """Run `play(k, counts, *args)` in forked processes k; each adds its agent steps to `counts[k]`."""
    counts = RawArray(c_longlong, processes)
    context = multiprocessing.get_context("fork")
    players = [
        context.Process(target=_start, args=(os.getpid(), play, k, counts, *args), daemon=True)
        for k in range(processes)
    ]
    try:
        for player in players:
            player.start()
        before = 0
        while True:
            time.sleep(POLL_INTERVAL_S)
            now = sum(counts)
            if not all(player.is_alive() for player in players):
                raise RuntimeError("a process of the row exited")
            if all(counts):
                yield RowProgress(now - before)
                before = now
    finally:
        for player in players:
            if player.pid is not None:
                player.kill()
                player.join()


def _start(parent: int, play: Callable[..., None], *args: Any) -> None:
    die_with_parent(parent)
    play(*args)
