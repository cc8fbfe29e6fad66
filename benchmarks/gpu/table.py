"""The results as text: Markdown whose tables are aligned, so that they can be read as they are."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

Record = dict[str, Any]
_PONG_LINES = 20
"""Points of the training of Pong that the table shows; the JSON has all."""


def table(results: Record) -> str:
    """The text of all results.

    Args:
        results: what `benchmarks.gpu.results.Results.as_dict` returns; stages and rows may be missing.
    """
    rows = results["rows"]
    stages = {row["stage"]: [other for other in rows if other["stage"] == row["stage"]] for row in rows}
    throughput = stages.get("throughput", [])
    ceiling = max(_rates(row for row in throughput if row["method"] == "emulators"), default=None)
    parts = [
        "# benchmarks.gpu",
        _facts(results["facts"]),
        _section("Stages", results["stages"], _STAGES),
        _section("Tests", stages.get("tests", []), _TESTS),
        _section("Agreement with the CPU", stages.get("agreement", []), _AGREEMENT),
    ]
    by_method: dict[str, list[Record]] = {}
    for row in throughput:
        by_method.setdefault(row["method"], []).append(row)
    parts += [
        _section("The emulators alone, random play", by_method.pop("emulators", []), _EMULATORS),
        _section("PAAC", by_method.pop("paac", []), _paac(ceiling)),
        _section("GA3C", by_method.pop("ga3c", []), _GA3C),
        _section("DQN and A3C", [row for method in by_method.values() for row in method], _OTHERS),
        _section("Stable-Baselines3", stages.get("peers", []), _OTHERS),
        _section("Callboard beside Stable-Baselines3", _comparisons(rows), _COMPARISONS),
        _section("Profile", stages.get("profile", []), _PROFILE),
        _pong(stages.get("pong", [])),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


Cell = Callable[[Record], Any]
Columns = Sequence[tuple[str, Cell]]


def _section(title: str, rows: list[Record], columns: Columns) -> str:
    """A heading and a table of rows; nothing without rows."""
    return f"## {title}\n\n{_grid(rows, columns)}" if rows else ""


def _grid(rows: list[Record], columns: Columns) -> str:
    """A table of rows, without the columns that have no value, and the rows' errors below it."""
    cells = {name: [_text(cell(row)) for row in rows] for name, cell in columns}
    cells = {name: column for name, column in cells.items() if any(column)}
    notes = [row.get("error") for row in rows]
    widths = [max(map(len, (name, *column))) for name, column in cells.items()]
    lines = [_line(cells, widths), _line(["-" * width for width in widths], widths)]
    lines += [_line(row, widths) for row in zip(*cells.values(), strict=True)]
    lines += [""] + [
        f"- {row.get('row', row.get('stage'))}: {note}" for row, note in zip(rows, notes, strict=True) if note
    ]
    return "\n".join(lines).rstrip()


def _line(cells: Iterable[str], widths: list[int]) -> str:
    return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return str(value).replace("|", "/").replace("\n", " ")


def _value(*names: str) -> Cell:
    """The value at nested keys, if it is there."""

    def cell(row: Record) -> Any:
        value: Any = row
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        return value

    return cell


def _percent(*names: str) -> Cell:
    value = _value(*names)

    def cell(row: Record) -> str | None:
        fraction = value(row)
        return f"{fraction:.0%}" if isinstance(fraction, int | float) else None

    return cell


def _scaled(name: str, factor: float) -> Cell:
    value = _value(name)

    def cell(row: Record) -> float | None:
        number = value(row)
        return number * factor if isinstance(number, int | float) else None

    return cell


def _rates(rows: Iterable[Record]) -> list[float]:
    return [row["agent_steps_per_s"] for row in rows if "agent_steps_per_s" in row]


