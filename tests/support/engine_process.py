"""An engine in a separate process, observed through its event log."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep

from backend.specs.events import AnyEvent
from callboard_cli.children import cpu_waits_s
from tests.support.waiting import PATIENCE_S, SCALE, rounds, until
from workers.engine.training.event_log import read_frames

STOP_S = 10.0 * SCALE
"""The longest that the stop of a start may take."""


def logged(run_dir: Path, attempt: int = 1) -> list[AnyEvent]:
    """The events that an attempt has logged so far."""
    log = run_dir / "attempts" / str(attempt) / "events.log"
    return [event for frame, _ in read_frames(log) for event in frame]


def await_events(
    engine: subprocess.Popen[bytes],
    run_dir: Path,
    enough: Callable[[list[AnyEvent]], bool],
    timeout_s: float = PATIENCE_S,
) -> list[AnyEvent]:
    """Wait until a running engine has logged enough events, and return them.

    Raises:
        AssertionError: the engine has ended, or it took longer than `timeout_s`.
    """

    def arrived() -> list[AnyEvent] | None:
        status = engine.poll()
        events = logged(run_dir)
        if enough(events):
            return events
        assert status is None, f"the engine ended with {status}: {events[-1:]}"
        return None

    return until(arrived, timeout_s, every_s=0.1)


def await_event(
    engine: subprocess.Popen[bytes],
    run_dir: Path,
    kind: type[AnyEvent],
    like: str = "",
    timeout_s: float = PATIENCE_S,
) -> list[AnyEvent]:
    """Wait for an event of this type with `like` in its JSON."""
    return await_events(
        engine,
        run_dir,
        lambda events: any(isinstance(event, kind) and like in event.model_dump_json() for event in events),
        timeout_s,
    )


def await_stop(engine: subprocess.Popen[bytes]) -> int:
    """Wait for the end of an engine that was stopped while it started; returns its exit status.

    Raises:
        AssertionError: it took longer than `STOP_S`, without the time in which it waited for a processor.
    """

    def waited_s() -> float:
        return cpu_waits_s(engine.pid).get(str(engine.pid), 0.0)

    began, before, waited = monotonic(), waited_s(), 0.0
    for _ in rounds():
        if engine.poll() is not None:
            break
        waited = max(waited, waited_s() - before)
        assert monotonic() - began - waited < STOP_S
        sleep(0.02)
    return int(engine.returncode)
