"""Runs without what names people, machines and places, for pages that others see."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sqlalchemy.orm.attributes import set_committed_value

from backend.db import Run
from backend.db.checked_json import UnreadableSpec
from backend.specs.algorithms import ALGORITHMS
from backend.specs.environments import ENVIRONMENTS
from backend.specs.run_fields import DEFAULT_PROJECT

_IS_PLACE = re.compile(r"[/\\]|^~")
"""In a setting: a path or an address."""
_IS_ABSOLUTE = re.compile(r"^[/\\~.]|^\w+:[/\\]")
"""Of an environment, whose id may have slashes."""
_MIN_NAME = 3
"""Shorter names are not looked for in settings."""
_NAMING: dict[str, Any] = {"name": None, "tags": [], "notes": "", "project": None, "host": None}


def hide_names(runs: Sequence[Run], known: Iterable[str]) -> None:
    """Replace names, notes, hosts and paths in these rows, in memory alone: a session that holds them reads
    them so from then on, and does not store it. What was equal stays equal, and what differed differs.

    Names of users and hosts are looked for anywhere in a text; those of runs, groups, projects and tags,
    which may be plain words, where no letter or digit is beside them. What the catalogues have stays.

    Args:
        runs: rows of one session, which somebody must hold on to.
        known: names of users and hosts, which settings may contain.
    """
    of_runs = {run.name for run in runs} | {tag for run in runs for tag in run.tags}
    of_runs |= {name for run in runs for name in (run.group, run.project) if name} - {DEFAULT_PROJECT}
    naming = re.compile(rf"{_any_of(known)}|(?<![^\W_])(?:{_any_of(of_runs)})(?![^\W_])", re.IGNORECASE)
    aliases: dict[str, str] = {}

    def alias(value: str, what: str) -> str:
        same = sum(text.startswith(f"({what} ") for text in aliases.values())
        return aliases.setdefault(f"{what} {value}", f"({what} {same + 1})")

    def hidden(text: str) -> str:
        return alias(text, "hidden") if naming.search(text) or _IS_PLACE.search(text) else text

    for run in runs:
        group = alias(run.group, "group") if run.group else None
        algorithm = run.algorithm if run.algorithm in ALGORITHMS else hidden(run.algorithm)
        is_place = _IS_ABSOLUTE.search(run.environment) or naming.search(run.environment)
        is_alias = is_place and run.environment not in ENVIRONMENTS
        environment = alias(run.environment, "environment") if is_alias else run.environment
        if not isinstance(run.spec, UnreadableSpec):
            spec = run.spec | _NAMING | {"group": group, "algorithm": algorithm, "environment": environment}
            for section in ("config", "environment_config"):
                spec[section] = _mapped(spec.get(section), hidden)
            set_committed_value(run, "spec", spec)
        set_committed_value(run, "departures", _mapped(run.departures, hidden))
        # A default name: it is no part of what the run is called in a view.
        default = f"{algorithm} {environment.removeprefix('ALE/')}"
        for column, value in (
            *(("name", default), ("group", group), ("algorithm", algorithm), ("environment", environment)),
            *(("notes", ""), ("tags", []), ("host", None), ("error", None), ("state_reason", "")),
        ):
            set_committed_value(run, column, value)


def _any_of(names: Iterable[str]) -> str:
    """A pattern of these names, the longest first; of nothing if there are none."""
    parts = sorted({name for name in names if len(name) >= _MIN_NAME}, key=len, reverse=True)
    return "|".join(map(re.escape, parts)) or r"(?!)"


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    """JSON with every text changed, but for the names of fields."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {name: _mapped(inner, change) for name, inner in value.items()}
    if isinstance(value, list):
        return [_mapped(inner, change) for inner in value]
    return value
