"""What runs, and groups of them, are called in a view: by what differs in it.

A name is the given name, if a person gave one, then algorithm, environment and settings as far as they
differ in the view, joined by ` · `: `lr 0.001 · clip_range 0.2 · seed 3`. Settings of an algorithm are
compared among its runs, those of an environment among the runs in it. What is equal is no part of any name
but stated once (`ViewNames.shared`). No two names of a view are equal. Chips, lines, tables, lists, dialogs,
captions and exported figures all have their names from here.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple, Self, get_args

from backend.db.run import is_whole
from backend.runs.runs.external_spec import is_external
from backend.runs.runs.groups import (
    Brief,
    GroupedRun,
    Specs,
    annealing,
    compute_once,
    configs_of,
    defaults,
    defaults_key,
    json_number,
    measures,
    without_seed,
)
from backend.specs.algorithms import ALGORITHMS
from backend.specs.environments import ENVIRONMENTS
from backend.specs.run_fields import EXTERNAL

SEPARATOR = " · "
_MOST_SETTINGS = 6
"""Settings of a name; more where fewer would make two names equal."""
_LONG_TEXT = 24
"""Characters of a setting's text from which what all its values begin and end with is left out."""
_DIGITS = 3
_UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_FIRST_WITH_UNIT = 10_000
_SHORT = {"learning_rate": "lr"}
"""What settings are called that have a usual abbreviation, in place of their symbols."""
_MAX_CACHED_CHARACTERS = 4_000
"""Maximum length of a specification whose settings are cached; external runs may have many settings."""
_NUMBER = re.compile(r"\+?\d+")
"""In a default name, a seed or the number of further changes."""
_MISSING = object()

Beside = Literal["algorithm", "environment"]
"""What a view may show beside names."""
_BESIDE: tuple[Beside, ...] = get_args(Beside)


class Setting(NamedTuple):
    """The name of a setting, as the parts of its path."""

    section: str
    """`config`, `environment_config`, or `run` for what is neither."""
    name: str

    @classmethod
    def at(cls, path: str) -> Self:
        """The setting of a path in a specification, such as `config.learning_rate`."""
        section, _, name = path.partition(".")
        return cls(section, name) if section in ("config", "environment_config") else cls("run", path)

    @property
    def short(self) -> str:
        """Its abbreviation, its symbol, or the last part of its name."""
        known = _SHORT.get(self.name) or _symbols().get(self.name)
        return known or self.name.rpartition(".")[2] or self.name


@dataclass(frozen=True)
class Named:
    """What a run, or a group of them, can be named by."""

    id: str
    algorithm: str = ""
    """Title of the algorithm; so is `environment`."""
    environment: str = ""
    given: str = ""
    """The name that a person gave; empty for none."""
    settings: Mapping[Setting, Any] = field(default_factory=dict)
    """Those that are not as in `defaults`, in the order of forms."""
    defaults: Mapping[Setting, Any] = field(default_factory=dict)
    is_known: bool = True
    """Whether its settings are known: not if its specification is damaged."""
    further: Sequence[str] = ()
    """Further parts, such as the seed: each is added where names would be equal without it."""

    @property
    def subject(self) -> str:
        """Algorithm and environment, as a text."""
        return " on ".join(filter(None, (self.algorithm, self.environment)))

    def value(self, setting: Setting) -> Any:
        """The value of a setting; `_MISSING` if it has none."""
        return self.settings.get(setting, self.defaults.get(setting, _MISSING))


@dataclass(frozen=True)
class ViewNames:
    """The names of a view."""

    shared: str
    """What the names have in common, which they leave out; empty for a view of one."""
    names: list[str]
    """In the order of the view; no two are equal, unless what is beside them differs."""


def names_in_view(view: Sequence[Named], beside: Collection[Beside] = ()) -> ViewNames:
    """The names of what a view shows.

    Args:
        view: runs or groups of different ids.
        beside: what the view shows beside each name, which is then no part of it: names are equal only of
            those that differ in it.
    """
    n_left_out = 0
    settings: list[dict[Setting, str]] = [{} for _ in view]
    for sections, kind in ((("run", "config"), "algorithm"), (("environment_config",), "environment")):
        classes: dict[str, list[int]] = {}
        for at, named in enumerate(view):
            if named.is_known:
                classes.setdefault(getattr(named, kind), []).append(at)
        for members in classes.values():
            texts, n_more = _differences([view[at] for at in members], sections)
            n_left_out = max(n_left_out, n_more)
            for at, own in zip(members, texts, strict=True):
                settings[at] |= own
    labels = _labels({setting for own in settings for setting in own})
    heads = {kind: [getattr(named, kind) for named in view] for kind in ("given", *_BESIDE)}
    in_names = [kind for kind, texts in heads.items() if len(set(texts)) > 1 and kind not in beside]
    rows = [
        _Row(
            named,
            apart=tuple(getattr(named, kind) for kind in beside),
            parts=[
                *filter(None, (getattr(named, kind) for kind in in_names)),
                *(
                    f"{labels[setting]} {text}" if text else f"no {labels[setting]}"
                    for setting, text in own.items()
                    if text or setting.section != "run"
                ),
            ],
        )
        for named, own in zip(view, settings, strict=True)
    ]
    _distinguish(rows)
    shared = [texts[0] for kind, texts in heads.items() if kind not in (*in_names, *beside) and len(view) > 1]
    if n_left_out:
        shared.append(f"{n_left_out} more settings differ")
    return ViewNames(SEPARATOR.join(filter(None, shared)), [row.name for row in rows])


