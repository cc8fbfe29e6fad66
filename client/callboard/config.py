"""Configs of runs as flat JSON.

Configs of what JSON has types for are stored differently if they differ. Anything else, such as a function or
an object, is stored as its `repr` without addresses: functions of one name are one setting, whatever their
code, and so are objects of one class without a `repr` of their own.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from callboard.cleaning import is_masked
from callboard.handlers import pass_on
from callboard.limits import (
    MAX_ALGORITHM,
    MAX_CONFIG_BYTES,
    MAX_CONFIG_FIELDS,
    MAX_CONFIG_LIST,
    MAX_CONFIG_TEXT,
    MAX_DETAILS_BYTES,
    MAX_ENVIRONMENT,
    MAX_SETTING_CHARACTERS,
)
from callboard.names import stored_name, with_checksum
from callboard.rows import clean, is_seed

MAX_DEPTH = 10
"""Maximum number of keys of a nested setting. What is deeper is stored as text."""

_COLLECTIONS = (list, tuple, set, frozenset, Mapping)
_ADDRESS = re.compile(" at 0x[0-9a-fA-F]+")
_WHOLE = re.compile("-?(0|[1-9][0-9]{0,17})")
_DECIMAL = re.compile(r"-?([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?|-?[0-9]+[eE][+-]?[0-9]{1,3}")
_NOT_IN_WORDS = re.compile('["\\\\\x00-\x1f\ud800-\udfff]')
_TABLE = re.compile(r"\|[\s:-]+\|[\s:-]+\|")

Path = tuple[Any, ...]

UNKNOWN = "unknown"
"""Algorithm or environment of a run that names it later, if at all."""


class FlatConfig(NamedTuple):
    """A config as flat JSON."""

    config: dict[str, Any]
    details: dict[str, dict[str, Any]]
    """What the JSON does not show, by setting. `path`: the keys of a setting that is nested or renamed.
    `type`: the type of a value that is stored as text but is not text, or the types of a list's items."""


def flat_config(config: Mapping[Any, Any] | object | None) -> FlatConfig:
    """A config as flat JSON: nested mappings with dotted names, other objects as text.

    Args:
        config: a mapping, or an object with attributes, such as `argparse.Namespace` or a dataclass.

    Raises:
        ValueError: it is neither, or has too many fields or too long ones.
    """
    flat = FlatConfig({}, {})
    if config is None:
        return flat
    if not isinstance(config, Mapping):
        try:
            config = vars(config)
        except TypeError:
            raise ValueError(f"config: must be a mapping or a namespace: got {config!r:.80}") from None
    settings = list(_settings(config, ()))
    if len(settings) > MAX_CONFIG_FIELDS:
        raise ValueError(f"config: must have at most {MAX_CONFIG_FIELDS} fields")
    n_named = Counter(_dotted(path) for path, _ in settings)
    for path, value in sorted(settings, key=lambda setting: not _is_plain(setting[0])):
        dotted = _dotted(path)
        detail: dict[str, Any] = {}
        name = stored_name(dotted, MAX_SETTING_CHARACTERS)
        if n_named[dotted] > 1 and not _is_plain(path):
            name = with_checksum(name, repr(path), MAX_SETTING_CHARACTERS)
        while name in flat.config:
            name = with_checksum(name, repr((path, name)), MAX_SETTING_CHARACTERS)
        if not _is_plain(path) or name != dotted:
            detail["path"] = [*map(_key, path)]
        flat.config[name], kind = stored_value(value)
        if kind is not None:
            detail["type"] = kind
        if detail:
            flat.details[name] = detail
    _check_size(flat)
    return flat


def _check_size(flat: FlatConfig) -> None:
    for part, most in ((flat.config, MAX_CONFIG_BYTES), (flat.details, MAX_DETAILS_BYTES)):
        n_bytes = len(json.dumps(part, ensure_ascii=False, separators=(",", ":")).encode())
        if n_bytes > most:
            raise ValueError(
                f"config: its settings have {n_bytes:,} bytes as JSON, the maximum is {most:,}: keep longer "
                "ones as a file, with run.checkpoint(path)"
            )


