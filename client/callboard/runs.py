"""Runs of a server: read, follow, wait for, stop."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, overload

from callboard import display
from callboard.errors import Rejected, Unreachable
from callboard.following import PATIENCE_S, Change, follow
from callboard.rows import number
from callboard.series import Series, read_npz
from callboard.spool import new_ulid
from callboard.transport import Transport

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ENDED = frozenset({"finished", "stopped", "failed"})
"""States in which a run stays, unless it is resumed."""

LOST_FOR_S = 300.0
"""Time after which nobody is expected to resume a lost run."""

MAX_EXPORTED = 200
"""Maximum number of runs of one request for series."""

MAX_LISTED = 100
"""Maximum number of ids of one list of runs."""

MAX_METRICS = 50
"""Maximum number of metrics of one request for series: their names have to fit into an address."""

_NAMED_RUNS = 5
"""Maximum number of finished runs whose metrics are suggested in place of an unknown one."""
_POLL_S = 1.0


class Run:
    """A run of a server. Its fields are those of the last answer: `refresh` reads them again."""

    def __init__(self, transport: Transport, data: dict[str, Any]) -> None:
        self._transport = transport
        self.data = data
        """The run as the REST API describes it."""

    def __repr__(self) -> str:
        """Id, name and state."""
        return f"<Run {self.id} {self.name!r} {self.state}>"

    def _repr_html_(self) -> str:
        """A table with a link to its page, in a notebook."""
        return display.table([(self.url, self.data)])

    @property
    def id(self) -> str:
        """Its id."""
        return str(self.data["id"])

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.data["name"])

    @property
    def state(self) -> str:
        """Its state, as of the last answer."""
        return str(self.data["state"])

    @property
    def seed(self) -> int:
        """Its seed."""
        return int(self.data["seed"])

    @property
    def score(self) -> float | None:
        """Mean true return of the last 100 training episodes, as of the last answer."""
        score = self.data["score"]
        return None if score is None else float(score)

    @property
    def has_ended(self) -> bool:
        """Whether it has finished, failed or been stopped."""
        return self.state in ENDED

    @property
    def url(self) -> str:
        """Address of its page."""
        return f"{self._transport.server.url}/runs/{self.id}"

    def refresh(self) -> Run:
        """Read its fields again, and return itself."""
        self.data = self._transport.request("GET", f"runs/{self.id}")
        return self

    def wait(
        self,
        timeout_s: float | None = None,
        *,
        lost_for_s: float | None = LOST_FOR_S,
        progress: bool = True,
    ) -> Run:
        """Wait until it has ended, and return itself.

        Args:
            timeout_s: how long at most; default: as long as it takes.
            lost_for_s: a run that stays lost for this long has ended; None: wait until it is resumed.
            progress: show a line of progress on the standard error, if that is a terminal.

        Raises:
            TimeoutError: it has not, after `timeout_s`.
            Unreachable: the server cannot be reached for a minute, or when `timeout_s` is over.
        """
        Runs(self._transport, [self]).wait(timeout_s, lost_for_s=lost_for_s, progress=progress)
        return self

    def stream(self, *metrics: str) -> Iterator[Change]:
        """What changes, as it happens, until the run has ended: new points, recorded episodes, states.

        Begins with the current state and the points so far. Reconnects if the connection breaks.

        Args:
            metrics: only points of these; default: of all metrics of the run as a whole.

        Raises:
            Unreachable: the server cannot be reached for a minute.
        """
        return follow(self._transport, self.id, metrics, ENDED)

    def series(self, *metrics: str, sources: bool = False) -> Series:
        """Every point of some metrics.

        Args:
            metrics: names, such as `rollout/episode_return`.
            sources: include the points of single actors, not only of the run as a whole.

        Raises:
            ValueError: no metric is named, or the run has finished without one of them.
        """
        return Runs(self._transport, [self]).series(*metrics, sources=sources)

    def plot(
        self, *metrics: str, x: str = "agent_steps", smooth: float = 0.0, ax: Axes | None = None
    ) -> Axes:
        """Draw curves of the run with matplotlib, as `Runs.plot` does.

        Args:
            metrics: names; default: the metric by which the run is scored.
            x: `agent_steps` or `wall_time_s`.
            smooth: weight of the past in a moving average over points, from 0 to 0.9999.
            ax: what to draw on; default: a new figure.
        """
        return Runs(self._transport, [self]).plot(*metrics, x=x, smooth=smooth, ax=ax)

    def step_notes(self) -> list[dict[str, Any]]:
        """The notes at its steps, in the order of training, as the REST API describes them."""
        notes: list[dict[str, Any]] = self._transport.request("GET", f"runs/{self.id}/step-notes")["items"]
        return notes

    def add_step_note(self, text: str, agent_steps: float) -> dict[str, Any]:
        """Note something at a step, which the learning curve on its page marks; return the note.

        Args:
            text: the note, as plain text.
            agent_steps: what it is about, at most the latest step; iterations of a run that counts them.

        Raises:
            ValueError: the steps are not a whole number.
            Rejected: the run has not reached the step, has 200 notes already, or the text is empty.
            Unreachable: the server cannot be reached. Whether the note was added is unknown.
        """
        steps = number("agent_steps", agent_steps)
        if not steps.is_integer():
            raise ValueError(f"agent_steps: must be a whole number: got {agent_steps!r}")
        body = {"agent_steps": int(steps), "text": text}
        note: dict[str, Any] = self._transport.request(
            "POST", f"runs/{self.id}/step-notes", body=body, idempotency_key=new_ulid()
        )
        return note

    def stop(self) -> None:
        """Stop it: after a last checkpoint, if Callboard trains it."""
        self.data = self._transport.request("POST", f"runs/{self.id}/stop") or self.data


class Runs(Sequence[Run]):
    """Several runs, in order."""

    def __init__(self, transport: Transport, runs: Iterable[Run]) -> None:
        self._transport = transport
        self._runs = list(runs)

    def __repr__(self) -> str:
        """The runs."""
        shown = ", ".join(map(repr, self._runs[:5])) + (", …" if len(self) > 5 else "")
        return f"<{display.counted(len(self), 'run')}: {shown}>"

    def _repr_html_(self) -> str:
        """A table of the first 50, in a notebook."""
        return display.table([(run.url, run.data) for run in self._runs])

    def __len__(self) -> int:
        """Number of runs."""
        return len(self._runs)

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> Runs: ...
    def __getitem__(self, index: int | slice) -> Run | Runs:
        """A run, or some of them."""
        if isinstance(index, slice):
            return Runs(self._transport, self._runs[index])
        return self._runs[index]

    def refresh(self) -> Runs:
        """Read the fields of all runs again, and return itself."""
        for first in range(0, len(self), MAX_LISTED):
            part = self._runs[first : first + MAX_LISTED]
            params = {"id": [run.id for run in part], "archived": "all", "limit": MAX_LISTED, "spec": True}
            rows = {
                item["id"]: item for item in self._transport.request("GET", "runs", params=params)["items"]
            }
            for run in part:
                run.data = rows.get(run.id) or run.refresh().data
        return self

    def wait(
        self,
        timeout_s: float | None = None,
        *,
        lost_for_s: float | None = LOST_FOR_S,
        progress: bool = True,
    ) -> Runs:
        """Wait until all have ended, and return itself.

        Args:
            timeout_s: how long at most; default: as long as it takes.
            lost_for_s: a run that stays lost for this long has ended: its process or host has died, and
                nobody resumes it; None: wait until it is resumed.
            progress: show a line of progress on the standard error, if that is a terminal.

        Raises:
            TimeoutError: they have not, after `timeout_s`.
            Unreachable: the server cannot be reached for a minute, or when `timeout_s` is over.
        """
        line = display.Progress() if progress else None
        try:
            return self._wait(timeout_s, lost_for_s, line)
        finally:
            if line is not None:
                line.close()

    def _wait(self, timeout_s: float | None, lost_for_s: float | None, line: display.Progress | None) -> Runs:
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        give_up_at = time.monotonic() + PATIENCE_S
        lost_since: dict[str, float] = {}
        while True:
            waiting = Runs(self._transport, [run for run in self if not run.has_ended])
            try:
                waiting.refresh()
            except Unreachable:
                now = time.monotonic()
                if now >= give_up_at or (deadline is not None and now >= deadline):
                    raise
                time.sleep(_POLL_S)
                continue
            now = time.monotonic()
            give_up_at = now + PATIENCE_S
            lost_since = {run.id: lost_since.get(run.id, now) for run in waiting if run.state == "lost"}
            n_waiting = sum(
                not run.has_ended and (lost_for_s is None or now - lost_since.get(run.id, now) < lost_for_s)
                for run in waiting
            )
            if line is not None:
                line.show([run.data for run in self], len(self) - n_waiting)
            if n_waiting == 0:
                return self
            if deadline is not None and time.monotonic() >= deadline:
                which = f"{n_waiting} of {len(self)} runs have" if len(self) > 1 else f"run {self[0].id} has"
                raise TimeoutError(f"{which} not ended after {timeout_s:g} s")
            time.sleep(_POLL_S)

    def series(self, *metrics: str, sources: bool = False) -> Series:
        """Every point of some metrics of all runs, in one request for each 200 runs.

        Args:
            metrics: names, such as `rollout/episode_return`.
            sources: include the points of single actors, not only of the runs as a whole.

        Returns:
            The points. A metric without points adds none: a run that has not finished may log it later.

        Raises:
            ValueError: no metric is named, or one is in none of the runs, although all have ended and at
                least one has finished.
        """
        if not metrics:
            raise ValueError("metrics: name at least one, such as rollout/episode_return")
        names = sorted(set(metrics))
        groups = [names[first : first + MAX_METRICS] for first in range(0, len(names), MAX_METRICS)]
        parts = []
        for first in range(0, len(self), MAX_EXPORTED):
            ids = [run.id for run in self._runs[first : first + MAX_EXPORTED]]
            points = Series.joined([self._series(ids, group, sources) for group in groups])
            parts.append(points if len(groups) == 1 else points.sorted_as(ids))
        series = Series.joined(parts)
        self._refuse_unknown([name for name in names if not (series.metric == name).any()])
        return series

    def _refuse_unknown(self, names: Sequence[str]) -> None:
        """Refuse metrics without points, unless a run may log them later.

        Raises:
            ValueError: all runs have ended, at least one has finished, and a metric is in none of them.
        """
        finished = [run for run in self if run.state == "finished"]
        if not names or not finished or not all(run.has_ended for run in self):
            return
        known: dict[str, None] = {}
        for run in finished[:_NAMED_RUNS]:
            items = self._transport.request("GET", f"runs/{run.id}/series")["items"]
            known |= dict.fromkeys(str(item["metric"]) for item in items)
        unknown = [name for name in names if name not in known]
        if known and unknown:
            close = get_close_matches(unknown[0], known, n=3)
            hint = (
                f"; close to it: {', '.join(close)}" if close else f"; there are {', '.join([*known][:10])}"
            )
            raise ValueError(f"metrics: none of the runs has {unknown[0]!r:.200}{hint}")

    def plot(
        self, *metrics: str, x: str = "agent_steps", smooth: float = 0.0, ax: Axes | None = None
    ) -> Axes:
        """Draw a curve for each run and metric with matplotlib, and return its axes.

        Each curve has at most 1,000 points, each of them the mean of as many points of the run. Needs
        matplotlib: `pip install 'callboard-client[plot]'`.

        Args:
            metrics: names; default: the metric by which each run is scored.
            x: `agent_steps` or `wall_time_s`.
            smooth: weight of the past in a moving average over points, from 0 to 0.9999.
            ax: what to draw on; default: a new figure.

        Raises:
            ModuleNotFoundError: matplotlib is not installed.
            ValueError: no runs, more than 100 curves, or another `x`.
        """
        return display.plot(self._transport, [run.data for run in self], metrics, x=x, smooth=smooth, ax=ax)

    def stop(self) -> None:
        """Stop all that have not ended."""
        for run in self.refresh():
            if run.has_ended:
                continue
            try:
                run.stop()
            except Rejected:
                if not run.refresh().has_ended:  # it may have ended just now
                    raise

    def _series(self, ids: list[str], metrics: Sequence[str], sources: bool) -> Series:
        params = {"run": ids, "metric": list(metrics), "sources": sources, "format": "npz"}
        with self._transport.stream("runs/export", params) as response, TemporaryFile() as file:
            for part in response.iter_bytes():
                file.write(part)
            file.seek(0)
            return read_npz(file)
