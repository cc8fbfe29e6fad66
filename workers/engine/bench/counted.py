"""Processes that play by themselves and count their decisions."""

import multiprocessing
import os
import time
from collections.abc import Callable
from ctypes import c_longlong
from multiprocessing.sharedctypes import RawArray
from typing import Any

from workers.engine.bench.made import Made, Turns
from workers.engine.lifeline import die_with_parent

LOOK_S = 0.05
"""How often what they have counted is looked at."""


def counted(play: Callable[..., None], processes: int, *given: Any) -> Turns:
    """Run `play(k, counts, *given)` in forked processes k, each of which adds decisions to `counts[k]`."""
    counts = RawArray(c_longlong, processes)
    context = multiprocessing.get_context("fork")
    players = [
        context.Process(target=_begin, args=(os.getpid(), play, k, counts, *given), daemon=True)
        for k in range(processes)
    ]
    try:
        for player in players:
            player.start()
        before = 0
        while True:
            time.sleep(LOOK_S)
            now = sum(counts)
            if not all(player.is_alive() for player in players):
                raise RuntimeError("a process of the row ended")
            if all(counts):
                yield Made(now - before)
                before = now
    finally:
        for player in players:
            if player.pid is not None:
                player.kill()
                player.join()


def _begin(parent: int, play: Callable[..., None], *given: Any) -> None:
    die_with_parent(parent)
    play(*given)
