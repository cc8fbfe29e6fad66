"""What happens next to the training loop: one thread writes to the spool, another one sends it.

What runs in the script's own threads is in `external`; what sends without threads, for `callboard sync` as
well, in `delivery`.
"""

from __future__ import annotations

import json
import os
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, ClassVar

from callboard.delivery import Delivery, RunUnavailable
from callboard.errors import Unreachable
from callboard.limits import MAX_REASON_CHARACTERS
from callboard.rows import Entry, File, Frame, Line, Points, clean, dumps, frames_of
from callboard.set_aside import DAMAGED
from callboard.spool import FILE_KINDS, Spool
from callboard.tally import Tally, in_words, warn
from callboard.transport import Transport

WRITE_INTERVAL_S = 0.5
"""A killed script loses at most what it has logged in this time."""
HEARTBEAT_INTERVAL_S = 15.0
"""Interval of heartbeats: the server reports a run as lost after 60 s without one."""
MAX_BUFFERED_ROWS = 200_000
"""Maximum number of rows in memory. Further rows are dropped and counted."""
MAX_FURTHER_ROWS = 20_000
"""Further rows for settings, episodes, returns, texts and files, when points have filled the buffer."""
WAKING_ROWS = 10_000
FIRST_RETRY_S, LAST_RETRY_S = 1.0, 30.0
LAST_TRIES = 1
"""How often an unreachable server is tried again once the run is closed."""
REPORT_INTERVAL_S = 60.0

REFUSED = "refused by the server"
_LISTS = "`callboard sync` lists it"


class _Alarm:
    """Wakes a thread. A signal handler that logs may interrupt `set` and call it: a `threading.Event` would
    wait for itself then."""

    def __init__(self) -> None:
        self._rings: SimpleQueue[None] = SimpleQueue()

    def set(self) -> None:
        """Wake the thread that waits, or the next that does."""
        if self._rings.empty():
            self._rings.put(None)

    def wait(self, timeout_s: float) -> None:
        """Wait until it is set, at most so long; afterwards it is not."""
        with suppress(Empty):
            self._rings.get(timeout=timeout_s)


