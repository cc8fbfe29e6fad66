"""How runs look: tables in notebooks, a line of progress in terminals, curves."""

from __future__ import annotations

import html
import logging
import math
import os
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from callboard.transport import Transport

log = logging.getLogger("callboard")

MAX_SHOWN = 50
"""Rows of a table in a notebook."""
MAX_CHARACTERS = 100
"""Characters of a cell."""
MAX_CURVES = 100
"""Curves of a plot: those of one request."""
POINTS = 1_000
"""Points of a curve, at most."""

EPISODE_RETURN = "rollout/episode_return"
"""Stands for the metric by which each run is scored."""

_COLUMNS = ("run", "state", "agent steps", "score", "algorithm", "environment", "seed")
_BAR_CHARACTERS = 24
_AXES = {"agent_steps": "agent steps", "wall_time_s": "training time (s)", "iterations": "iterations"}


def short(text: object) -> str:
    """Text of other users on one line, without control characters, cut to the length of a cell."""
    line = "".join(
        character if character.isprintable() else "\ufffd" for character in str(text)[: MAX_CHARACTERS + 1]
    )
    return line if len(line) <= MAX_CHARACTERS else f"{line[: MAX_CHARACTERS - 1]}…"


def score_text(score: object) -> str:
    """A score with two decimals below 10, one below 1,000 and none above, as pages show it."""
    number = math.nan if score is None else float(str(score))
    if not math.isfinite(number):
        return "–"
    size = abs(number)
    digits = 0 if size >= 999.95 else 1 if size >= 9.995 else 2
    # Halves of the digits that are shown, as by browsers: 119.55 is 119.6, though its bits are a little less.
    rounded = Decimal(repr(number)).quantize(
        Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP, context=Context(prec=400)
    )
    return f"{rounded or abs(rounded):,}"


def counted(n: int, noun: str) -> str:
    """A number of things: `1 run`, `1,000 runs`."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def log_text(line: Mapping[str, Any]) -> str:
    """A line of a run's log: time, level, message and agent steps."""
    steps = "" if line["agent_steps"] is None else f"  ({line['agent_steps']:,} agent steps)"
    return f"{str(line['time'])[:19]}Z  {line['level']:7}  {line['message']}{steps}"


def host_cells(host: Mapping[str, Any]) -> list[str]:
    """What a table has of a host, for the columns `HOST_COLUMNS`."""
    state = "stopped" if host["stopped_at"] else "offline" if not host["alive"] else ""
    return [
        short(host["id"]),
        state or ("draining" if host["draining"] else "accepting runs"),
        f"{len(host['runs'])} of {host['slots']}",
        short(", ".join(host["queues"])),
        str(host["cpu_count"]),
        f"{host['memory_bytes'] / 2**30:.1f} GiB",
        short(", ".join(host["devices"])),
    ]


def host_problems(hosts: Iterable[Mapping[str, Any]]) -> list[str]:
    """Lines about packages that hosts cannot use."""
    return [
        f"{short(host['id'])}: {package}: {problem}"
        for host in hosts
        for package, problem in (host["load"].get("package_problems") or {}).items()
    ]


HOST_COLUMNS = ("host", "state", "slots in use", "queues", "cores", "memory", "devices")
"""Columns of a table of hosts."""

TOKEN_COLUMNS = ("id", "name", "user", "role", "created", "last used", "expires")
"""Columns of a table of tokens."""


def token_cells(token: Mapping[str, Any]) -> list[str]:
    """What a table has of a token, for the columns `TOKEN_COLUMNS`."""
    role = str(token["role"]) + (f" ({token['scope']})" if token["scope"] else "")
    names = [str(token["id"]), short(token["name"]), short(token["user_name"]), role]
    return names + [
        str(token[field] or "never")[:16].replace("T", " ")
        for field in ("created_at", "last_used_at", "expires_at")
    ]


_SCORES = frozenset({"score", "best_return"})


def lines_of(run: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What a terminal shows of a run: the names of fields, of nested ones with dots, and their values."""
    for name, value in run.items():
        if name in _SCORES:
            shown = [] if value is None else [(name, score_text(value))]
        elif isinstance(value, float):
            shown = [(name, f"{value:,.2f}" if abs(value) >= 1 else f"{value:.4g}")]
        else:
            shown = list(_flat(name, value))
        yield from shown


def _flat(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """The values in an object or a list, without those that are empty."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(f"{name}.{key}", inner)
    elif isinstance(value, list) and any(isinstance(item, (Mapping, list)) for item in value):
        for at, inner in enumerate(value):
            yield from _flat(f"{name}[{at}]", inner)
    elif isinstance(value, list):
        if value:
            yield name, ", ".join(map(_plainly, value))
    elif value not in (None, ""):
        yield name, _plainly(value)


def _plainly(value: Any) -> str:
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)


def cells_of(run: Mapping[str, Any]) -> list[str]:
    """What a table has of a run after its name: state, agent steps, score, algorithm, environment, seed."""
    return [
        short(run["state"]),
        f"{int(run['agent_steps'] or 0):,}",
        score_text(run.get("score")),
        short(run["algorithm"]),
        short(run["environment"]),
        str(run["seed"]) if run.get("seed_is_known", True) else "–",
    ]