@dataclass
class _Row:
    """A name in the making."""

    named: Named
    apart: tuple[str, ...]
    """What stands beside the name."""
    parts: list[str]

    @property
    def name(self) -> str:
        """The parts; without any, what else there is to call it."""
        further = self.named.further if self.apart else ()
        return SEPARATOR.join(self.parts) or next(
            filter(None, (self.named.given, *further)), self.named.subject
        )


def _distinguish(rows: Sequence[_Row]) -> None:
    """Adds further parts where names would be equal."""
    for level in range(max((len(row.named.further) for row in rows), default=0)):
        for members in _alike(rows, lambda row: SEPARATOR.join(row.parts)):
            further = [next(iter(row.named.further[level:]), "") for row in members]
            if len(set(further)) > 1:
                for row, text in zip(members, further, strict=True):
                    row.parts += [text] if text else []
    length = 6
    while alike := _alike(rows, lambda row: row.name):
        for members in alike:
            for row in members:
                row.parts = [row.name, f"#{row.named.id[-length:]}"]
        length += 10


def _alike(rows: Sequence[_Row], text_of: Callable[[_Row], str]) -> list[list[_Row]]:
    """Those of equal texts, and of which the same stands beside the name."""
    alike: dict[tuple[str, ...], list[_Row]] = {}
    for row in rows:
        alike.setdefault((*row.apart, text_of(row)), []).append(row)
    return [members for members in alike.values() if len(members) > 1]


def _differences(several: Sequence[Named], sections: Sequence[str]) -> tuple[list[dict[Setting, str]], int]:
    """The settings that differ among these, as text, empty for one that is missing; and how many more differ:
    `_MOST_SETTINGS` are named, more where two would look equal."""
    # Defaults differ between environments, and say no more than their names.
    changed = {setting: None for named in several for setting in named.settings}
    order = dict.fromkeys(setting for named in several[:1] for setting in named.defaults) | changed
    columns: dict[Setting, list[str]] = {}
    for setting in order:
        if setting.section in sections and setting in changed:
            values = [named.value(setting) for named in several]
            if any(not are_equal(value, values[0]) for value in values[1:]):
                columns[setting] = value_texts(values)
    columns = dict(sorted(columns.items(), key=lambda column: "" in column[1]))  # what all have first
    rows = list(zip(*columns.values(), strict=True)) or [()] * len(several)
    n = _MOST_SETTINGS
    while len({row[:n] for row in rows}) < len(set(rows)):
        n += 1
    named_settings = list(columns)[:n]
    texts = [dict(zip(named_settings, row, strict=False)) for row in rows]
    return texts, max(0, len(columns) - n)


def _labels(settings: Iterable[Setting]) -> dict[Setting, str]:
    """What settings are called in one view: short, unless several would be called the same."""
    labels = {setting: setting.short for setting in settings}
    for longer in (lambda setting: setting.name, lambda setting: ".".join(setting)):
        counts = Counter(labels.values())
        labels = {
            setting: longer(setting) if counts[label] > 1 else label for setting, label in labels.items()
        }
    return labels


@cache
def _symbols() -> dict[str, str]:
    """The papers' symbols of settings, by name, where all algorithms have the same."""
    symbols: dict[str, set[str]] = {}
    for algorithm in ALGORITHMS.values():
        for name, schema in algorithm.config.model_json_schema()["properties"].items():
            symbols.setdefault(name, set()).add(schema.get("symbol", ""))
    return {name: next(iter(known)) for name, known in symbols.items() if len(known) == 1 and any(known)}