class Background:
    """The buffer of a run that is being logged, and the two threads that empty it."""

    _all: ClassVar[weakref.WeakSet[Background]] = weakref.WeakSet()

    def __init__(
        self,
        spool: Spool,
        transport: Transport,
        tally: Tally,
        send_earlier: Callable[[], bool] | None = None,
    ) -> None:
        """Prepare; `start` starts the threads.

        Args:
            spool: where to write.
            transport: where to send.
            tally: counts what is dropped.
            send_earlier: sends what an earlier process has left of the same run; False if it has to be
                called again.
        """
        self.stop_requested = threading.Event()
        self.n_logged = 0
        """Rows that were given to `add`, dropped ones and lines of the client's own among them."""
        self._spool = spool
        self._transport = transport
        self._tally = tally
        self._send_earlier = send_earlier
        self._delivery = Delivery(spool, transport, self._on_refused, self._on_dropped)
        # Reentrant, all of them: a handler of a signal may log, whatever it has interrupted.
        self._mutex = threading.RLock()
        self._entries: list[Entry] = []
        self._unwritten: list[Frame] = []
        """What waits for room on the spool's disk."""
        self._n_rows = 0
        """Rows of the entries and of the unwritten frames."""
        self._n_reported = 0
        """Lost rows that the run's log has a line about."""
        self._report_at = 0.0
        self._forked = False
        self._gone: str | None = None
        """Why the server accepts nothing of the run any more."""
        self._reported: set[str] = set()
        """Reasons why the server drops rows, as far as they were reported in the script."""
        self._final: bytes | None = None
        """The final state, once the run is closed: the last thing that is written."""
        # Of the sender alone.
        self._is_reachable = True
        self._retry_s = FIRST_RETRY_S
        self._heartbeat_at = 0.0
        self._to_write = _Alarm()
        self._to_send = _Alarm()
        self._written = threading.Event()
        """Set once the final state is written, after which the writer ends."""
        self._writer = threading.Thread(target=self._write, name="callboard-writer", daemon=True)
        self._sender = threading.Thread(target=self._send, name="callboard-sender", daemon=True)
        self._all.add(self)

    @property
    def dropped(self) -> dict[str, int]:
        """Rows that are not stored, by reason: dropped here, or dropped or refused by the server."""
        counts = self._tally.dropped
        for reason, n in self._delivery.delivered.dropped.items():
            counts[reason] = counts.get(reason, 0) + n
        if self._gone is not None and self._spool.n_waiting_rows:
            counts[self._gone] = counts.get(self._gone, 0) + self._spool.n_waiting_rows
        return counts

    @property
    def is_unwanted(self) -> bool:
        """Whether the server has said that it stores nothing about scripts."""
        return not self._delivery.records_scripts

    def start(self) -> None:
        """Start the threads."""
        self._heartbeat_at = time.monotonic() + HEARTBEAT_INTERVAL_S  # `init` was the first
        self._writer.start()
        self._sender.start()

    def add(self, entry: Entry, n_rows: int, *, is_own: bool = False) -> bool:
        """Put into the buffer; False if it is dropped. Never waits for the disk or the network.

        An exception means that it is neither in the buffer nor counted as dropped. `is_own`: it is a line of
        the client's own, which the script has not logged, and is not counted as dropped.
        """
        with self._mutex:
            self.n_logged += n_rows
            n_then = self._n_rows + n_rows
            is_accepted = (
                (
                    n_then <= MAX_BUFFERED_ROWS
                    or (n_then <= MAX_BUFFERED_ROWS + MAX_FURTHER_ROWS and _is_rare(entry))
                )
                and self._gone is None
                and not self._forked
            )
            if is_accepted:
                if n_then >= WAKING_ROWS:
                    self._to_write.set()  # before the append: the writer needs the mutex
                self._entries.append(entry)
                self._n_rows = n_then
        if not is_accepted and not is_own:
            self._refuse(n_rows)
        return is_accepted

    def _refuse(self, n_rows: int) -> None:
        if self._gone is not None:
            self._tally.count(n_rows, self._gone)
        elif self._forked:
            reason = "logged in a forked child process"
            self._tally.drop(n_rows, reason, "log in the process that called init")
        else:
            details = f"it has room for {MAX_BUFFERED_ROWS:,} rows that wait for the disk"
            self._tally.drop(n_rows, "the buffer is full", details)

    def add_file(
        self, kind: str, n_bytes: int, write: Callable[[Path], object], fields: dict[str, Any]
    ) -> None:
        """Write a file into the spool, to be sent with these fields. Takes as long as `write`.

        An OSError of `write` is one of the spool: the file is dropped and counted.
        """
        if self._gone is not None or self._forked:
            self._refuse(1)
            return
        try:
            upload = self._spool.add_file(n_bytes, write)
        except OSError as error:
            self._drop(1, error)
            return
        if not self.add(File(kind, {"upload": upload} | fields), 1):
            with suppress(Exception):  # its row is counted already
                self._spool.remove_file(upload)
        self._to_write.set()

    def add_line(self, level: str, message: str) -> None:
        """Write a line of the client's own into the run's log."""
        self.add(Line(time.time(), level, clean(message)), 1, is_own=True)

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything logged before has been sent; False if that takes longer."""
        deadline = time.monotonic() + timeout_s
        self._to_write.set()
        while self._n_rows or self._spool.n_waiting:
            if time.monotonic() > deadline or self._gone is not None or self._forked:
                return False
            time.sleep(0.01)
        return True

    def close(self, state: str, reason: str | None, timeout_s: float) -> None:
        """Write what is left, send it if the server answers, and report the final state.

        Args:
            state: `finished`, `failed` or `stopped`.
            reason: reason of the state.
            timeout_s: how long to wait for the server at most.
        """
        if self._forked:
            return
        self._final = dumps(
            [{"state": state, "reason": None if reason is None else clean(reason, MAX_REASON_CHARACTERS)}]
        )
        self._to_write.set()
        self._writer.join()
        self._to_send.set()
        self._sender.join(timeout_s)
        if self._sender.is_alive():
            warn("%s: not all is sent after %.0f s; %s", self._name, timeout_s, self._later)
            return
        if self._spool.n_waiting and self._gone is None:
            warn("%s: the server cannot be reached; %s", self._name, self._later)
            self._spool.close()
        elif not self._spool.finish():
            warn("%s: what the server has refused is kept in %s: %s", self._name, self._folder, _LISTS)
        self._transport.close()

    @classmethod
    def after_fork(cls) -> None:
        """In a child process, which has no copy of the threads, nothing is logged."""
        for background in cls._all:
            background._mutex = threading.RLock()
            background._tally.after_fork()
            background._forked = True

    @property
    def _name(self) -> str:
        return f"callboard: run {self._spool.manifest.run or self._spool.manifest.name}"

    @property
    def _later(self) -> str:
        return f"the rest is in {self._folder}: `callboard sync` sends it"

    @property
    def _folder(self) -> Path:
        return self._spool.folder

    def _write(self) -> None:
        """Write what is logged into the spool, at intervals, until the final state is written."""
        while True:
            self._to_write.wait(WRITE_INTERVAL_S)
            final = self._final
            with self._mutex:
                entries, self._entries, n_rows = self._entries, [], self._n_rows
            n_entries = n_rows - sum(n for _, n, _ in self._unwritten)
            frames = self._unwritten + self._frames_of(entries, n_entries)
            self._unwritten = self._write_frames(frames, final is not None)
            if final is not None:
                self._write_frames([("state", 0, final)], is_last=True)
            with self._mutex:
                self._n_rows += sum(n for _, n, _ in self._unwritten) - n_rows
            if entries or final is not None or self._spool.n_waiting:
                self._to_send.set()
            if final is not None:
                self._written.set()
                return

    def _frames_of(self, entries: list[Entry], n_rows: int) -> list[Frame]:
        """What is logged, and a line about what was dropped, as frames; all is dropped if that fails."""
        lines: list[Entry] = []
        try:
            lines = self._report()
            return [*frames_of(entries + lines)]
        except Exception:  # an error here must never end the script that trains
            self._drop_after_error(n_rows + len(lines))
            return []

    def _write_frames(self, frames: list[Frame], is_last: bool) -> list[Frame]:
        """Write frames to the spool; returns those that wait until it has room.

        Args:
            frames: what to write. Files do not wait: their copies were written before.
            is_last: what cannot be written now never will be.
        """
        left: list[Frame] = []
        for kind, n_rows, rows in frames:
            if left and kind not in FILE_KINDS:
                left.append((kind, n_rows, rows))
                continue
            try:
                if not self._append(kind, n_rows, rows, is_last or kind in FILE_KINDS):
                    left.append((kind, n_rows, rows))
            except Exception:  # an error here must never end the script that trains
                self._drop_after_error(n_rows)
        return left

    def _append(self, kind: str, n_rows: int, rows: bytes, is_last: bool) -> bool:
        """Write a frame to the spool. If it cannot be written: False, and it waits; the last time, it is
        dropped."""
        try:
            self._spool.append(kind, n_rows, rows)
        except OSError as error:
            if not is_last:
                if not self._unwritten:
                    problem = "the spool is full or cannot be written"
                    warn("%s: %s: %s; what is logged waits in memory", self._name, problem, error)
                return False
            self._drop(n_rows, error)
            if kind in FILE_KINDS:
                with suppress(Exception):  # its row is counted already
                    self._spool.remove_file(json.loads(rows)[0]["upload"])
        return True

    def _drop_after_error(self, n_rows: int) -> None:
        warn("%s: %d rows could not be written", self._name, n_rows, exc_info=True)
        self._tally.drop(n_rows, "an error of the client while it was written")

    def _drop(self, n_rows: int, error: OSError) -> None:
        self._tally.drop(n_rows, "the spool is full or cannot be written", str(error))

    def _report(self) -> list[Entry]:
        """A line of the run's log if rows were dropped here or refused since the last one."""
        counts = self._tally.dropped
        n_lost = sum(counts.values())
        if (
            self._gone is not None
            or n_lost == self._n_reported
            or (time.monotonic() < self._report_at and self._final is None)
        ):
            return []
        self._n_reported, self._report_at = n_lost, time.monotonic() + REPORT_INTERVAL_S
        what = "values, episodes, lines or files that are missing here"
        message = f"The script has logged {n_lost:,} {what}: {in_words(counts)}"
        return [Line(time.time(), "warning", clean(message))]

    def _send(self) -> None:
        """Send what is written, until all is sent, the server takes no more, or the last tries have failed.

        Once the writer has ended (`_written`) nothing is added: then there are no heartbeats, and an
        unreachable server is tried `LAST_TRIES` times more.
        """
        n_last_tries = 0
        while True:
            is_last = self._written.is_set()
            try:
                self._send_before()
                self._send_heartbeat(is_last)
                if self._send_until_heartbeat():
                    if is_last:
                        return
                    self._await_entries()
            except RunUnavailable as error:
                warn("%s: the server no longer accepts data for it: %s", self._name, error)
                with self._mutex:
                    self._gone = f"{REFUSED}: {error}"
                return
            except Exception as error:  # nothing that goes wrong here ends the thread or the script
                self._log_failure(error)
                n_last_tries += is_last
                if n_last_tries > LAST_TRIES:
                    return
                self._await_retry(error, is_last)

    def _send_before(self) -> None:
        """Send what an earlier process has left of the same run, which comes before anything of this one."""
        if self._send_earlier is not None:
            if not self._send_earlier():
                raise Unreachable("what an earlier process has logged cannot be sent yet")
            self._send_earlier = None

    def _send_heartbeat(self, is_last: bool) -> None:
        """Send a heartbeat if one is due, before anything that may have to wait for the disk."""
        if time.monotonic() >= self._heartbeat_at and not is_last:
            if self._delivery.heartbeat():
                self.stop_requested.set()
            self._heartbeat_at = time.monotonic() + HEARTBEAT_INTERVAL_S

    def _send_until_heartbeat(self) -> bool:
        """Send request by request; False if a heartbeat is due before everything is sent."""
        while self._delivery.send():
            self._on_reached()
            if time.monotonic() >= self._heartbeat_at:
                return False
        self._on_reached()
        return True

    def _await_entries(self) -> None:
        """Wait until something is written, or a heartbeat is due."""
        if not self._spool.n_waiting:
            self._to_send.wait(max(0.0, self._heartbeat_at - time.monotonic()))

    def _on_reached(self) -> None:
        self._is_reachable, self._retry_s = True, FIRST_RETRY_S

    def _await_retry(self, error: Exception, is_last: bool) -> None:
        """Wait longer after each failure, or as long as the server asks, at most `LAST_RETRY_S` each; once
        the run is closed, only `FIRST_RETRY_S`."""
        asked_s = (isinstance(error, Unreachable) and error.retry_after_s) or 0.0
        if is_last:
            time.sleep(FIRST_RETRY_S)
        else:
            self._written.wait(max(self._retry_s, min(asked_s, LAST_RETRY_S)))
        self._retry_s = min(2 * self._retry_s, LAST_RETRY_S)

    def _log_failure(self, error: Exception) -> None:
        """Log a failure, once until the server is reached again."""
        if not self._is_reachable:
            return
        self._is_reachable = False
        unexpected = None if isinstance(error, Unreachable) else error
        message = "%s: %s; what is logged is kept in %s"
        warn(message, self._name, error or type(error).__name__, self._folder, exc_info=unexpected)

    def _on_refused(self, reason: str, n_rows: int) -> None:
        what = reason if reason == DAMAGED else f"{REFUSED}: {reason}"
        self._tally.drop(n_rows, what, "kept in the spool: " + _LISTS)

    def _on_dropped(self, reason: str, n_rows: int, details: str) -> None:
        """Report once for each reason that the server has dropped rows, which the server counts."""
        if reason not in self._reported:
            self._reported.add(reason)
            warn("%s: dropped by the server: %s: %s; reported once", self._name, reason, details)


def _is_rare(entry: Entry) -> bool:
    """Whether an entry is anything but points, or points of the section `rollout` alone."""
    return not isinstance(entry, Points) or all(name.startswith("rollout/") for name in entry.metrics)


os.register_at_fork(after_in_child=Background.after_fork)
