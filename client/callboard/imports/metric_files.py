"""Reads folders in which each metric has a file, whose path is the metric's name: TorchRL's and DVCLive's."""

from __future__ import annotations

import json
import platform
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from callboard.config import parse_value
from callboard.imports.log import MAX_PARAMS_BYTES, Log, UnreadableLog, problem_of
from callboard.imports.rows import read_rows
from callboard.names import Names


@dataclass(frozen=True)
class Layout:
    """Where a library writes its metrics, below the folder of a training."""

    library: str
    folders: tuple[str, ...]
    """Below them, each file is a metric."""
    ending: str
    settings: str
    """The file of settings, one on each line: `name: value`."""
    texts: str
    """Its files of texts."""
    has_header: bool
    """Whether the first line names the columns: `step`, and the metric's. Else they are these two."""
    step_unit: Any = None
    said: tuple[str, ...] = ()
    """What the library has not stored."""


LAYOUTS = (
    Layout(
        "TorchRL",
        ("scalars",),
        ".csv",
        "texts/hparams0.txt",
        "texts/*.txt",
        has_header=False,
        said=("TorchRL's CSV files have no times: the training time of each point is 0",),
    ),
    Layout(
        "DVCLive",
        ("plots", "metrics"),
        ".tsv",
        "params.yaml",
        "params.yaml",
        has_header=True,
        step_unit="iterations",
    ),
)


def read(root: Path) -> tuple[list[Log], set[Path]]:
    """The logs of such folders in and below a folder, and the files that are part of them."""
    logs: list[Log] = []
    taken: set[Path] = set()
    for layout in LAYOUTS:
        trainings: dict[Path, list[Path]] = defaultdict(list)
        for path in sorted(root.rglob(f"*{layout.ending}")):
            training = _training_of(path, layout)
            if training is not None and path.is_file() and _fits(path, layout):
                trainings[training].append(path)
        for training, paths in trainings.items():
            inside = training.is_relative_to(root) and training != root
            name = training.relative_to(root).as_posix() if inside else training.resolve().name
            logs.append(_read(training, name, paths, layout))
            taken |= {path.resolve() for path in paths} | set(training.glob(layout.texts))
    return logs, taken


def _training_of(path: Path, layout: Layout) -> Path | None:
    """The folder of the training that a file belongs to, if it is in a folder of metrics."""
    above = path.resolve().parts[:-1]
    n = len(layout.folders)
    ends = [end for end in range(len(above), n, -1) if above[end - n : end] == layout.folders]
    return Path(*above[: ends[-1] - n]) if ends else None


def _fits(path: Path, layout: Layout) -> bool:
    """Whether the first line of a file is that of the layout."""
    try:
        with path.open(encoding="utf-8") as file:
            cells = file.readline().strip().split("\t" if layout.has_header else ",")
    except (OSError, ValueError):
        return False
    if layout.has_header:
        return "step" in cells
    return len(cells) == 2 and None not in map(_number, cells)


def _read(training: Path, name: str, paths: Sequence[Path], layout: Layout) -> Log:
    log = Log(name, f"metric files {platform.node()} {training}", step_unit=layout.step_unit)
    log.said += layout.said
    names = Names()
    base = training.joinpath(*layout.folders)
    for path in paths:
        metric = names.stored(path.resolve().relative_to(base).with_suffix("").as_posix())
        try:
            for row in _rows(path, layout):
                steps, value = map(_number, row)
                if steps is None or steps - steps != 0 or steps != int(steps):
                    log.not_kept["rows without a whole number of steps"] += 1
                elif value is not None:
                    log.add(metric, int(steps), 0.0, value, is_ordered=False)
                else:
                    log.not_kept["cells that are not numbers"] += 1
        except (UnreadableLog, OSError, ValueError) as error:
            log.not_kept[f"the rest of {path.name}: {problem_of(error)}"] += 1
    for path in sorted(training.glob(layout.texts)):
        if path != training / layout.settings:
            log.lines.append((0.0, f"{path.stem}: {path.read_text('utf-8', 'replace')}"))
    if settings := _settings(training / layout.settings):
        log.describe_by_config(settings)
    log.describe_by_folder(training)
    log.sort()
    return log


def _rows(path: Path, layout: Layout) -> Iterator[tuple[Any, Any]]:
    """Step and value of each row."""
    if not layout.has_header:
        with path.open(encoding="utf-8") as file:
            for line in file:
                step, _, value = line.strip().partition(",")
                yield step, value
        return
    rows = read_rows(path)
    [column, *_] = [column for column in reversed(rows.columns) if column not in ("step", "timestamp")]
    for row in rows.rows:
        yield row.get("step"), row.get(column)


def _number(cell: Any) -> float | None:
    try:
        return float(cell)
    except (TypeError, ValueError):
        return None


def _settings(path: Path) -> dict[str, Any]:
    """Settings of lines such as `name: value`; those of further indented lines are nested."""
    settings: dict[str, Any] = {}
    above: list[tuple[int, dict[str, Any]]] = [(-1, settings)]
    try:
        lines = path.read_text("utf-8").splitlines() if path.stat().st_size <= MAX_PARAMS_BYTES else []
    except (OSError, ValueError):
        return {}
    for line in lines:
        name, separator, text = line.strip().partition(":")
        if not separator or name.startswith(("#", "-")):
            continue
        depth = len(line) - len(line.lstrip())
        while above[-1][0] >= depth:
            above.pop()
        if text.strip():
            above[-1][1][name] = parse_value(text.strip().strip("'\""))
        else:
            nested = above[-1][1][name] = {}
            above.append((depth, nested))
    return settings


def describe_by_arguments(log: Log, folder: Path) -> None:
    """Add the settings in `args.txt`, an object of JSON, as PFRL writes it beside its `scores.txt`."""
    path = folder / "args.txt"
    try:
        settings = json.loads(path.read_text("utf-8")) if path.stat().st_size <= MAX_PARAMS_BYTES else None
    except (OSError, ValueError, RecursionError):
        return
    if isinstance(settings, dict):
        log.describe_by_config(settings)
