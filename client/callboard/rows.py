"""Rows of the spool: what a script logs, as JSON."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from itertools import islice
from typing import Any, NamedTuple, Union

from callboard.cleaning import as_number, as_text, shown
from callboard.handlers import pass_on
from callboard.limits import (
    MAX_EPISODES,
    MAX_HISTOGRAMS,
    MAX_LINES,
    MAX_MESSAGE_CHARACTERS,
    MAX_POINTS,
    MAX_SEED,
)

_ROWS_PER_FRAME = {"points": MAX_POINTS, "episodes": MAX_EPISODES}
_LOG_FRAME_CHARACTERS = 400_000


class Points(NamedTuple):
    """Values of several metrics at one time."""

    agent_steps: int
    frames: int | None
    wall_time_s: float
    metrics: tuple[str, ...]
    values: Sequence[float]


class Episode(NamedTuple):
    """A finished training episode."""

    agent_steps: int
    wall_time_s: float
    return_: float | None
    """None if it is not known."""
    length: int | None
    """None if it is not known."""
    frames: int | None = None
    """None if they are not known."""


class Bins(NamedTuple):
    """A histogram of one metric."""

    metric: str
    agent_steps: int
    wall_time_s: float
    edges: list[float]
    counts: list[float]


class Line(NamedTuple):
    """A line of the run's log."""

    time: float
    level: str
    message: str
    agent_steps: int | None = None
    alert: str | None = None
    """Title of an alert, whose text is the message."""


class Description(NamedTuple):
    """What a script has learnt of its run after its start."""

    fields: dict[str, Any]
    """Fields of `POST /runs/{id}/config`."""


class Process(NamedTuple):
    """Where the script comes from, or what it has printed."""

    fields: dict[str, Any]
    """Fields of `POST /runs/{id}/provenance`."""


class File(NamedTuple):
    """A file whose copy is in the spool."""

    kind: str
    """`checkpoint`, `video` or `media`."""
    fields: dict[str, Any]
    """Fields of the request that follows its upload; `upload` names the copy."""


Entry = Union[Points, Episode, Bins, Line, File, Description, Process]
Frame = tuple[str, int, bytes]
"""Kind, number of rows, and rows as a JSON array."""


def frames_of(entries: Sequence[Entry]) -> Iterator[Frame]:
    """The frames of what was logged: of the script, descriptions, points, episodes, histograms, lines and
    files, each in order."""
    yield from (("provenance", 0, dumps([entry.fields])) for entry in entries if isinstance(entry, Process))
    yield from (("config", 1, dumps([entry.fields])) for entry in entries if isinstance(entry, Description))
    yield from _point_frames(entry for entry in entries if isinstance(entry, Points))
    episodes = [
        {
            "agent_steps": entry.agent_steps,
            "wall_time_s": round(entry.wall_time_s, 3),
            "return": None if entry.return_ is None else json_number(entry.return_),
            "length": entry.length,
            **({} if entry.frames is None else {"frames": entry.frames}),
        }
        for entry in entries
        if isinstance(entry, Episode)
    ]
    size = _ROWS_PER_FRAME["episodes"]
    for first in range(0, len(episodes), size):
        part = episodes[first : first + size]
        yield "episodes", len(part), dumps(part)
    histograms = [
        {**entry._asdict(), "wall_time_s": round(entry.wall_time_s, 3)}
        for entry in entries
        if isinstance(entry, Bins)
    ]
    for first in range(0, len(histograms), MAX_HISTOGRAMS):
        rows = histograms[first : first + MAX_HISTOGRAMS]
        yield "histograms", len(rows), dumps(rows)
    yield from _line_frames(entry for entry in entries if isinstance(entry, Line))
    yield from ((entry.kind, 1, dumps([entry.fields])) for entry in entries if isinstance(entry, File))


def _point_frames(entries: Iterable[Points]) -> Iterator[Frame]:
    columns: dict[str, tuple[list[int], list[int | None], list[float], list[float | str]]] = {}
    n_rows = 0
    for entry in entries:
        if n_rows + len(entry.values) > _ROWS_PER_FRAME["points"]:
            yield _point_frame(columns, n_rows)
            columns, n_rows = {}, 0
        n_rows += len(entry.values)
        for metric, value in zip(entry.metrics, entry.values):
            column = columns.get(metric)
            if column is None:
                column = columns[metric] = ([], [], [], [])
            column[0].append(entry.agent_steps)
            column[1].append(entry.frames)
            column[2].append(round(entry.wall_time_s, 3))
            column[3].append(json_number(value))
    if n_rows:
        yield _point_frame(columns, n_rows)


def _point_frame(
    columns: dict[str, tuple[list[int], list[int | None], list[float], list[float | str]]], n_rows: int
) -> Frame:
    series = [
        {
            "metric": metric,
            "agent_steps": agent_steps,
            "frames": None if not any(frames) else _filled(frames, agent_steps),
            "wall_time_s": wall_time_s,
            "value": value,
        }
        for metric, (agent_steps, frames, wall_time_s, value) in columns.items()
    ]
    return "points", n_rows, dumps(series)


def _filled(frames: list[int | None], agent_steps: list[int]) -> list[int]:
    return [steps if frame is None else frame for frame, steps in zip(frames, agent_steps)]


