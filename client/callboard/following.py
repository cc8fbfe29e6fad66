"""Follows a run: its changes, from the server's events."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Union

import httpx
import numpy as np
import numpy.typing as npt

from callboard.errors import Unreachable
from callboard.transport import Transport

_READ_TIMEOUT = httpx.Timeout(30.0, connect=5.0, read=15.0)
"""The server sends a heartbeat every 1.5 s."""
PATIENCE_S = 60.0
"""Time without an answer of the server after which a caller that waits gives up."""
_RETRY_S = 1.0
_CATCH_UP_S = 10.0
"""Time without an event after which the run is read again: an event can be lost."""
_MAX_POINTS = 10_000
_METRICS_PER_REQUEST = 50
_EPISODES_PER_REQUEST = 200


@dataclass(frozen=True)
class StateChange:
    """The run has another state; the first change of all is the state at the start."""

    run: str
    state: str


@dataclass(frozen=True)
class NewPoints:
    """New points of a metric of the run as a whole, in order.

    Where the run went on from a checkpoint, or its script from an earlier point, the agent steps fall: the
    points at these and above take the place of those that were yielded before.
    """

    run: str
    metric: str
    agent_steps: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]
    """NaN, Infinity and -Infinity are preserved."""
    points_per_value: int
    """Number of consecutive points of which each value is the mean: 1, unless more than 10,000 are new. The
    first of such means may also have points that were yielded before."""


@dataclass(frozen=True)
class RecordedEpisode:
    """An episode with a replay was recorded."""

    run: str
    episode: str
    """The episode's id."""
    kind: str
    """`training` or `evaluation`."""
    agent_steps: int
    return_: float
    length: int


Change = Union[StateChange, NewPoints, RecordedEpisode]


def follow(
    transport: Transport, run_id: str, metrics: Sequence[str], ended: frozenset[str]
) -> Iterator[Change]:
    """The changes of a run until it has ended.

    Args:
        transport: where the run is.
        run_id: the run.
        metrics: those whose points are yielded; none for all.
        ended: the states in which it has ended.

    Raises:
        Unreachable: the server cannot be reached for a minute.
    """
    follower = _Follower(transport, run_id, metrics)
    give_up_at = time.monotonic() + PATIENCE_S
    while True:
        try:
            for _ in _signals(transport, run_id):
                yield from follower.changes()
                give_up_at = time.monotonic() + PATIENCE_S  # its consumer may have taken long
                if follower.state in ended:
                    return
        except Unreachable:
            if time.monotonic() > give_up_at:
                raise
        time.sleep(_RETRY_S)


