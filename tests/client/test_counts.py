"""Logged = stored + waiting + reported as dropped, whichever step inside of the client raises."""
# ruff: noqa: SLF001 - it reads what waits inside of the client

import atexit
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

from callboard import ends
from callboard.background import Background
from callboard.external import ExternalRun
from callboard.rows import Entry
from callboard.spool import Manifest, Spool, new_ulid
from callboard.transport import Transport, find_server
from tests.client.support import NOBODY

CLIENT = str(Path(sys.modules["callboard.external"].__file__ or "").parent)
CATCH = {"_shield", "_drop_after", "_frames_of", "_write_frames", "_drop_after_error"}
"""The functions that catch what the others raise."""
NO_STEPS = {"<genexpr>", "n_waiting", "set", "wait"}
"""They count, or wake a thread like those of `threading.Event`, and do nothing that can raise."""
MAX_STEPS = 1_000


class Broken(Exception):
    """A step inside of the client has failed."""


class Steps:
    """Raises once, when this thread calls the n-th function of the client within a block."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.function: str | None = None

    def __enter__(self) -> "Steps":
        self._n_calls = 0
        sys.setprofile(self._on_event)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)

    def _on_event(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(CLIENT) or code.co_name in CATCH | NO_STEPS:
            return
        self._n_calls += 1
        if self._n_calls == self.n + 1:  # the first is the method itself
            self.function = code.co_name
            raise Broken(code.co_name)


def n_steps_broken(call: Callable[[], object], check: Callable[[Steps], None]) -> int:
    """Repeat a call; in the n-th repetition its n-th step raises. Returns how many raised."""
    n_broken = 0
    for n in range(1, MAX_STEPS):
        with Steps(n) as steps:
            call()
        check(steps)
        n_broken += steps.function is not None
        if steps._n_calls <= n:
            return n_broken
    raise AssertionError("it has too many steps")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ExternalRun]:
    """A run without threads: what is logged stays in its buffer."""
    monkeypatch.setattr(Background, "start", lambda self: None)
    monkeypatch.setattr("callboard.external._ROWS_PER_ENTRY", 3)
    create = {"origin": "external", "algorithm": "a", "environment": "e"}
    spool = Spool.create(Manifest(new_ulid(), NOBODY, None, create, "a e"), tmp_path / "spool")
    run = ExternalRun(spool, Transport(find_server(url=NOBODY, token="t")))
    yield run
    atexit.unregister(run._at_exit)
    ends.unwatch(run._watch)
    spool.close()


def n_waiting(run: ExternalRun) -> int:
    """Rows of the script in the buffer."""
    own = ("A video was not sent", "A checkpoint was not sent")
    entries = run._background._entries
    n_own = sum(getattr(entry, "message", "").startswith(own) for entry in entries)
    return run._background._n_rows - int(n_own)


def calls(run: Any, folder: Path) -> dict[str, tuple[int, Callable[[], object]]]:
    """Calls of a script, and how many values, episodes, lines and files each logs."""
    file = folder / "parameters"
    file.write_bytes(b"x")
    frames = np.zeros((2, 8, 8, 3), np.uint8)
    known = {"loss/a": 0.5, "loss/b": 1.5}
    run.log(known, agent_steps=1)
    return {
        "known names": (2, lambda: run.log(known, agent_steps=1)),
        "new values": (4, lambda: run.log({"a": 1, "b": "0.5", "c": None, "d": [1, 2]}, agent_steps="x")),
        "many names": (8, lambda: run.log({f"m{i}": 1 for i in range(8)}, agent_steps=1)),
        "no mapping": (1, lambda: run.log(5)),
        "frames": (1, lambda: run.log({"a": 0.5}, agent_steps=1, frames="x")),
        "episode": (1, lambda: run.episode(1.0, 5)),
        "odd episode": (1, lambda: run.episode("nan", 2.5, agent_steps=-1)),
        "no episode": (1, lambda: run.episode(None, None)),
        "text": (1, lambda: run.text("x" * 20_000, level="none")),
        "video": (1, lambda: run.video(frames)),
        "no video": (1, lambda: run.video(file)),
        "checkpoint": (1, lambda: run.checkpoint(file, score=1)),
        "no checkpoint": (1, lambda: run.checkpoint(folder / "nothing")),
    }


def check_law(run: ExternalRun, folder: Path, what: str) -> Counter[str]:
    """The law, in each call of a script; returns the names of the steps that raised."""
    broken: Counter[str] = Counter()
    for name, (n_rows, call) in calls(run, folder).items():
        before = n_waiting(run) + run.n_dropped

        def check(steps: Steps, name: str = name, n_rows: int = n_rows) -> None:
            nonlocal before
            after = n_waiting(run) + run.n_dropped
            assert after - before == n_rows, (what, name, steps.function)
            before = after
            broken.update([steps.function or ""])

        assert n_steps_broken(call, check) > 0
        run._background._entries, run._background._n_rows = [], 0
    return broken


def test_each_value_is_counted_once_whichever_step_of_a_call_raises(
    run: ExternalRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = check_law(run, tmp_path, "room")
    assert broken.keys() >= {"_add_points", "add", "_log", "_pairs", "_metric", "drop", "_count", "add_file"}
    monkeypatch.setattr("callboard.background.MAX_BUFFERED_ROWS", -(10**6))
    assert check_law(run, tmp_path, "no room").keys() >= {"_refuse", "remove_file"}
    run._closed = True
    assert check_law(run, tmp_path, "closed").keys() >= {"_count"}


@pytest.mark.parametrize("is_full", [False, True])
def test_each_value_is_counted_once_whichever_step_of_the_writer_raises(
    run: ExternalRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_full: bool
) -> None:
    background, spool, n_logged = run._background, run._spool, 0
    report = background._report

    def reporting() -> list[Entry]:
        nonlocal n_logged
        lines = report()
        n_logged += len(lines)
        return lines

    monkeypatch.setattr(background, "_report", reporting)
    if is_full:
        monkeypatch.setattr("callboard.spool.MAX_SPOOL_BYTES", 20_000)
    background._final = b'[{"state":"finished","reason":null}]'  # so that the writer ends

    def check(steps: Steps) -> None:
        counted = spool.n_waiting_rows + sum(n for _, n, _ in background._unwritten) + run.n_dropped
        assert counted == n_logged, steps.function
        assert background._n_rows == sum(n for _, n, _ in background._unwritten)

    file = tmp_path / "parameters"
    file.write_bytes(b"x")
    n_broken = 0
    for n in range(1, MAX_STEPS):
        run.log({"loss/a": 0.5, "loss/b": 1.5}, agent_steps=n)
        run.episode(1.0, 5)
        run.text("x" * (2_000 if is_full else 10))
        run.checkpoint(file)
        n_logged += 5
        with Steps(n) as steps:
            background._write()
        check(steps)
        n_broken += steps.function is not None
        if steps._n_calls <= n:
            break
    assert n_broken > 10, "the steps of the writer were found"
    assert ("the spool is full or cannot be written" in run.dropped) == is_full
