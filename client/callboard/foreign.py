"""What of another package's interface is used, said or refused: a declared table, and what says it once."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from callboard.tally import warn

USED = ""
"""The name or argument has its own meaning here."""


class Refused(str):
    """Why a call is refused before training. In the middle of a run it is said, and does nothing."""


Table = Mapping[str, str]
"""By name, such as `init.tags` or `Run.watch`, which may be a pattern: `USED`; or what to do instead, which
is said once a run; or, as `Refused`, why a script that calls it is ended before it trains."""


def use_of(table: Table, name: str) -> str | None:
    """What a table says of a name; None: the name is not in it. Of an argument that it does not have, this is
    what it says of the function, unless that is used."""
    if name in table:
        return table[name]
    use = next((use for pattern, use in table.items() if "*" in pattern and fnmatchcase(name, pattern)), None)
    if use is None and "." in name:
        use = use_of(table, name.rpartition(".")[0]) or None
    return use


class Foreign:
    """What one run, or the script before it, has met of a foreign interface."""

    def __init__(self, package: str, table: Table) -> None:
        """Nothing has been said yet."""
        self.package = package
        self._table = table
        self._said: set[str] = set()
        self.n_not_kept: dict[str, int] = {}
        """How many values of each kind were accepted and are not kept."""

    def say(self, name: str, sentence: str | None = None) -> str:
        """Say once what a name means here, unless it is used; return that.

        Args:
            name: a name of the table.
            sentence: instead of the table's.
        """
        use = use_of(self._table, name) if sentence is None else sentence
        if use is None:
            use = "it is not known to Callboard, and does nothing"
        if use and name not in self._said:
            self._said.add(name)
            warn("callboard: %s.%s: %s", self.package, name, use)
        return use

    def arguments(self, function: str, given: Mapping[str, Any]) -> None:
        """Say what becomes of each argument that is given: neither None, False, empty nor its default."""
        for name, value in given.items():
            if value is not None and value is not False and not _is_empty(value):
                self.say(f"{function}.{name}")

    def refuse(self, name: str, error: type[Exception], *, is_running: bool) -> None:
        """Refuse a call before training; while a run is logged, say so and go on.

        Raises:
            Exception: of the given type: no run is logged yet.
        """
        use = use_of(self._table, name) or ""
        if is_running or not isinstance(use, Refused):
            self.say(name)
        else:
            raise error(f"callboard: {self.package}.{name}: {use}")

    def not_kept(self, kind: str, name: str = "") -> None:
        """Count a value of a kind that is not kept; say so once, with what the table says of the name."""
        if kind not in self.n_not_kept:
            use = use_of(self._table, name) if name else None
            warn("callboard: %s are not kept%s", kind, f": {use}" if use else "")
        self.n_not_kept[kind] = self.n_not_kept.get(kind, 0) + 1


def _is_empty(value: Any) -> bool:
    return isinstance(value, (str, tuple, list, dict)) and not value
