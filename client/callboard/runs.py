"""Runs of a server: read, follow, wait for, compare, change."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, overload

import httpx

from callboard import display
from callboard.comparing import Comparison, read_comparison
from callboard.errors import Rejected, Unreachable
from callboard.following import PATIENCE_S, Change, follow
from callboard.run import ENDED, RunRecord, export_format
from callboard.series import Series, read_npz
from callboard.spool import new_ulid
from callboard.tables import columns_of
from callboard.transport import Transport

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from matplotlib.axes import Axes

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


class Run(RunRecord):
    """A run of a server. Its fields are those of the last answer: `refresh` reads them again."""

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
        self._alone().wait(timeout_s, lost_for_s=lost_for_s, progress=progress)
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
        """Every point of some metrics, or of all.

        Args:
            metrics: names, such as `rollout/episode_return`; default: all.
            sources: include the points of single actors, not only of the run as a whole.

        Raises:
            ValueError: the run has finished without one of them.
        """
        return self._alone().series(*metrics, sources=sources)

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
        return self._alone().plot(*metrics, x=x, smooth=smooth, ax=ax)

    def tag(self, *tags: str) -> Run:
        """Add tags, and return itself."""
        self._alone().tag(*tags)
        return self

    def untag(self, *tags: str) -> Run:
        """Remove tags, and return itself."""
        self._alone().untag(*tags)
        return self

    def _alone(self) -> Runs:
        return Runs(self._transport, [self])


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
        """Every point of some metrics of all runs, or of all metrics, in one request for each 200 runs.

        Args:
            metrics: names, such as `rollout/episode_return`; default: all.
            sources: include the points of single actors, not only of the runs as a whole.

        Returns:
            The points. A metric without points adds none: a run that has not finished may log it later.

        Raises:
            ValueError: one is in none of the runs, although all have ended and at least one has finished.
        """
        names = sorted(set(metrics))
        groups = [names[first : first + MAX_METRICS] for first in range(0, len(names), MAX_METRICS)] or [[]]
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

    def to_pandas(self) -> pd.DataFrame:
        """A pandas data frame with a row for each run.

        Its columns are `run` (the id), what the runs are called and filed under, `algorithm`, `environment`,
        `seed`, every setting in which they differ, such as `config.learning_rate`, and how far they are. With
        points: `runs.series().to_pandas().merge(runs.to_pandas(), on="run")`.
        """
        import pandas as pd

        return pd.DataFrame(self.columns())

    def to_polars(self) -> pl.DataFrame:
        """A polars data frame with a row for each run and the columns of `to_pandas`."""
        import polars as pl

        return pl.DataFrame(self.columns())

    def columns(self) -> dict[str, list[Any]]:
        """The columns of `to_pandas` as lists, by name."""
        return columns_of([run.data for run in self])

    def compare(self, *, score: str = "training", at: str = "common", **fields: Any) -> Comparison:
        """Compare groups of runs that differ in their seed alone, as the page Compare does.

        Args:
            score: `training`, the mean return of the last 100 episodes, or `evaluation`, the latest one.
            at: `common`, the last step at which all runs of an environment have a score, or `end`.
            fields: other parameters of `GET /comparisons`, such as `baseline`, `pairs` or `threshold`.

        Raises:
            Rejected: no runs, or more than 100.
        """
        params = {"score": score, "at": at} | fields | {"run": [run.id for run in self]}
        return read_comparison(self._transport.request("GET", "comparisons", params=params))

    def export(self, file: str | PathLike[str], *metrics: str, sources: bool = True) -> Path:
        """Store every point of all runs in one file, with their settings, and return its path.

        Args:
            file: its ending is the format: `.csv`, `.parquet`, `.npz`, or `.zip` for TensorBoard's files.
            metrics: only these; default: all.
            sources: include the points of single actors, not only of the runs as a whole.

        Raises:
            ValueError: the ending is that of no format.
            Rejected: no runs, or more than 200.
            OSError: the file cannot be written.
        """
        params = {"metric": metrics, "sources": sources, "format": export_format(file)}
        params["run"] = [run.id for run in self]
        return self._transport.download("runs/export", file, params)

    def tag(self, *tags: str) -> Runs:
        """Add tags to all runs, and return itself."""
        return self._do("tag", tags=tags)

    def untag(self, *tags: str) -> Runs:
        """Remove tags from all runs, and return itself."""
        return self._do("untag", tags=tags)

    def archive(self, archived: bool = True) -> Runs:
        """Hide all runs from lists, or show them again, and return itself.

        Args:
            archived: whether lists hide them.
        """
        return self._do("archive" if archived else "unarchive")

    def delete(self, *, restorable: bool = False) -> None:
        """Delete all runs, which must not train, with everything that belongs to them.

        Args:
            restorable: they can be restored for an hour, on the page *Runs*.
        """
        self._act("delete", restorable=restorable)

    def _do(self, action: str, **fields: Any) -> Runs:
        self._act(action, **fields)
        return self.refresh()

    def _act(self, action: str, **fields: Any) -> None:
        """Apply an action to every run, also after one was refused.

        Raises:
            Rejected: it cannot be applied to one.
        """
        refused = []
        for first in range(0, len(self), MAX_LISTED):
            ids = [run.id for run in self._runs[first : first + MAX_LISTED]]
            body = fields | {"action": action, "ids": ids}
            answer = self._transport.request("POST", "runs/bulk", body=body, idempotency_key=new_ulid())
            refused += [item for item in answer["items"] if not item["done"]]
        if refused:
            further = f" (and {len(refused) - 1:,} more)" if len(refused) > 1 else ""
            problem = f"run {refused[0]['id']}: {refused[0]['detail']}{further}"
            raise Rejected(httpx.codes.CONFLICT, problem)

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