_NAME: Columns = (("row", _value("row")),)
_SPEED: Columns = (("agent steps/s", _value("agent_steps_per_s")),)
_LOAD: Columns = (
    ("GPU", _percent("gpu_use_mean")),
    ("GPU max", _percent("gpu_use_max")),
    ("GPU MiB", _scaled("gpu_memory_bytes", 2**-20)),
    ("W", _value("power_w_mean")),
    ("W max", _value("power_w_max")),
    ("cores", _percent("cpu_use")),
)
_STAGES: Columns = (("stage", _value("stage")), ("seconds", _value("seconds")))
_TESTS: Columns = (
    *_NAME,
    ("passed", _value("passed")),
    ("failed", _value("failed")),
    ("skipped", _value("skipped")),
    ("failures", lambda row: ", ".join(row.get("failures", [])) or None),
)
_AGREEMENT: Columns = (
    *_NAME,
    ("passed", _value("passed")),
    ("gradient error", _value("errors", "dtheta")),
    ("update error", _value("errors", "step")),
    ("bound", _value("bound")),
    ("gradient error on the CPU", _value("errors_on_cpu", "dtheta")),
    ("repeatable", _value("repeatable")),
    ("graph launches", _value("graph_launches", "on")),
    ("max difference", _value("max_difference")),
    ("methods", lambda row: ", ".join(row.get("methods", [])) or None),
)
_EMULATORS: Columns = (*_NAME, *_SPEED, ("cores", _percent("cpu_use")))
_TIME: Columns = tuple(
    (part, _percent("metrics", f"paac/time_{part}"))
    for part in ("environment", "choosing", "learning", "rest")
)
_GA3C: Columns = (
    *_NAME,
    ("TPS", _value("metrics", "speed/updates_per_s")),
    ("PPS", _value("metrics", "speed/predictions_per_s")),
    *_SPEED,
    ("prediction batch", _value("metrics", "ga3c/prediction_batch")),
    ("training queue", _value("metrics", "ga3c/training_queue")),
    ("policy lag", _value("metrics", "ga3c/policy_lag")),
    *_LOAD,
)
_OTHERS: Columns = (*_NAME, *_SPEED, ("updates/s", _value("updates_per_s")), *_LOAD)
_COMPARISONS: Columns = (*_NAME, ("ratio", _value("ratio")))
_PROFILE: Columns = (*_NAME, ("file", _value("file")))


def _paac(ceiling: float | None) -> Columns:
    """PAAC's columns, with Figure 2's time usage, given the emulators' best rate."""

    def share(row: Record) -> str | None:
        rate = row.get("agent_steps_per_s")
        return f"{rate / ceiling:.0%}" if rate and ceiling else None

    return (*_NAME, *_SPEED, ("of the emulators", share), *_TIME, *_LOAD)


def _comparisons(rows: list[Record]) -> list[Record]:
    """The best of Callboard's rows of a method on `nature`, as a multiple of Stable-Baselines3's."""
    comparisons = []
    for method, peer in (("paac", "sb3-a2c"), ("dqn", "sb3-dqn")):
        of_nature = [row for row in rows if row.get("method") == method and row.get("network") == "nature"]
        own = max(_rates(of_nature), default=None)
        theirs = max(_rates(row for row in rows if row.get("method") == peer), default=None)
        if own and theirs:
            comparisons.append({"row": f"best {method} nature / {peer}", "ratio": own / theirs})
    return comparisons


_PONG: Columns = (
    ("wall time s", lambda point: point["point"][0]),
    ("agent steps", lambda point: point["point"][1]),
    ("mean return of 100 episodes", lambda point: _return_text(point["point"][2])),
)


def _pong(rows: list[Record]) -> str:
    """The training's points, thinned, and the evaluation."""
    if not rows:
        return ""
    parts = ["## Pong, full frame"]
    for row in rows:
        if points := row.get("points"):
            step = max(1, len(points) // _PONG_LINES)
            kept = points[::step] if points[::step][-1] == points[-1] else [*points[::step], points[-1]]
            parts.append(_grid([{"point": point} for point in kept], _PONG))
        note = f", {row['agent_steps_per_s']:,.0f} agent steps/s" if "agent_steps_per_s" in row else ""
        if "mean_return" in row:
            episodes = f"{len(row['returns'])} episodes of {row['protocol']}"
            note += f", mean return {_return_text(row['mean_return'])} over {episodes}"
        if "error" in row:
            note += f": {row['error']}"
        parts.append(f"- {row['row']}{note}")
    return "\n\n".join(parts)


def _return_text(value: float | str | None) -> str | None:
    """A return with two decimals: Pong counts as learned from 18 on, which 17.96 is not."""
    return f"{value:.2f}" if isinstance(value, int | float) else value


def _facts(facts: Record) -> str:
    return "\n".join(f"- {name}: {_text(value)}" for name, value in facts.items())