def value_texts(values: Sequence[Any]) -> list[str]:
    """Values of one setting as text, such that different ones have different texts: numbers in three digits,
    more where two would look equal. Empty for a missing one."""
    present = [value for value in values if value is not _MISSING]
    for digits in range(_DIGITS, 18):
        texts = {_identity(value): _text(value, digits) for value in present}
        if len(set(texts.values())) == len(texts):
            break
    else:
        texts = {_identity(value): json.dumps(value) for value in present}
    if present and all(isinstance(value, str) for value in present):
        texts = _without_common(texts)
    return ["" if value is _MISSING else texts[_identity(value)] or '""' for value in values]


def _identity(value: Any) -> str:
    """Equal for values that are equal as JSON, in which 1 and 1.0 are one number."""
    return json.dumps(json_number(value))


def _text(value: Any, digits: int) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "none"}[value]
    if isinstance(value, int | float):
        return _number(value, digits)
    return value if isinstance(value, str) else json.dumps(value)


def _number(value: float, digits: int) -> str:
    if abs(value) >= _FIRST_WITH_UNIT and value == int(value) and abs(value) < 1e12:
        rounded = float(f"{value:.{digits - 1}e}")
        size, unit = next((size, unit) for size, unit in _UNITS if abs(rounded) >= size)
        return f"{rounded / size:.{digits}g}{unit}"
    if isinstance(value, int):
        return str(value)
    text = f"{value:.{max(digits, 4) if abs(value) >= 1000 else digits}g}"
    return re.sub(r"e([+-])0*(\d)", lambda parts: f"e{parts[1].strip('+')}{parts[2]}", text)


def _without_common(texts: dict[str, str]) -> dict[str, str]:
    """Long texts without what all begin and end with, up to a whole word."""
    several = list(texts.values())
    if len(several) < 2 or max(map(len, several)) <= _LONG_TEXT:
        return texts
    start = re.sub(r"\w*$", "", _common_start(several))
    rest = [text[len(start) :] for text in several]
    end = re.sub(r"\w*$", "", _common_start([text[::-1] for text in rest]))
    cut = [text[: len(text) - len(end)] for text in rest]
    if not all(cut):
        return texts
    return {
        key: f"{'…' if start else ''}{text}{'…' if end else ''}" for key, text in zip(texts, cut, strict=True)
    }


def _common_start(texts: Sequence[str]) -> str:
    first, last = min(texts), max(texts)
    n = next((at for at, pair in enumerate(zip(first, last, strict=False)) if len(set(pair)) > 1), len(first))
    return first[:n]


def are_equal(value: Any, other: Any) -> bool:
    """Whether two settings are equal as JSON: 1, "1" and true are three values."""
    return isinstance(value, bool) == isinstance(other, bool) and bool(value == other)


def names_of_runs(
    runs: Sequence[GroupedRun], specs: Specs | None = None, beside: Collection[Beside] = ()
) -> ViewNames:
    """The names of the runs of a view.

    Args:
        runs: all of the view.
        specs: reads specifications that were not read.
        beside: as in `names_in_view`.
    """
    return names_in_view(
        [
            Named(
                id=run.id,
                algorithm=own.algorithm,
                environment=_title(ENVIRONMENTS, run.environment),
                given=_given_name(run, own),
                settings=own.settings,
                defaults=own.defaults,
                is_known=own.is_known,
                further=(
                    "" if own.seed is None else f"seed {own.seed}",
                    _fork(run.forked_at_agent_steps),
                    run.group or "",
                ),
            )
            for run, own in _with_settings(runs, specs)
        ],
        beside,
    )


def names_of_groups(firsts: Sequence[GroupedRun], specs: Specs | None = None) -> ViewNames:
    """The names of groups of seeds in a view, given one run of each. The field `group` of runs stands first
    where it differs among those of one algorithm and environment, or is that of all."""
    kinds: dict[tuple[str, str, str], set[str | None]] = {}
    for run in firsts:
        kinds.setdefault((run.origin, run.algorithm, run.environment), set()).add(run.group)
    is_shared = len({run.group for run in firsts}) == 1
    return names_in_view(
        [
            Named(
                id=run.id,
                algorithm=own.algorithm,
                environment=_title(ENVIRONMENTS, run.environment),
                given=(run.group or "") if is_shared or len(groups) > 1 else "",
                settings=own.settings,
                defaults=own.defaults,
                is_known=own.is_known,
                further=(_given_name(run, own), run.group or ""),
            )
            for run, own in _with_settings(firsts, specs)
            for groups in [kinds[run.origin, run.algorithm, run.environment]]
        ]
    )


def names_of_settings(
    algorithm: str, environment: str, several: Sequence[tuple[str, Mapping[str, Any]]]
) -> list[str]:
    """The names of configurations of one algorithm and environment.

    Args:
        algorithm: its id; so is `environment`.
        several: of each configuration what else it can be called, and its settings by path.
    """
    return names_in_view(
        [
            Named(
                id=title,
                algorithm=_title(ALGORITHMS, algorithm),
                environment=_title(ENVIRONMENTS, environment),
                settings={Setting.at(path): value for path, value in settings.items()},
                further=(title,),
            )
            for title, settings in several
        ]
    ).names


