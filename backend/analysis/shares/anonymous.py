"""Runs without what names people, machines and places, for pages that others see.

A page without names has none of a user, a host, or of a run, group, project or tag of its runs in any text
that comes from runs: a text with one is replaced, wherever in it the name stands. What the catalogue calls
its algorithms, environments and settings names nobody, and stays.
"""

import html
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sqlalchemy.orm.attributes import set_committed_value

from backend.db import Run
from backend.db.checked_json import UnreadableSpec
from backend.drawing.figure import Figure
from backend.runs.runs.external_spec import is_seed_name
from backend.runs.runs.groups import defaults, defaults_key
from backend.specs.algorithms import ALGORITHMS
from backend.specs.environments import ENVIRONMENTS
from backend.specs.run_fields import DEFAULT_PROJECT

_IS_PLACE = re.compile(r"[/\\]|^~")
"""In a setting: a path or an address."""
_IS_ABSOLUTE = re.compile(r"^[/\\~.]|^\w+:[/\\]")
"""Of an environment, whose id may have slashes."""
MIN_NAME = 3
"""Shorter names would be a part of most words: they are looked for in settings alone, as whole words."""
_NAMING: dict[str, Any] = {"name": None, "tags": [], "notes": "", "project": DEFAULT_PROJECT, "host": None}
_TEXTS = frozenset(
    {"name", "text", "hovertext", "hovertemplate", "texttemplate", "ticktext", "legendgroup", "customdata"}
    | {"meta", "label", "detail", "x", "y"}
)
"""Properties of a figure that may have texts about runs."""


class Hiding:
    """Replaces texts that have names: equal ones by equal ones, and others by others.

    Args:
        people: names of users and hosts.
        labels: names that people gave to runs, groups, projects and tags. One that is a part of what the
            catalogue calls an algorithm or an environment names nobody.
    """

    def __init__(self, people: Iterable[str], labels: Iterable[str]) -> None:
        public = "\n".join(_public_texts()).casefold()
        labels = {name for name in labels if name.casefold() not in public and name != DEFAULT_PROJECT}
        names = sorted({*people, *labels} - {""}, key=len, reverse=True)
        # Figures have texts as HTML.
        long = {form: None for name in names if len(name) >= MIN_NAME for form in (name, html.escape(name))}
        long |= {html.escape(name, quote=False): None for name in names if len(name) >= MIN_NAME}
        short = [name for name in names if len(name) < MIN_NAME]
        self._anywhere = _any_of(long)
        self._as_word = _any_of(short, r"(?<![^\W_])", r"(?![^\W_])")
        self._aliases: dict[tuple[str, str], str] = {}

    def alias(self, value: str, what: str) -> str:
        """What this text is called."""
        n = sum(kind == what for kind, _ in self._aliases)
        return self._aliases.setdefault((what, value), f"({what} {n + 1})")

    def is_naming(self, text: str) -> bool:
        """Whether a text has a name."""
        return any(pattern and pattern.search(text) for pattern in (self._anywhere, self._as_word))

    def hidden(self, text: str) -> str:
        """A text of a setting, or its alias if it has a name or is a path or an address."""
        return self.alias(text, "hidden") if self.is_naming(text) or _IS_PLACE.search(text) else text

    def hide(self, figure: Figure) -> None:
        """Replace names in the texts of a figure, such as of metrics and sources of series."""
        if self._anywhere is None:
            return
        figure.data = [self._without(trace) for trace in figure.data]
        figure.layout = self._without(figure.layout)

    def _without(self, value: Any, *, is_text: bool = False) -> Any:
        if isinstance(value, str):
            return self._anywhere.sub("(hidden)", value) if is_text and self._anywhere else value
        if isinstance(value, dict):
            return {
                name: self._without(inner, is_text=is_text or name in _TEXTS) for name, inner in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._without(inner, is_text=is_text) for inner in value]
        return value


def hide_names(runs: Sequence[Run], people: Iterable[str]) -> Hiding:
    """Replace names, notes, hosts and paths in these rows, in memory alone: a session that holds them reads
    them so from then on, and does not store it. What was equal stays equal, and what differed differs.

    Args:
        runs: rows of one session, which somebody must hold on to.
        people: names of users and hosts.

    Returns:
        What replaces names in the figures of these runs.
    """
    own = [label for run in runs for label in labels_of(run)]
    hiding = Hiding(people, own)
    for run in runs:
        _hide_in(run, hiding)
    return hiding


def labels_of(run: Run) -> list[str]:
    """What people called a run and put it under."""
    return [run.name, run.group or "", run.project, *run.tags]


def _hide_in(run: Run, hiding: Hiding) -> None:
    group = hiding.alias(run.group, "group") if run.group else None
    algorithm = run.algorithm if run.algorithm in ALGORITHMS else hiding.hidden(run.algorithm)
    is_place = _IS_ABSOLUTE.search(run.environment) or hiding.is_naming(run.environment)
    is_public = run.environment in ENVIRONMENTS
    environment = (
        hiding.alias(run.environment, "environment") if is_place and not is_public else run.environment
    )
    if not isinstance(run.spec, UnreadableSpec):
        known = dict(zip(("config", "environment_config"), defaults(*defaults_key(run.spec)), strict=True))
        spec = run.spec | _NAMING | {"group": group, "algorithm": algorithm, "environment": environment}
        for section, standard in known.items():
            spec[section] = {
                name if name in standard else _setting_name(name, hiding): (
                    value if standard.get(name) == value else _mapped(value, hiding.hidden)
                )
                for name, value in (spec.get(section) or {}).items()
            }
        if package := spec.get("package"):
            spec["package"] = hiding.hidden(package)
        set_committed_value(run, "spec", spec)
    set_committed_value(run, "departures", _mapped(run.departures, hiding.hidden))
    # A default name: it is no part of what the run is called in a view.
    default = f"{algorithm} {environment.removeprefix('ALE/')}"
    for column, value in (
        *(("name", default), ("group", group), ("algorithm", algorithm), ("environment", environment)),
        *(("notes", ""), ("tags", []), ("host", None), ("error", None), ("state_reason", "")),
        *(("project", DEFAULT_PROJECT), ("wanted_host", None)),
    ):
        set_committed_value(run, column, value)


def _setting_name(name: str, hiding: Hiding) -> str:
    """Groups of seeds leave out the settings whose name ends in `seed`."""
    if not hiding.is_naming(name):
        return name
    return hiding.alias(name, "hidden") + (".seed" if is_seed_name(name) else "")


def _public_texts() -> Iterable[str]:
    for catalogue in (ALGORITHMS, ENVIRONMENTS):
        for name, entry in catalogue.items():
            yield name
            yield entry.title


def _any_of(names: Iterable[str], before: str = "", after: str = "") -> re.Pattern[str] | None:
    parts = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.compile(f"{before}(?:{parts}){after}", re.IGNORECASE) if parts else None


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    """JSON with every text changed, but for the names of fields."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {name: _mapped(inner, change) for name, inner in value.items()}
    if isinstance(value, list):
        return [_mapped(inner, change) for inner in value]
    return value
