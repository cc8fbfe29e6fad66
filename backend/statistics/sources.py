"""What a statement about some runs depends on besides these runs.

A statement about a run, a group or a pair of groups is a function of these runs. Where another run decides
a part of it, such as the length at which all are compared, the value comes with the runs that decide it, and
the answer lists them in `depends_on`: while none of them changes, no other run changes what is said.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class Decided(Generic[T_co]):
    """A value, and the runs that decide it."""

    value: T_co
    by: frozenset[str] = frozenset()


def least(values: Mapping[str, int]) -> Decided[int]:
    """The least of some runs' values, decided by the first run that has it.

    Args:
        values: by run; not empty.
    """
    run = min(sorted(values), key=values.__getitem__)
    return Decided(values[run], frozenset({run}))


def depends_on(own: Collection[str], *parts: Decided[object]) -> list[str]:
    """The runs besides its own that a statement with these parts depends on."""
    return sorted(frozenset[str]().union(*(part.by for part in parts)).difference(own))
