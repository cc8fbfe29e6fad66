"""Records where a run of a script comes from, what it prints and what it uses, in a thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

from callboard.background import Background
from callboard.output import Output
from callboard.provenance import provenance
from callboard.rows import Points, Process
from callboard.tally import warn
from callboard.usage import Usage

INTERVAL_S = 15.0
"""Time between two measurements of CPU, memory and GPU, and after which what was printed is sent."""
LAST_S = 5.0
"""How long the end of a run waits for what describes its script."""


class Recorder:
    """Records one run until `stop`."""

    def __init__(self, background: Background, progress: Callable[[], tuple[int, float]]) -> None:
        """Start.

        Args:
            background: where everything is added.
            progress: agent steps and training time of the run.
        """
        self._background = background
        self._progress = progress
        self._output = Output()
        self._pid = os.getpid()
        self._stopped = threading.Event()
        self._described = threading.Event()
        self._thread = threading.Thread(target=self._record, name="callboard-recorder", daemon=True)
        self._output.start()
        self._thread.start()

    def stop(self, timeout_s: float = LAST_S) -> None:
        """Stop, and add what was printed last."""
        if self._stopped.is_set() or self._pid != os.getpid():  # a forked child has no copy of the thread
            return
        self._described.wait(timeout_s)
        self._stopped.set()
        self._output.stop()
        if not self._background.is_unwanted:
            self._add_output()

    def _record(self) -> None:
        try:
            self._add({"provenance": provenance()})
        except Exception:  # whatever goes wrong here, the script goes on
            warn("callboard: where the run comes from cannot be recorded", exc_info=True)
        self._described.set()
        usage = Usage()
        while not self._stopped.wait(INTERVAL_S):
            if self._background.is_unwanted:
                self._output.stop()
                return
            try:
                self._add_usage(usage.sample())
                self._add_output()
            except Exception:
                warn("callboard: what the run uses and prints cannot be recorded", exc_info=True)
                return

    def _add_usage(self, metrics: dict[str, float]) -> None:
        if metrics:
            agent_steps, wall_time_s = self._progress()
            points = Points(agent_steps, None, wall_time_s, tuple(metrics), [*metrics.values()])
            self._background.add(points, len(metrics), is_own=True)

    def _add_output(self) -> None:
        text = self._output.take()
        if text:
            self._add({"output": text})

    def _add(self, fields: dict[str, Any]) -> None:
        self._background.add(Process(fields), 0, is_own=True)
