"""Caches of what a process computes from the database. A resource declares a `CacheKind` beside its use;
whoever owns the database's engine owns the caches, which live as long as it."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import Any, Generic, TypeVar

from cachetools import LRUCache

K = TypeVar("K")
V = TypeVar("V")


def _one(value: Any) -> int:
    return 1


@dataclass(frozen=True, eq=False)
class CacheKind(Generic[K, V]):
    """What a cache keeps, and how much of it."""

    max_size: int
    """Maximum sum of the sizes of the kept values; those used last are kept."""
    size_of: Callable[[V], int] = _one


class Cache(Generic[K, V]):
    """The values of one kind that were used last, for all threads of a process."""

    def __init__(self, kind: CacheKind[K, V]) -> None:
        self._values: LRUCache[K, V] = LRUCache(kind.max_size, kind.size_of)
        self._lock = Lock()

    def known(self, keys: Iterable[K]) -> dict[K, V]:
        """The kept values among these."""
        with self._lock:
            return {key: self._values[key] for key in keys if key in self._values}

    def put(self, values: Mapping[K, V]) -> None:
        """Keep values, but none that is larger than the cache."""
        with self._lock:
            for key, value in values.items():
                with suppress(ValueError):
                    self._values[key] = value


class Caches:
    """The caches of one process, by kind."""

    def __init__(self) -> None:
        self._caches: dict[CacheKind[Any, Any], Cache[Any, Any]] = {}

    def __getitem__(self, kind: CacheKind[K, V]) -> Cache[K, V]:
        """The cache of this kind."""
        return self._caches.setdefault(kind, Cache(kind))
