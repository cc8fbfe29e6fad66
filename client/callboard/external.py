"""A run that is trained by a script of one's own, as `callboard.init` returns it: what the script calls.

Its log methods check values and hand them to `background`, which stores and sends them.
"""

from __future__ import annotations

import atexit
import html
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import parent_process
from multiprocessing.util import Finalize
from types import TracebackType
from typing import TYPE_CHECKING, Any, SupportsFloat, SupportsIndex

from callboard import ends
from callboard.arguments import Arguments, seconds_of
from callboard.background import Background
from callboard.cleaning import as_number, as_steps, as_text, kind_of, shown
from callboard.config import RunConfig
from callboard.files import SentFile, checkpoint_of, video_of
from callboard.handlers import pass_on
from callboard.limits import LEVELS, MAX_ALERT_TEXT, MAX_ALERT_TITLE, MAX_MESSAGE_CHARACTERS, MAX_STEPS
from callboard.media import Histogram, Image, Media, Table
from callboard.recording import Recorder
from callboard.rows import Bins, Description, Episode, Line, Points, clean, dumps
from callboard.spool import MAX_REQUEST_BYTES, Spool
from callboard.syncing import sync
from callboard.tally import Tally
from callboard.transport import Transport

if TYPE_CHECKING:
    from typing import Self

CLOSE_TIMEOUT_S = 30.0

_MAX_KNOWN_CALLS = _ROWS_PER_ENTRY = 1_000
_FLOAT = frozenset({float})
_TEXT = frozenset({str})
_CLOSED = "the run is closed"


