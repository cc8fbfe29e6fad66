"""Runs as columns of a table: what they are, how far they are, and every setting that varies."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

_FIELDS = ("name", "state", "algorithm", "environment", "seed", "project", "group", "tags", "created_at")
_PROGRESS = ("agent_steps", "wall_time_s", "score", "best_return")
_SECTIONS = ("config", "environment_config", "stop")
_OTHERS = ("device", "annealing_agent_steps", "package")
"""Fields of a specification beside its sections that two runs of one algorithm may differ in."""


def columns_of(runs: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Columns with a row for each run.

    The first has the ids, as the column `run` of series has. A setting is a column, such as
    `config.learning_rate`, if the runs differ in it; in a run without it the value is None.

    Args:
        runs: runs as the REST API describes them.
    """
    columns: dict[str, list[Any]] = {"run": [run["id"] for run in runs]}
    columns |= {name: [run[name] for run in runs] for name in _FIELDS}
    columns["seed"] = [run["seed"] if run.get("seed_is_known", True) else None for run in runs]
    columns["tags"] = [",".join(run["tags"]) for run in runs]
    settings = [_settings(run) for run in runs]
    names = dict.fromkeys(name for run in settings for name in run)
    for name in names:
        values = [run.get(name) for run in settings]
        if any(value != values[0] or type(value) is not type(values[0]) for value in values):
            columns[name] = _of_one_kind(values)
    return columns | {name: [run[name] for run in runs] for name in _PROGRESS}


def _settings(run: Mapping[str, Any]) -> dict[str, Any]:
    spec = run["spec"]
    settings = {
        f"{section}.{name}": value
        for section in _SECTIONS
        for name, value in (spec.get(section) or {}).items()
    }
    return settings | {name: spec.get(name) for name in _OTHERS}


def _of_one_kind(values: list[Any]) -> list[Any]:
    """Values of a column: numbers, switches or texts, as data frames need them; others are JSON."""
    kinds = {type(value) for value in values if value is not None}
    if kinds in ({bool}, {str}) or kinds <= {int, float}:
        return [float(value) if kinds == {int, float} and value is not None else value for value in values]
    return [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