def _settings(config: Mapping[Any, Any], path: Path) -> Iterator[tuple[Path, Any]]:
    for key, value in config.items():
        if isinstance(value, Mapping) and value and len(path) < MAX_DEPTH - 1:
            yield from _settings(value, (*path, key))
        else:
            yield (*path, key), value


def _dotted(path: Path) -> str:
    return ".".join(map(str, path))


def _is_plain(path: Path) -> bool:
    return len(path) == 1 and isinstance(path[0], str)


def _key(key: Any) -> str | list[str]:
    name = stored_name(str(key), MAX_SETTING_CHARACTERS)
    return name if isinstance(key, str) else [type(key).__name__, name]


def stored_value(value: Any) -> tuple[Any, str | None]:
    """A value as JSON, and the name of its type if JSON stores it as another type.

    For a list with such items, the name is a JSON list of their names, with null for other items. A list that
    holds lists or mappings is stored as text, and the name of its type is `list`.
    """
    value, kind = _plain(value), type(value).__name__
    if value is None or isinstance(value, bool):
        return value, None
    if isinstance(value, int) and abs(value) < 2**63:
        return int(value), None
    if isinstance(value, float) and math.isfinite(value):
        return float(value), None
    if isinstance(value, str):
        return _bounded(value), None
    if isinstance(value, (set, frozenset)):
        return _bounded(_nested(value)), kind
    if isinstance(value, (list, tuple)):
        is_short = len(value) <= MAX_CONFIG_LIST
        if is_short and not any(isinstance(_plain(item), _COLLECTIONS) for item in value):
            items = [stored_value(item) for item in value]
            types = [type_name for _, type_name in items]
            kinds = json.dumps(types, ensure_ascii=False) if any(types) else None
            if kinds is None or len(kinds) <= MAX_SETTING_CHARACTERS:
                return [item for item, _ in items], kinds
        return _bounded(_nested(value)), "list"
    if isinstance(value, Mapping):
        return _bounded(_nested(value)), "dict"
    if isinstance(value, (int, float)):
        return _bounded(_number(value)), "float" if isinstance(value, float) else "int"
    return _bounded(_text(value)), kind


def _plain(value: Any) -> Any:
    """Scalars and arrays of NumPy and torch as Python's."""
    try:
        for _ in range(MAX_DEPTH):  # an array of objects may hold another one
            if hasattr(value, "item") and not getattr(value, "shape", None) and not is_masked(value):
                value = value.item()
            elif hasattr(value, "tolist"):
                value = value.tolist()
            else:
                break
    except Exception as error:  # of any object at all
        pass_on(error)
        return value
    return value


def _number(value: float) -> str:
    if isinstance(value, int):
        return hex(value) if value.bit_length() > 10_000 else str(value)
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def _nested(value: Any) -> str:
    """A collection as JSON, with the texts of items that JSON has no type for; its text if JSON cannot."""
    try:
        return json.dumps(_item(value), ensure_ascii=False, sort_keys=True, default=_item)
    except Exception as error:  # keys of several types, a list that holds itself, or any object at all
        pass_on(error)
        return _text(value)


def _item(value: Any) -> Any:
    """An item of a collection as JSON can store it."""
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=_text)  # the order of sets differs between processes
    if isinstance(value, Mapping):
        return dict(value)
    plain = _plain(value)
    is_json = plain is None or isinstance(plain, (bool, int, float, str, list, tuple))
    return plain if is_json else _text(plain)


def _text(value: Any) -> str:
    """The `repr` of an object without addresses, which differ between processes."""
    try:
        return _ADDRESS.sub("", repr(value))
    except Exception as error:  # of any object at all
        pass_on(error)
        return f"{type(value).__name__} ({type(error).__name__})"


def _bounded(text: str) -> str:
    """A text that can be stored; one that cannot, or is too long, ends in a checksum."""
    whole = clean(text, len(text) + 1)
    if whole == text and len(text) <= MAX_CONFIG_TEXT:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    end = f"… ({len(text):,} characters, SHA-256 {digest}…)"
    return whole[: MAX_CONFIG_TEXT - len(end)] + end


