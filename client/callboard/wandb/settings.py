"""Settings and summary of a run, as W&B's scripts read and write them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from callboard.cleaning import as_text
from callboard.external import ExternalRun
from callboard.handlers import pass_on
from callboard.tally import warn

_MAX_DEPTH = 10


class WandbConfig(Mapping[str, Any]):
    """Settings by name or attribute, with the values that the script has given; the run gets each of them."""

    def __init__(self, settings: Mapping[str, Any], external: ExternalRun | None) -> None:
        """Hold the settings with which a run has started."""
        object.__setattr__(self, "_settings", dict(settings))
        object.__setattr__(self, "_external", external)

    def __getitem__(self, name: str) -> Any:
        """A setting."""
        return self._settings[name]

    def __getattr__(self, name: str) -> Any:
        """A setting.

        Raises:
            AttributeError: there is none of this name.
        """
        try:
            return self.__dict__["_settings"][name]
        except KeyError:
            raise AttributeError(f"config has no setting {name!r}") from None

    def __setitem__(self, name: str, value: Any) -> None:
        """Add a setting, or replace it."""
        self.update({name: value})

    def __setattr__(self, name: str, value: Any) -> None:
        """Add a setting, or replace it."""
        self.update({name: value})

    def __iter__(self) -> Iterator[str]:
        """The names of the settings."""
        return iter(self._settings)

    def __len__(self) -> int:
        """The number of settings."""
        return len(self._settings)

    def __repr__(self) -> str:
        """The settings."""
        return repr(self._settings)

    def update(self, settings: Any, allow_val_change: bool | None = None, **options: Any) -> None:
        """Add settings, or replace them."""
        try:
            given = settings_of(settings)
        except Exception as error:  # of any object
            pass_on(error)
            warn("callboard: settings are not kept: %s", as_text(error))
            return
        self._settings.update(given)
        if self._external is not None:
            self._external.config.update(given)

    def setdefaults(self, settings: Any) -> None:
        """Add settings that are not there yet."""
        self.update({name: value for name, value in dict(settings).items() if name not in self})

    def as_dict(self) -> dict[str, Any]:
        """A copy of the settings."""
        return dict(self._settings)


class WandbSummary(dict[str, Any]):
    """The results of a run by name: the last value of each metric, and what the script assigns, which is a
    line of the run's log."""

    def __init__(self, external: ExternalRun | None) -> None:
        """An empty summary."""
        super().__init__()
        self._external = external

    def __setitem__(self, name: str, value: Any) -> None:
        """Note a result."""
        super().__setitem__(name, value)
        if self._external is not None:
            self._external.text(f"summary {as_text(name)}", as_text(value))

    def __getattr__(self, name: str) -> Any:
        """A result.

        Raises:
            AttributeError: there is none of this name.
        """
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"summary has no result {name!r}") from None

    def update(self, *arguments: Any, **more: Any) -> None:
        """Note several results."""
        for name, value in dict(*arguments, **more).items():
            self[name] = value

    def set_last(self, row: Mapping[Any, Any]) -> None:
        """Set the last values of metrics."""
        super().update(row)


def settings_of(given: Any) -> dict[str, Any]:
    """Settings as a mapping.

    Raises:
        ValueError: they are neither a mapping nor an object with attributes.
    """
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return dict(given)
    try:
        return dict(vars(given))
    except TypeError:
        raise ValueError(f"config: must be a mapping or a namespace: got {given!r:.80}") from None


def flat(data: Mapping[Any, Any], prefix: str = "", depth: int = 0) -> dict[Any, Any]:
    """The values of a row; those of a mapping in it have names joined by a dot."""
    row: dict[Any, Any] = {}
    for name, value in data.items():
        if issubclass(type(value), Mapping) and depth < _MAX_DEPTH:
            row |= flat(value, f"{prefix}{as_text(name)}.", depth + 1)
        else:
            row[f"{prefix}{as_text(name)}" if prefix else name] = value
    return row