def names_of_subjects(firsts: Sequence[GroupedRun]) -> list[str]:
    """The names of what runs have in common whose scores can be compared, given one run of each: algorithm,
    environment, and its settings that differ."""
    return names_in_view(
        [
            Named(
                id=run.id,
                algorithm=own.algorithm,
                environment=_title(ENVIRONMENTS, run.environment),
                settings=_of_environment(own.settings),
                defaults=_of_environment(own.defaults),
            )
            for run, own in _with_settings(firsts, None)
        ]
    ).names


def _of_environment(settings: Mapping[Setting, Any]) -> dict[Setting, Any]:
    return {setting: value for setting, value in settings.items() if setting.section == "environment_config"}


def subject(runs: Iterable[GroupedRun]) -> str:
    """What the runs have in common, as a title."""
    several = list(runs)
    kinds = {(run.origin, run.algorithm, run.environment) for run in several}
    if len(kinds) > 1:
        return f"{len(several)} runs"
    origin, algorithm, environment = kinds.pop()
    title = f"{algorithm} (external)" if origin == EXTERNAL else _title(ALGORITHMS, algorithm)
    where = _title(ENVIRONMENTS, environment)
    return f"{title} on {where}" + (f", {len(several)} runs" if len(several) > 1 else "")


def _title(known: Mapping[str, Any], entry: str) -> str:
    return str(known[entry].title) if entry in known else entry


class _Own(NamedTuple):
    """What a run's specification gives to its name. Small, since many are cached."""

    algorithm: str
    """Its title."""
    seed: int | None
    settings: dict[Setting, Any]
    defaults: Mapping[Setting, Any]
    is_known: bool = True


def _with_settings(runs: Sequence[GroupedRun], specs: Specs | None) -> Iterator[tuple[GroupedRun, _Own]]:
    briefs = [run for run in runs if isinstance(run, Brief)]
    kept = compute_once(briefs, "settings", _own, specs, _MAX_CACHED_CHARACTERS)
    for run in runs:
        yield run, kept[run.id] if isinstance(run, Brief) else _own(run)


def _own(run: GroupedRun) -> _Own:
    spec = run.spec
    if not is_whole(spec):
        return _Own(f"{run.algorithm} (damaged)", None, {}, {}, is_known=False)
    sections, defaults = configs_of(spec), _defaults(defaults_key(spec))
    algorithm = _title(ALGORITHMS, run.algorithm)
    if is_external(spec):
        sections["config"] = without_seed(spec)
        algorithm = f"{run.algorithm} (external)" if run.algorithm in ALGORITHMS else run.algorithm
    settings = {Setting("run", name): value for name, value in measures(spec).items()}
    for section, values in sections.items():
        for name, value in values.items():
            setting = Setting(section, name)
            if not are_equal(value, defaults.get(setting, _MISSING)):
                settings[setting] = value
    for steps in annealing(spec, sections["config"]).values():
        settings[Setting("run", "annealed over")] = steps
    for name, departure in (run.departures or {}).items():
        section = next((section for section, values in sections.items() if name in values), "run")
        settings[Setting(section, name)] = departure
    return _Own(algorithm, run.seed if spec.get("seed_is_known", True) else None, settings, defaults)


@lru_cache(1_000)
def _defaults(key: tuple[str, str, str]) -> Mapping[Setting, Any]:
    """The defaults of all settings: one object for all runs that have the same."""
    sections = zip(("config", "environment_config"), defaults(*key), strict=True)
    return {Setting(section, name): value for section, values in sections for name, value in values.items()}


def _fork(agent_steps: int | None) -> str:
    return "" if agent_steps is None else f"fork at {_text(agent_steps, _DIGITS)}"


def _given_name(run: GroupedRun, own: _Own) -> str:
    """The name that a person gave the run, without the settings and the seed that were added to it; empty if
    it is a default one."""
    name = run.name.removesuffix(f" seed {own.seed}")
    start = f"{run.algorithm} {run.environment.removeprefix('ALE/')}"
    presets = ALGORITHMS[run.algorithm].presets if run.algorithm in ALGORITHMS else ()
    added = {"fork", "seed", *(preset.id for preset in presets)}
    rest = name.removeprefix(start).split()
    if name.startswith(start) and all(
        "=" in word or word in added or _NUMBER.fullmatch(word) for word in rest
    ):
        return ""
    words = name.split(" ")
    while len(words) > 1 and "=" in words[-1]:
        words.pop()
    return " ".join(words)