def config_of_table(text: str) -> dict[str, Any]:
    """The settings of a Markdown table with two columns, as CleanRL writes it; empty for other text."""
    lines = text.strip().splitlines()
    if len(lines) < 3 or not _TABLE.fullmatch(lines[1].strip()):
        return {}
    settings: dict[str, Any] = {}
    for line in lines[2:]:
        name, separator, value = line.strip().removeprefix("|").removesuffix("|").partition("|")
        if separator and name.strip():
            settings[name.strip()] = parse_value(value.strip())
    return settings


def parse_value(text: str) -> Any:
    """The value that a text shows: a number, a Boolean, None, or the text itself."""
    if text in ("True", "False"):
        return text == "True"
    if text == "None":
        return None
    if _WHOLE.fullmatch(text):
        return int(text)
    if _DECIMAL.fullmatch(text) and math.isfinite(float(text)):
        return float(text)
    return text


SETTINGS_TAGS = frozenset({"hyperparameters", "hparams", "config"})
"""Tags of texts that are tables of settings, such as CleanRL's."""


class RunConfig(Mapping[str, Any]):
    """The settings of a run, which its script may add to: `run.config.update(lr=0.1)`."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        send: Callable[[dict[str, Any]], None],
        shield: Callable[[int], AbstractContextManager[None]],
    ) -> None:
        """Prepare; nothing is sent.

        Args:
            settings: the settings that the run has.
            send: sends fields of `POST /runs/{id}/config`.
            shield: context manager: if its block fails, counts rows as dropped and lets the script go on.
        """
        self._settings = dict(settings)
        self._send = send
        self._shield = shield

    def __getitem__(self, name: str) -> Any:
        """A setting, as it is stored."""
        return self._settings[name]

    def __iter__(self) -> Iterator[str]:
        """The names of the settings."""
        return iter(self._settings)

    def __len__(self) -> int:
        """The number of settings."""
        return len(self._settings)

    def __setitem__(self, name: str, value: Any) -> None:
        """Add a setting, or replace it."""
        self.update({name: value})

    def update(self, config: Mapping[str, Any] | object | None = None, /, **more: Any) -> None:
        """Add settings to the run's config, or replace them.

        If they name a seed, it becomes that of the run, unless `init(seed=...)` has given one. If they name
        an environment (`env_id`) or an algorithm (`exp_name`), it becomes that of the run, unless that is
        known.

        Args:
            config: settings as for `callboard.init`. If they cannot be kept, all are dropped, with a warning.
            more: further settings.
        """
        with self._shield(1):
            self._update(config, more)

    def _update(self, config: Mapping[str, Any] | object | None, more: Mapping[str, Any]) -> None:
        flat = flat_config(config)
        if more:
            others = flat_config(more)
            details = {name: detail for name, detail in flat.details.items() if name not in others.config}
            flat = FlatConfig(flat.config | others.config, details | others.details)
        if len(self._settings.keys() | flat.config.keys()) > MAX_CONFIG_FIELDS:
            raise ValueError(f"config: must have at most {MAX_CONFIG_FIELDS} fields")
        if not flat.config:
            return
        seed = flat.config.get("seed")
        fields = {
            "config": flat.config,
            "config_details": flat.details,
            "seed": seed if is_seed(seed) else None,
        }
        self._send(fields | described_by(flat.config))
        self._settings |= flat.config

    def __repr__(self) -> str:
        """The settings."""
        return repr(self._settings)


def described_by(config: Mapping[str, Any]) -> dict[str, str]:
    """Environment and algorithm that a config names, as CleanRL's scripts call them."""
    options = (
        ("environment", MAX_ENVIRONMENT, ("env_id", "environment", "env")),
        ("algorithm", MAX_ALGORITHM, ("algorithm", "algo", "exp_name")),
    )
    fields = {}
    for field, most, names in options:
        texts = (config[name] for name in names if isinstance(config.get(name), str))
        text = next(filter(None, texts), None)
        if text is not None:
            fields[field] = plain_word(text, most)
    return fields


def plain_word(text: str, most: int) -> str:
    """A text as the name of an algorithm or environment, which has no quotes, backslashes or controls."""
    return _NOT_IN_WORDS.sub("_", text)[:most] or "_"
