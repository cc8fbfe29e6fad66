"""Runs without what names people, machines and places, for pages that others see."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sqlalchemy.orm.attributes import set_committed_value

from backend.db import Run
from backend.db.checked_json import UnreadableSpec

_IS_PLACE = re.compile(r"[/\\]|^~")
"""In a setting: a path or an address."""
_IS_ABSOLUTE = re.compile(r"^[/\\~.]|^\w+:[/\\]")
"""Of an environment, whose id may have slashes."""
_MIN_NAME = 3
"""Shorter names of users and hosts are not looked for in settings."""
_NAMING: dict[str, Any] = {"name": None, "tags": [], "notes": "", "project": None, "host": None}


def hide_names(runs: Sequence[Run], known: Iterable[str]) -> None:
    """Replace names, notes, hosts and paths in these rows, in memory alone: a session that holds them reads
    them so from then on, and does not store it. What was equal stays equal, and what differed differs.

    Args:
        runs: rows of one session, which somebody must hold on to.
        known: names of users and hosts, which settings may contain.
    """
    names = sorted({name for name in known if len(name) >= _MIN_NAME}, key=len, reverse=True)
    parts = [re.escape(name) for name in names]
    naming = re.compile(rf"(?<!\w)(?:{'|'.join(parts)})(?!\w)", re.IGNORECASE) if parts else None
    aliases: dict[str, str] = {}

    def alias(value: str, what: str) -> str:
        same = sum(text.startswith(f"({what} ") for text in aliases.values())
        return aliases.setdefault(f"{what} {value}", f"({what} {same + 1})")

    def hidden(text: str) -> str:
        is_named = naming is not None and naming.search(text)
        return alias(text, "hidden") if is_named or _IS_PLACE.search(text) else text

    for run in runs:
        group = alias(run.group, "group") if run.group else None
        algorithm = hidden(run.algorithm)
        is_place = _IS_ABSOLUTE.search(run.environment) or (naming and naming.search(run.environment))
        environment = alias(run.environment, "environment") if is_place else run.environment
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


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    """JSON with every text changed, but for the names of fields."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {name: _mapped(inner, change) for name, inner in value.items()}
    if isinstance(value, list):
        return [_mapped(inner, change) for inner in value]
    return value