class _Follower:
    """Knows which points and episodes of a run it has yielded, and yields the others."""

    def __init__(self, transport: Transport, run_id: str, metrics: Sequence[str]) -> None:
        self.state = ""
        self._transport = transport
        self._run = run_id
        self._metrics = frozenset(metrics)
        self._revisions: dict[str, int] = {}
        self._seen: dict[str, tuple[int, int]] = {}
        """Agent steps of a metric's last point, and how many of its points are at exactly these."""
        self._last_episode = ""

    def changes(self) -> Iterator[Change]:
        """What has changed since the last call. A new state comes last, after all that led to it; the first
        call begins with the state too."""
        run = self._transport.request("GET", f"runs/{self._run}")
        if not self.state:
            self.state = run["state"]
            yield StateChange(self._run, self.state)
        yield from self._points()
        yield from self._episodes()
        if run["state"] != self.state:
            self.state = run["state"]
            yield StateChange(self._run, self.state)

    def _points(self) -> Iterator[NewPoints]:
        items = self._transport.request("GET", f"runs/{self._run}/series")["items"]
        changed = {
            item["metric"]: item["revision"]
            for item in items
            if item["source"] == ""
            and (not self._metrics or item["metric"] in self._metrics)
            and self._revisions.get(item["metric"]) != item["revision"]
        }
        for item in items:
            self._forget_what_was_cut(item)
        names = list(changed)
        for first in range(0, len(names), _METRICS_PER_REQUEST):
            for curve in self._curves(names[first : first + _METRICS_PER_REQUEST]):
                points = self._new(curve)
                if points is not None:
                    yield points
        self._revisions |= changed

    def _forget_what_was_cut(self, item: dict[str, Any]) -> None:
        """The points of a series that are logged again, after those that were set aside, are new."""
        metric, cut_at = item["metric"], item["cut_agent_steps"]
        if item["source"] != "" or item["cut_revision"] <= self._revisions.get(metric, 0):
            return
        if metric in self._seen and cut_at < self._seen[metric][0]:
            self._seen[metric] = (cut_at + 1, 0)

    def _curves(self, metrics: list[str]) -> Iterator[dict[str, Any]]:
        """Yields the curves of these metrics, from the first agent steps at which one may have new points."""
        begin = min(self._seen.get(metric, (0, 0))[0] for metric in metrics)
        params: dict[str, Any] = {"run": self._run, "metric": metrics, "points": _MAX_POINTS}
        if begin > 0:
            params["x_from"] = begin
        for curve in self._transport.request("GET", "series", params=params)["series"]:
            if curve["bucket_rows"] > 1 and len(metrics) > 1:
                # Alone, it begins at its own last point, so that fewer points are averaged.
                yield from self._curves([curve["metric"]])
            else:
                yield curve

    def _new(self, curve: dict[str, Any]) -> NewPoints | None:
        steps = np.array(curve["x"], "f8").astype("i8")
        last, n_last = self._seen.get(curve["metric"], (-1, 0))
        if curve["bucket_rows"] == 1:
            first = 0 if last < 0 else int(np.searchsorted(steps, last, "left")) + n_last
        else:  # a mean is at its last point: the one that has points before and after `last` is new
            first = int(np.searchsorted(steps, last, "right"))
        if first >= len(steps):
            return None
        self._seen[curve["metric"]] = (int(steps[-1]), int((steps == steps[-1]).sum()))
        return NewPoints(
            self._run,
            curve["metric"],
            steps[first:],
            # Infinite numbers are text.
            np.array([np.nan if value is None else float(value) for value in curve["mean"][first:]], "f8"),
            curve["bucket_rows"],
        )

    def _episodes(self) -> Iterator[RecordedEpisode]:
        for item in sorted(self._new_episodes(), key=lambda item: item["id"]):
            self._last_episode = item["id"]
            value = item["episode_return"]
            yield RecordedEpisode(
                self._run,
                item["id"],
                item["kind"],
                item["agent_steps"],
                float("nan") if value is None else float(value),
                item["length_steps"],
            )

    def _new_episodes(self) -> list[dict[str, Any]]:
        new: list[dict[str, Any]] = []
        params: dict[str, Any] = {"limit": _EPISODES_PER_REQUEST}
        while True:
            page = self._transport.request("GET", f"runs/{self._run}/episodes", params=params)
            of_page = [item for item in page["items"] if item["id"] > self._last_episode]
            new += of_page
            # The latest come first: those behind a page without a new one are known.
            if not of_page or page["next_cursor"] is None:
                return new
            params["cursor"] = page["next_cursor"]


def _signals(transport: Transport, run_id: str) -> Iterator[None]:
    """Yields once for each event that concerns the run, or may, and once in a while if there is none."""
    catch_up_at = time.monotonic() + _CATCH_UP_S
    with transport.stream("events", timeout=_READ_TIMEOUT) as response:
        name, data = "", ""
        for line in response.iter_lines():
            field, _, value = line.partition(":")
            if field == "event":
                name = value.strip()
            elif field == "data":
                data = value.strip()
            elif line == "":
                concerns = name == "resync" or (name == "" and data and _concerns(json.loads(data), run_id))
                if concerns or time.monotonic() > catch_up_at:
                    yield
                    catch_up_at = time.monotonic() + _CATCH_UP_S
                name, data = "", ""


def _concerns(change: dict[str, Any], run_id: str) -> bool:
    """Whether something that has changed is the run, or belongs to it."""
    return run_id in (change["id"], change["parents"].get("run"))
