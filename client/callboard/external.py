"""Runs that are trained by a script of one's own: `callboard.init`."""

import atexit
import logging
import os
import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self, SupportsFloat, SupportsIndex

from callboard.background import Background
from callboard.files import SentFile, checkpoint_of, video_of
from callboard.limits import (
    LEVELS,
    MAX_MESSAGE_CHARACTERS,
    MAX_REASON_CHARACTERS,
)
from callboard.names import Names
from callboard.rows import (
    MAX_VALUES_PER_CALL,
    Episode,
    Line,
    Points,
    cleaned,
    count,
    number,
)
from callboard.spool import Spool
from callboard.syncing import sync
from callboard.transport import Transport

CLOSE_TIMEOUT_S = 30.0

_MAX_KNOWN_CALLS = 1_000
_FLOAT = frozenset({float})

log = logging.getLogger("callboard")


class ExternalRun:
    """A run that this script trains and logs. Any thread of the process may use it.

    As a context manager it is closed at the end of the block: `finished`, after an exception `failed`, after
    KeyboardInterrupt `stopped`. Without one it is closed when the process exits.
    """

    def __init__(self, spool: Spool, transport: Transport, *, wall_time_s: float = 0.0, agent_steps: int = 0):
        self._spool = spool
        self._url = transport.server.url
        manifest, server = spool.manifest, transport.server

        def send_earlier() -> bool:
            return (
                sync(spool.folder.parent, url=server.url, token=server.token, run=manifest.run).n_remaining
                == 0
            )

        self._background = Background(spool, transport, send_earlier if manifest.create is None else None)
        self._started_at = time.monotonic() - wall_time_s
        self._agent_steps = agent_steps
        self._episode_steps = agent_steps
        self._names = Names()
        self._metrics: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._closed = False
        self._background.start()
        atexit.register(self._at_exit)

    @property
    def id(self) -> str | None:
        """The run's id; None while the server could not be reached since `init`."""
        return self._spool.manifest.run

    @property
    def name(self) -> str:
        """The run's name."""
        return self._spool.manifest.name

    @property
    def url(self) -> str | None:
        """Address of the run's page; None while the run has no id."""
        return None if self.id is None else f"{self._url}/runs/{self.id}"

    @property
    def agent_steps(self) -> int:
        """The most agent steps that were logged, those before a resumption included."""
        return self._agent_steps

    @property
    def stop_requested(self) -> bool:
        """Whether a user has pressed Stop on the run's page. A loop that checks it can end cleanly."""
        return self._background.stop_requested.is_set()

    @property
    def n_dropped(self) -> int:
        """Values, episodes, lines and files that will not reach the server: dropped, or refused there."""
        return self._background.n_dropped + self._background.n_refused

    def log(
        self,
        values: Mapping[str, SupportsFloat],
        *,
        agent_steps: SupportsIndex,
        frames: SupportsIndex | None = None,
    ) -> None:
        """Log values of metrics. They are sent by another thread.

        Args:
            values: metric -> value. A metric may have any name of up to 200 characters; `/` makes sections,
                such as `loss/policy`. NaN and infinities are allowed; both are stored as NaN.
            agent_steps: agent steps (decisions) of the whole run so far, over all environments. Values whose
                agent steps are less than those of the metric's last value are dropped by the server.
            frames: emulator frames so far, if an agent step takes several; default: as many as agent steps.

        Raises:
            ValueError: an argument cannot be logged; nothing of the call is.
        """
        # About 2 microseconds for any number of floats: metrics by the names of the call, types all together.
        if not isinstance(values, Mapping):
            raise ValueError(f'values: must be a mapping such as {{"loss/policy": 0.1}}: got {values!r:.80}')
        names = tuple(values)
        metrics = self._metrics.get(names) or self._checked(names)
        found: list[Any] = [*values.values()]
        if not _FLOAT.issuperset(map(type, found)):
            found = [number(f"values[{name!r}]", value) for name, value in values.items()]
        steps = count("agent_steps", agent_steps)
        if frames is not None:
            frames = count("frames", frames)
        if self._closed:
            raise ValueError("run: it is closed")
        if steps > self._agent_steps:
            self._agent_steps = steps
        wall_time_s = time.monotonic() - self._started_at
        self._background.add(Points(steps, frames, wall_time_s, metrics, found), len(found))

    def episode(
        self, return_: SupportsFloat, length: SupportsIndex, *, agent_steps: SupportsIndex | None = None
    ) -> None:
        """Log a finished training episode.

        Args:
            return_: its true return: the sum of the environment's rewards, neither clipped nor scaled.
            length: its agent steps.
            agent_steps: agent steps of the run at its end; default: the sum of the lengths, but at least what
                was logged last.

        Raises:
            ValueError: an argument cannot be logged.
        """
        value = number("return_", return_)
        if value - value != 0:
            raise ValueError(f"return_: must be finite: got {value}")
        steps = count("length", length, minimum=1)
        if self._closed:
            raise ValueError("run: it is closed")
        self._episode_steps += steps
        if agent_steps is None:
            at = max(self._episode_steps, self._agent_steps)
        else:
            at = count("agent_steps", agent_steps)
        self._agent_steps = max(self._agent_steps, at)
        self._background.add(Episode(at, time.monotonic() - self._started_at, value, steps), 1)

    def text(
        self,
        name: str,
        text: str | None = None,
        *,
        agent_steps: SupportsIndex | None = None,
        level: str = "info",
    ) -> None:
        """Write a line into the run's log: `name: text`, or `name` alone.

        Args:
            name: what the text is, or the whole line.
            text: the text. A line of more than 10,000 characters is cut.
            agent_steps: agent steps of the run that the text belongs to, if any.
            level: `debug`, `info`, `warning` or `error`.

        Raises:
            ValueError: an argument cannot be logged.
        """
        if level not in LEVELS:
            raise ValueError(f"level: must be one of {', '.join(LEVELS)}: got {level!r}")
        if not isinstance(name, str) or not name:
            raise ValueError("name: must be text, and not empty")
        if not (text is None or isinstance(text, str)):
            raise ValueError(f"text: must be text: got {type(text).__name__}")
        steps = None if agent_steps is None else count("agent_steps", agent_steps)
        if self._closed:
            raise ValueError("run: it is closed")
        line = name if text is None else f"{name}: {text}"
        self._background.add(Line(time.time(), level, cleaned(line, MAX_MESSAGE_CHARACTERS), steps), 1)

    def video(
        self,
        path_or_frames: Any,
        *,
        agent_steps: SupportsIndex | None = None,
        fps: SupportsFloat = 30.0,
    ) -> None:
        """Show a video on the run's page: a file, or frames.

        What is given is copied to disk before this returns, so that it may change afterwards. Another thread
        compresses frames and sends it, and a worker of the server encodes it.

        Args:
            path_or_frames: path of an MP4, MOV, WebM, Matroska, AVI or GIF file; or frames, a uint8 array of
                the shape (T, H, W, 3), RGB. Of at most 256 MiB.
            agent_steps: agent steps of the run that it shows; default: the most that were logged.
            fps: frames per second, of frames.

        Raises:
            ValueError: an argument cannot be logged, or the file is not a video; also logged in the run.
        """
        if self._closed:
            raise ValueError("run: it is closed")
        steps = self._agent_steps if agent_steps is None else count("agent_steps", agent_steps)
        try:
            sent = video_of(path_or_frames, number("fps", fps))
        except ValueError as error:
            self._background.refuse(1, f"A video was not sent: {error}")
            raise
        self._add_file("video", sent, steps)

    def checkpoint(
        self,
        path: str | os.PathLike[str],
        *,
        agent_steps: SupportsIndex | None = None,
        score: SupportsFloat | None = None,
    ) -> None:
        """Store a file with the run, such as saved parameters. The server stores it unchanged.

        The file is copied before this returns, so that it may change afterwards. Another thread sends it.

        Args:
            path: of the file, of at most 1 GiB.
            agent_steps: agent steps of the run when it was saved; default: the most that were logged.
            score: what was measured for it, such as a mean return.

        Raises:
            ValueError: an argument cannot be logged, or the file cannot be read.
        """
        if self._closed:
            raise ValueError("run: it is closed")
        steps = self._agent_steps if agent_steps is None else count("agent_steps", agent_steps)
        value = None if score is None else number("score", score)
        if value is not None and value - value != 0:
            raise ValueError(f"score: must be finite: got {value}")
        self._add_file("checkpoint", checkpoint_of(path, value), steps)

    def flush(self, timeout_s: float = CLOSE_TIMEOUT_S) -> bool:
        """Wait until the server has stored everything logged so far; False if that takes longer."""
        return self._background.flush(timeout_s)

    def close(
        self, state: str = "finished", reason: str | None = None, *, timeout_s: float = CLOSE_TIMEOUT_S
    ) -> None:
        """End the run, and send what is left. A second call does nothing.

        What cannot be sent stays in the spool for `callboard.sync()`.

        Args:
            state: `finished`, `failed` or `stopped`.
            reason: a line for the run's page.
            timeout_s: how long to wait for the server at most.

        Raises:
            ValueError: an unknown state.
        """
        if state not in ("finished", "failed", "stopped"):
            raise ValueError(f"state: must be finished, failed or stopped: got {state!r}")
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self._at_exit)
        self._background.close(state, reason, timeout_s)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close in the state that the exception means."""
        self.close(*_outcome(error))

    def _add_file(self, kind: str, sent: SentFile, agent_steps: int) -> None:
        self._agent_steps = max(self._agent_steps, agent_steps)
        wall_time_s = round(time.monotonic() - self._started_at, 3)
        fields = {"agent_steps": agent_steps, "wall_time_s": wall_time_s} | sent.fields
        self._background.add_file(kind, sent.n_bytes, sent.write, fields)

    def _checked(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """The metrics that a call names."""
        if len(names) > MAX_VALUES_PER_CALL:
            raise ValueError(f"values: must have at most {MAX_VALUES_PER_CALL:,} metrics: got {len(names):,}")
        if len(self._metrics) >= _MAX_KNOWN_CALLS:
            self._metrics = {}
        metrics = self._metrics[names] = tuple(map(self._names.stored, names))
        return metrics

    def _at_exit(self) -> None:
        # What the interpreter has printed as the script's last error.
        self.close(*_outcome(getattr(sys, "last_value", None)))


def _outcome(error: BaseException | None) -> tuple[str, str | None]:
    if error is None or (isinstance(error, SystemExit) and error.code in (None, 0)):
        return "finished", None
    if isinstance(error, KeyboardInterrupt):
        return "stopped", "interrupted from the keyboard"
    lines = str(error).strip().splitlines()
    name = type(error).__name__
    return "failed", cleaned(f"{name}: {lines[-1]}" if lines else name, MAX_REASON_CHARACTERS)