class ExternalRun:
    """A run that this script trains and logs. Any thread of the process may use it.

    As a context manager it is closed at the end of the block: `finished`, after an exception `failed`, after
    KeyboardInterrupt `stopped`. Without one it is closed when the process exits.
    """

    def __init__(
        self,
        spool: Spool,
        transport: Transport,
        *,
        wall_time_s: float = 0.0,
        agent_steps: int = 0,
        config: Mapping[str, Any] | None = None,
        counts_iterations: bool = False,
        record: bool = False,
    ):
        self._spool = spool
        self._url = transport.server.url
        manifest, server = spool.manifest, transport.server

        def send_earlier() -> bool:
            done = sync(spool.folder.parent, url=server.url, token=server.token, run=manifest.run)
            return done.n_remaining == 0

        self._tally = Tally(lambda: f"callboard: run {spool.manifest.run or spool.manifest.name}")
        self._background = Background(
            spool, transport, self._tally, send_earlier if manifest.create is None else None
        )
        self._started_at = time.monotonic() - wall_time_s
        self._agent_steps = agent_steps
        self._episode_steps = agent_steps
        self._frames_per_step: float | None = None
        self.counts_iterations = counts_iterations
        """Whether its steps are iterations, not agent steps."""
        self.config = RunConfig(config or {}, self._describe, self._shield)
        """The run's settings; `run.config.update(...)` adds to them."""
        self._metrics: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._arguments = Arguments(self._tally)
        self._closed = False
        self._closing = threading.RLock()
        self._unfinished: str | None = None
        """Why the run has failed if it is open when the process exits, as during a call of `learn`."""
        self._watch = ends.watch(lambda reason: self._end("stopped", reason, ends.SIGNAL_TIMEOUT_S))
        self._background.start()
        self._recorder = Recorder(self._background, self._progress) if record else None
        atexit.register(self._at_exit)
        # A process of multiprocessing that was forked ends without the functions of atexit.
        self._finalizer = (
            None if parent_process() is None else Finalize(None, self._at_end_of_child, exitpriority=0)
        )

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

    def __repr__(self) -> str:
        """Name, and the address of its page."""
        return f"<ExternalRun {self.name!r} {self.url or 'not sent yet'}>"

    def _repr_html_(self) -> str:
        """A link to its page, in a notebook."""
        name = html.escape(self.name)
        return name if self.url is None else f'<a href="{html.escape(self.url)}" target="_blank">{name}</a>'

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
        """Values, episodes, lines and files that are not stored: dropped, or refused by the server."""
        return sum(self.dropped.values())

    @property
    def dropped(self) -> dict[str, int]:
        """How many values, episodes, lines and files are not stored, by reason."""
        return self._background.dropped

    @property
    def n_changed(self) -> int:
        """Values, episodes, lines and files that were logged otherwise than given: cut, for example."""
        return self._tally.n_changed

    def log(
        self,
        values: Mapping[str, SupportsFloat | Histogram | Image | Table],
        *,
        agent_steps: SupportsIndex | SupportsFloat | None = None,
        frames: SupportsIndex | SupportsFloat | None = None,
    ) -> None:
        """Log values of metrics. They are sent by another thread. Never raises.

        What can be read as a number is logged as that number: arrays and tensors of one element, decimals,
        texts such as `"0.5"`. A value that cannot be read is dropped, and the others are logged.

        Args:
            values: metric -> value. A metric may have any name of up to 200 characters; `/` makes sections,
                such as `loss/policy`. NaN, Infinity and -Infinity are kept apart. A value may also be a
                `callboard.Histogram`, `callboard.Image` or `callboard.Table`, shown at its step.
            agent_steps: agent steps (decisions) of the whole run so far, over all environments; the most that
                were logged if they cannot be read. Values whose agent steps are less than those of the
                metric's last value are dropped by the server.
            frames: emulator frames so far, if an agent step takes several; default: as many as agent steps.
        """
        # A microsecond, however many floats: all names are looked up at once, all types checked at once.
        try:
            if (
                type(values) is dict
                and type(agent_steps) is int
                and 0 <= agent_steps <= MAX_STEPS
                and (frames is None or (type(frames) is int and 0 <= frames <= MAX_STEPS))
                and (known := self._metrics.get(tuple(values)))
                and _FLOAT.issuperset(map(type, logged := [*values.values()]))
                and not self._closed
            ):
                try:
                    self._add_points(agent_steps, frames, known, logged)
                except Exception as error:
                    self._drop_after(error, len(logged))
                return
        except Exception as error:  # of a name of the script's own, when it is compared
            pass_on(error)
        n_left = len(values) if type(values) is dict else 1
        try:
            pairs = self._arguments.pairs(values)
            n_left = len(pairs)
            for n_counted in self._log(pairs, agent_steps, frames):
                n_left -= n_counted
        except Exception as error:
            self._drop_after(error, n_left)

    def _log(self, pairs: list[tuple[Any, Any]], agent_steps: Any, frames: Any) -> Iterator[int]:
        """Log or drop these values; yields how many have just been counted as one or the other."""
        if self._closed:
            self._tally.drop(len(pairs), _CLOSED)
            yield len(pairs)
            return
        steps = self._steps("agent_steps", agent_steps)
        n_frames = None if frames is None else self._arguments.frames(frames)
        metrics, logged = [], []
        for name, value in pairs:
            if issubclass(type(value), Media):  # what an object says of itself may raise
                self._add_media(self._arguments.metric(name), value, steps)
                yield 1
                continue
            number, kind = as_number(value)
            if number is None:
                self._tally.drop(1, f"no number: {kind}", f"{shown(name)} is {shown(value)}")
                yield 1
                continue
            if kind:
                self._tally.change(f"{kind}: it is logged as infinite", shown(name))
            metrics.append(self._arguments.metric(name))
            logged.append(number)
        for first in range(0, len(logged), _ROWS_PER_ENTRY):
            part = slice(first, first + _ROWS_PER_ENTRY)
            self._add_points(steps, n_frames, tuple(metrics[part]), logged[part])
            yield len(logged[part])
        if len(pairs) == len(logged) <= _ROWS_PER_ENTRY and _TEXT.issuperset(type(name) for name, _ in pairs):
            if len(self._metrics) >= _MAX_KNOWN_CALLS:
                self._metrics = {}
            self._metrics[tuple(name for name, _ in pairs)] = tuple(metrics)

    def _add_media(self, metric: str, value: Any, steps: int) -> None:
        if not isinstance(value, Histogram):
            self._add_file("media", lambda: _named(value.sent(self._tally.change), metric), steps, value.kind)
            return
        try:
            edges, counts = value.bins(self._tally.change)
        except Exception as error:
            pass_on(error)
            self._tally.drop(1, "a histogram that cannot be kept", f"{metric}: {as_text(error)}")
            return
        self._agent_steps = max(self._agent_steps, steps)
        wall_time_s = time.monotonic() - self._started_at
        self._background.add(Bins(metric, steps, wall_time_s, edges, counts), 1)

    def _add_points(
        self, steps: int, frames: int | None, metrics: tuple[str, ...], logged: list[float]
    ) -> None:
        if steps > self._agent_steps:
            self._agent_steps = steps
        if frames and steps:
            self._frames_per_step = frames / steps
        wall_time_s = time.monotonic() - self._started_at
        self._background.add(Points(steps, frames, wall_time_s, metrics, logged), len(logged))

    def episode(
        self,
        return_: SupportsFloat,
        length: SupportsIndex | SupportsFloat,
        *,
        agent_steps: SupportsIndex | SupportsFloat | None = None,
    ) -> None:
        """Log a finished training episode. Never raises.

        A return or a length that cannot be read is left out, and the other one is stored.

        Args:
            return_: the episode's true return: the sum of the rewards, neither clipped nor scaled. A
                return that is not finite is stored and left out of the score.
            length: the episode's agent steps.
            agent_steps: agent steps of the run at its end; default: the sum of the lengths, but at least the
                most that were logged. Its frames are in proportion to those that `log` was given last.
        """
        try:
            if (
                type(return_) is float
                and return_ - return_ == 0
                and type(length) is int
                and 1 <= length <= MAX_STEPS
                and (agent_steps is None or (type(agent_steps) is int and 0 <= agent_steps <= MAX_STEPS))
                and not self._closed
            ):
                self._add_episode(return_, length, agent_steps)
            else:
                self._episode(return_, length, agent_steps)
        except Exception as error:
            self._drop_after(error, 1)

    def _episode(self, return_: Any, length: Any, agent_steps: Any) -> None:
        if self._closed:
            self._tally.drop(1, _CLOSED)
            return
        value, kind = as_number(return_)
        if value is not None and value - value != 0:
            kind = "infinite" if value == value else "NaN"
        steps, kind_of_length = as_steps(length, minimum=1)
        if value is None and steps is None:
            self._tally.drop(1, f"an episode whose return is no number: {kind}", shown(return_))
            return
        if kind:
            self._tally.change(f"a return that is {kind}: the score leaves it out", shown(return_))
        if kind_of_length:
            what = "it is cut to whole agent steps" if steps else "the episode is stored without it"
            self._tally.change(f"a length that is {kind_of_length}: {what}", shown(length))
        at = None if agent_steps is None else self._steps("agent_steps", agent_steps)
        self._add_episode(value, steps, at)

    def _add_episode(self, return_: float | None, length: int | None, at: int | None) -> None:
        self._episode_steps += length or 0
        if at is None and self.counts_iterations:
            at = self._agent_steps
        if at is None:
            at = max(self._episode_steps, self._agent_steps)
        if at > self._agent_steps:
            self._agent_steps = at
        frames = None
        if self._frames_per_step is not None:
            frames = min(round(at * self._frames_per_step), MAX_STEPS)
        wall_time_s = time.monotonic() - self._started_at
        self._background.add(Episode(at, wall_time_s, return_, length, frames), 1)

    def text(
        self,
        name: str,
        text: str | None = None,
        *,
        agent_steps: SupportsIndex | SupportsFloat | None = None,
        level: str = "info",
    ) -> None:
        """Write a line into the run's log: `name: text`, or `name` alone. Never raises.

        Args:
            name: what the text is, or the whole line.
            text: the text. A line of more than 10,000 characters is cut.
            agent_steps: agent steps of the run that the text belongs to, if any.
            level: `debug`, `info`, `warning` or `error`.
        """
        with self._shield(1):
            if self._closed:
                self._tally.drop(1, _CLOSED)
                return
            line = as_text(name) if text is None else f"{as_text(name)}: {as_text(text)}"
            self._add_line(level, self._cut(line, MAX_MESSAGE_CHARACTERS), agent_steps)

    def alert(
        self,
        title: str,
        text: str = "",
        *,
        agent_steps: SupportsIndex | SupportsFloat | None = None,
        level: str = "warning",
    ) -> None:
        """Raise an alert, which is also a line of the run's log. Never raises an exception.

        It appears in the inbox of the token's user, and where rules about scripts' alerts send it. Title and
        text are plain text.

        Args:
            title: one line of at most 255 characters.
            text: more, of at most 4,096 characters.
            agent_steps: agent steps of the run that it is about; default: the most that were logged.
            level: `info`, `warning` or `error`.
        """
        with self._shield(1):
            if self._closed:
                self._tally.drop(1, _CLOSED)
                return
            named = self._cut(as_text(title), MAX_ALERT_TITLE) or "alert"
            at = self._agent_steps if agent_steps is None else agent_steps
            self._add_line(level, self._cut(as_text(text), MAX_ALERT_TEXT), at, named)

    def _cut(self, text: str, n_characters: int) -> str:
        if len(text) > n_characters:
            self._tally.change(f"a text of more than {n_characters:,} characters: it is cut")
        return clean(text, n_characters)

    def _add_line(self, level: Any, message: str, agent_steps: Any, alert: str | None = None) -> None:
        steps = None if agent_steps is None else self._steps("agent_steps", agent_steps)
        if type(level) is not str or level not in LEVELS:
            self._tally.change(f"a level that is none of {', '.join(LEVELS)}: info is used", shown(level))
            level = "info"
        self._background.add(Line(time.time(), level, message, steps, alert), 1)

    def video(
        self,
        path_or_frames: Any,
        *,
        agent_steps: SupportsIndex | SupportsFloat | None = None,
        fps: SupportsFloat = 30.0,
    ) -> None:
        """Show a video on the run's page: a file, or frames. Never raises.

        What is given is copied to disk before this returns, so that it may change afterwards. Another thread
        compresses frames and sends it, and a worker of the server encodes it. Why a video cannot be sent is
        reported in the script and in the run's log.

        Args:
            path_or_frames: path of an MP4, MOV, WebM, Matroska, AVI or GIF file of at most 256 MiB; or
                frames, a uint8 array of the shape (T, H, W, 3), RGB. Of more than 256 MiB or 20,000 frames,
                every second, third, ... frame is sent, at the speed of the whole.
            agent_steps: agent steps of the run that it shows; default: the most that were logged.
            fps: frames per second, of frames.
        """
        with self._shield(1):
            steps = self._agent_steps if agent_steps is None else self._steps("agent_steps", agent_steps)
            self._add_file(
                "video", lambda: video_of(path_or_frames, self._arguments.fps(fps), self._tally.change), steps
            )

    def checkpoint(
        self,
        path: str | os.PathLike[str],
        *,
        agent_steps: SupportsIndex | SupportsFloat | None = None,
        score: SupportsFloat | None = None,
    ) -> None:
        """Store a file with the run, such as saved parameters. The server stores it unchanged. Never raises.

        The file is copied before this returns, so that it may change afterwards. Another thread sends it. Why
        a file cannot be sent is reported in the script and in the run's log.

        Args:
            path: path of the file, of at most 1 GiB.
            agent_steps: agent steps of the run when it was saved; default: the most that were logged.
            score: what was measured for it, such as a mean return.
        """
        with self._shield(1):
            steps = self._agent_steps if agent_steps is None else self._steps("agent_steps", agent_steps)
            value = None if score is None else self._arguments.score(score)
            self._add_file("checkpoint", lambda: checkpoint_of(path, value), steps)

    def flush(self, timeout_s: float = CLOSE_TIMEOUT_S) -> bool:
        """Wait until the server has stored everything logged so far; False if that takes longer."""
        return self._background.flush(seconds_of(timeout_s, CLOSE_TIMEOUT_S))

    def close(
        self, state: str | None = None, reason: str | None = None, *, timeout_s: float = CLOSE_TIMEOUT_S
    ) -> None:
        """End the run, and send what is left. A second call does nothing. Never raises.

        What cannot be sent stays in the spool for `callboard.sync()`.

        Args:
            state: `finished`, `failed` or `stopped`; default: `stopped` after SIGTERM, else `finished`.
            reason: a line for the run's page.
            timeout_s: how long to wait for the server at most.
        """
        if self._closed:
            return
        seen, seen_reason = ends.outcome()
        if state is None:
            state, reason = seen, seen_reason if reason is None else reason
        elif type(state) is not str or state not in ("finished", "failed", "stopped"):
            self._tally.change(
                f"a state that is not finished, failed or stopped: {seen} is used", shown(state)
            )
            state = seen
        self._end(state, reason, timeout_s)

    def _end(self, state: str, reason: Any, timeout_s: Any) -> None:
        with self._closing:  # the script and a signal may end it at the same time
            if self._closed:
                return
            self._closed = True
            atexit.unregister(self._at_exit)
            if self._recorder is not None:
                self._recorder.stop()
            if self._finalizer is not None:
                self._finalizer.cancel()
            text = None if reason is None else as_text(reason)
            self._background.close(state, text, seconds_of(timeout_s, CLOSE_TIMEOUT_S))
            ends.unwatch(self._watch)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close in the state that the exception means."""
        self._end(*ends.outcome(error), CLOSE_TIMEOUT_S)

    def __reduce__(self) -> Any:
        """Refuse to be sent to another process.

        Raises:
            TypeError: always.
        """
        raise TypeError("a run cannot be sent to another process: log in the process that called init")

    def _progress(self) -> tuple[int, float]:
        return self._agent_steps, time.monotonic() - self._started_at

    def learn(self, fields: dict[str, Any]) -> None:
        """Send what `init` has been given, where the run had been created before."""
        if any(value for value in fields.values()):
            self._describe(fields)

    def _describe(self, fields: dict[str, Any]) -> None:
        """Send settings that arrive after `init`. After the end of the run they are counted as dropped.

        Raises:
            ValueError: they are too large.
        """
        if self._closed:
            self._tally.drop(1, _CLOSED)
        elif len(dumps(fields)) > MAX_REQUEST_BYTES:
            raise ValueError(f"config: must have at most {MAX_REQUEST_BYTES:,} bytes as JSON")
        else:
            self._background.add(Description(fields), 1)

    def _rewind(self, agent_steps: int) -> None:
        """Continue a resumed run from these agent steps: what it has after them is kept aside before
        anything that is logged next is sent."""
        with self._shield(0):
            if self._background.n_logged:
                self.flush()
            self._spool.set_manifest(replace(self._spool.manifest, rewind_to=agent_steps))
            self._agent_steps = self._episode_steps = agent_steps

    def _add_file(
        self, kind: str, read: Callable[[], SentFile], agent_steps: int, what: str | None = None
    ) -> None:
        what = what or kind
        if self._closed:
            self._tally.drop(1, _CLOSED)
            return
        wall_time_s = round(time.monotonic() - self._started_at, 3)
        try:
            sent = read()
            fields = {"agent_steps": agent_steps, "wall_time_s": wall_time_s} | sent.fields
            self._background.add_file(kind, sent.n_bytes, sent.write, fields)
        except Exception as error:
            pass_on(error)
            reason = as_text(error) or kind_of(error)
            self._tally.drop(1, f"{_article(what)} that cannot be sent", reason)
            with self._shield(0):
                self._background.add_line("warning", f"{_article(what).capitalize()} was not sent: {reason}")
            return
        self._agent_steps = max(self._agent_steps, agent_steps)

    def _steps(self, argument: str, value: Any) -> int:
        """Agent steps; the most that were logged if they cannot be read."""
        return self._arguments.steps(argument, value, self._agent_steps)

    @contextmanager
    def _shield(self, n_rows: int) -> Iterator[None]:
        """Whatever goes wrong inside is counted as dropped rows, and ends no training."""
        try:
            yield
        except Exception as error:
            self._drop_after(error, n_rows)

    def _drop_after(self, error: Exception, n_rows: int) -> None:
        pass_on(error)
        self._tally.drop(n_rows, f"an error of the client: {kind_of(error)}", as_text(error))

    def _at_end_of_child(self) -> None:
        error = sys.exc_info()[1]  # it is on its way out of the process's function
        if error is None:
            self._at_exit()
        else:
            self._end(*ends.outcome(error), CLOSE_TIMEOUT_S)

    def _at_exit(self) -> None:
        state, reason = ends.outcome_at_exit(self._watch)
        if state == "finished" and self._unfinished is not None:
            state, reason = "failed", self._unfinished
        self._end(state, reason, CLOSE_TIMEOUT_S)


def _named(sent: SentFile, metric: str) -> SentFile:
    """An image or a table under a name."""
    return sent._replace(fields={**sent.fields, "metric": metric})


def _article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