def _line_frames(lines: Iterable[Line]) -> Iterator[Frame]:
    part: list[dict[str, str | int]] = []
    n_characters = 0
    for line in lines:
        if part and (n_characters + len(line.message) > _LOG_FRAME_CHARACTERS or len(part) == MAX_LINES):
            yield "log", len(part), dumps(part)
            part, n_characters = [], 0
        time = datetime.fromtimestamp(line.time, timezone.utc).isoformat()
        row: dict[str, str | int] = {"time": time, "level": line.level, "message": line.message}
        if line.agent_steps is not None:
            row["agent_steps"] = line.agent_steps
        if line.alert is not None:
            row["alert"] = line.alert
        part.append(row)
        n_characters += len(line.message)
    if part:
        yield "log", len(part), dumps(part)


def json_number(value: float) -> float | str:
    """A number in JSON, which has neither NaN nor infinities: these are texts."""
    if math.isfinite(value):
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def part_of(kind: str, rows: bytes, first: int, last: int) -> bytes:
    """The rows `[first:last]` of a frame; each value of points is a row."""
    whole = json.loads(rows)
    if kind != "points":
        return dumps(whole[first:last])
    part, at = [], 0
    for series in whole:
        n = len(series["value"])
        begin, end = max(first - at, 0), min(last - at, n)
        if begin < end:
            part.append(
                {
                    name: column[begin:end] if isinstance(column, list) else column
                    for name, column in series.items()
                }
            )
        at += n
    return dumps(part)


def split(kind: str, n_rows: int, rows: bytes, max_bytes: int) -> Iterator[Frame]:
    """A frame as several that are small enough; one row may be larger."""
    if len(rows) <= max_bytes or n_rows < 2:
        yield kind, n_rows, rows
        return
    half = n_rows // 2
    yield from split(kind, half, part_of(kind, rows, 0, half), max_bytes)
    yield from split(kind, n_rows - half, part_of(kind, rows, half, n_rows), max_bytes)


def dumps(value: Any) -> bytes:
    """Compact JSON."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def number(argument: str, value: Any) -> float:
    """A value as a float.

    Raises:
        ValueError: it is not a number.
    """
    read = as_number(value).value
    if read is None or isinstance(value, (str, bytes, bytearray)):
        raise ValueError(f"{argument}: must be a number: got {shown(value)}")
    return read


def is_seed(value: Any) -> bool:
    """Whether a value is a whole number that can be a seed: `5`, `5.0` and `"5"` are the same."""
    try:
        if isinstance(value, str):
            return re.fullmatch("[0-9]{1,30}", value) is not None and int(value) <= MAX_SEED
        if isinstance(value, bool):
            return False
        return bool(0 <= value <= MAX_SEED and int(value) == value)
    except Exception as error:  # of any object
        pass_on(error)
        return False


def seed_of(value: Any) -> int:
    """A seed.

    Raises:
        ValueError: it is not a whole number, or is out of bounds.
    """
    if not is_seed(value):
        raise ValueError(f"seed: must be a whole number from 0 to 2**63 - 1: got {shown(value)}")
    return int(value)


RUN_ID = re.compile("[0-9A-HJKMNP-TV-Z]{26}")
"""The id of a run."""


def run_id_of(value: Any, what: str = "run") -> str:
    """The id of a run, or of something else, without space around it.

    Raises:
        ValueError: it cannot be one.
    """
    text = as_text(value).strip()
    if not RUN_ID.fullmatch(text):
        raise ValueError(f"id: must be the id of a {what}, 26 digits and capital letters: got {shown(text)}")
    return text


def mapping(argument: str, values: Any, example: str) -> dict[str, Any]:
    """The fields of an argument; none if it is None.

    Raises:
        ValueError: it is no mapping.
    """
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise ValueError(f"{argument}: must be {example}: got {shown(values)}")
    return dict(values)


def items(argument: str, values: Any, example: str, most: int = 10_000) -> list[Any]:
    """The items of a list or of another iterable.

    Raises:
        ValueError: it is a text, bytes or a mapping, cannot be iterated over, or has too many items.
    """
    listed: list[Any] | None = None
    try:
        if not isinstance(values, (str, bytes, bytearray, memoryview, Mapping)):
            listed = list(islice(iter(values), most + 1))
    except Exception as error:  # of any object
        pass_on(error)
        listed = None
    if listed is None:
        raise ValueError(f"{argument}: must be a list, such as {example}: got {shown(values)}")
    if len(listed) > most:
        raise ValueError(f"{argument}: must be at most {most:,}: got more")
    return listed


def text(argument: str, value: Any, most: int, *, empty: bool = False) -> str:
    """A text of at most `most` characters that any database can store.

    Raises:
        ValueError: it is not text, is empty or too long, or contains a null byte or a lone surrogate.
    """
    if type(value) is not str:
        try:
            value = str.__str__(value)  # of a subclass, such as NumPy's
        except Exception as error:
            pass_on(error)
            raise ValueError(f"{argument}: must be text: got {shown(value)}") from None
    assert isinstance(value, str)
    if not value and not empty:
        raise ValueError(f"{argument}: must not be empty")
    if len(value) > most:
        raise ValueError(f"{argument}: must have at most {most:,} characters: got {len(value):,}")
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise ValueError(f"{argument}: must not contain null bytes or lone surrogates")
    return value


def clean(value: str, most: int = MAX_MESSAGE_CHARACTERS) -> str:
    """A text without what cannot be stored, cut if it is too long."""
    whole = value.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")
    return whole if len(whole) <= most else whole[: most - 1] + "…"