def table(runs: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """A table in HTML of addresses of pages and runs, whose texts cannot become markup.

    Only the first 50 runs are shown.
    """
    rows = [
        f'<tr><td><a href="{html.escape(url)}" target="_blank" rel="noopener">'
        f"{html.escape(short(run['name']))}</a></td>"
        + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells_of(run))
        + "</tr>"
        for url, run in runs[:MAX_SHOWN]
    ]
    if len(runs) > MAX_SHOWN:
        rows.append(f'<tr><td colspan="{len(_COLUMNS)}">and {len(runs) - MAX_SHOWN:,} more</td></tr>')
    head = "".join(f"<th>{name}</th>" for name in _COLUMNS)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


class Progress:
    """A line on a terminal about runs that are waited for; nothing where the output is no terminal."""

    def __init__(self, output: TextIO | None = None) -> None:
        self._output = sys.stderr if output is None else output
        self._is_shown = False
        with suppress(Exception):  # of a stream of the script's own
            self._is_shown = self._output.isatty() and os.environ.get("TERM") != "dumb"
        self._width = 0

    def show(self, runs: Sequence[Mapping[str, Any]], n_ended: int) -> None:
        """Draw the line anew: a bar, the runs that have ended, agent steps, and the score of a single run."""
        if not self._is_shown or not runs:
            return
        done = sum(_progress(run) for run in runs) / len(runs)
        n_full = int(done * _BAR_CHARACTERS)
        steps = sum(int(run["agent_steps"] or 0) for run in runs)
        parts = [f"[{'#' * n_full}{'.' * (_BAR_CHARACTERS - n_full)}] {done:4.0%}", f"{steps:,} agent steps"]
        if len(runs) == 1:
            parts += [short(runs[0]["state"]), f"score {score_text(runs[0].get('score'))}"]
        else:
            parts.insert(1, f"{n_ended:,} of {len(runs):,} runs have ended")
        self._write(", ".join(parts))

    def close(self) -> None:
        """End the line, if there is one."""
        if self._width:
            with suppress(Exception):
                self._output.write("\n")
                self._output.flush()
        self._width = 0

    def _write(self, line: str) -> None:
        columns = 80
        with suppress(OSError, ValueError, AttributeError):
            columns = os.get_terminal_size(self._output.fileno()).columns or 80
        line = line[: columns - 1]
        with suppress(Exception):
            self._output.write(f"\r{line:<{min(self._width, columns - 1)}}")
            self._output.flush()
            self._width = len(line)


def _progress(run: Mapping[str, Any]) -> float:
    """From 0 to 1; an ended run counts as complete."""
    if run["state"] in ("finished", "stopped", "failed"):
        return 1.0
    progress = run.get("progress")
    return min(1.0, max(0.0, float(progress))) if isinstance(progress, (int, float)) else 0.0


def plot(
    transport: Transport,
    runs: Sequence[Mapping[str, Any]],
    metrics: Sequence[str],
    *,
    x: str = "agent_steps",
    smooth: float = 0.0,
    ax: Axes | None = None,
) -> Axes:
    """Draw a curve for each run and metric, of at most 1,000 points each, and log the metrics without points.

    Raises:
        ModuleNotFoundError: matplotlib is not installed.
        ValueError: no runs, too many curves, or an axis that does not exist.
    """
    if x not in ("agent_steps", "wall_time_s"):
        raise ValueError(f"x: must be agent_steps or wall_time_s: got {x!r:.80}")
    if not runs:
        raise ValueError("there are no runs to plot")
    names = list(dict.fromkeys(metrics)) or [EPISODE_RETURN]
    if len(runs) * len(names) > MAX_CURVES:
        raise ValueError(
            f"at most {MAX_CURVES} curves can be drawn: got {counted(len(runs), 'run')}, "
            f"{counted(len(names), 'metric')}"
        )
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("matplotlib"):
            raise
        raise ModuleNotFoundError(
            "plot needs matplotlib: pip install 'callboard-client[plot]'", name="matplotlib"
        ) from None
    by_id = {str(run["id"]): run for run in runs}
    params = {"run": list(by_id), "metric": names, "x": x, "points": POINTS, "smooth": smooth}
    params["scored"] = not metrics
    chart = transport.request("GET", "series", params=params)
    drawn = {curve["metric"] for curve in chart["series"]}
    for name in metrics:
        if name not in drawn:
            log.warning('plot: no points of a metric "%s": check its name on the page of a run', short(name))
    axes = pyplot.subplots()[1] if ax is None else ax
    units = set()
    for curve in chart["series"]:
        label = [short(by_id[curve["run"]]["name"])] if len(by_id) > 1 else []
        label += [short(curve["metric"])] if len(names) > 1 or not label else []
        values = curve["smoothed"] or curve["mean"]
        axes.plot([*map(_number, curve["x"])], [*map(_number, values)], label=_plain(" ".join(label)))
        units.add(curve["step_unit"] if x == "agent_steps" else x)
    axes.set_xlabel(" or ".join(_AXES.get(unit, unit) for unit in sorted(units)) or _AXES[x])
    if len(names) == 1:
        axes.set_ylabel(_plain(short(names[0])))
    if len(by_id) == 1:
        axes.set_title(_plain(short(runs[0]["name"])))
    if len(chart["series"]) > 1:
        axes.legend()
    return axes


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def _plain(text: str) -> str:
    """A text that matplotlib draws as it is: a dollar begins a formula there, an underscore hides a label."""
    text = "".join(character for character in text if unicodedata.category(character) != "Cf").replace(
        "$", r"\$"
    )
    return f" {text}" if text.startswith("_") else text
