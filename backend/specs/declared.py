"""What other distributions declare by entry points, such as algorithms and environments.

A distribution with a problem is off as a whole: nothing of it is used, and the host's page says why.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Container, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, NamedTuple, TypeVar

from pydantic import ValidationError

from backend.specs.problems import problems_of

T = TypeVar("T")


class PackageError(ValueError):
    """What a distribution declares cannot be used; the message says why."""


class Declared(NamedTuple, Generic[T]):
    """What the entry points of a group name."""

    values: dict[str, T]
    """By id, which is the name of the entry point."""
    problems: dict[str, str]
    """Distribution, as `requirement` names it -> why nothing of it is used."""


def requirement(point: EntryPoint) -> str:
    """The distribution of an entry point with its version, as pip installs it: `callboard-a2c-gae==1.0`."""
    assert point.dist is not None  # those that are found have one
    return f"{point.dist.name}=={point.dist.version}"


def load_declared(
    group: str, kind: str, form: tuple[str, str], own: Container[str], load: Callable[[EntryPoint], T]
) -> Declared[T]:
    """Load what all distributions declare in a group of entry points.

    Args:
        group: name of the group.
        kind: what is declared, for messages.
        form: a regular expression of the ids, and what it asks for.
        own: ids that are taken.
        load: loads an entry point; raises if what it names cannot be used.
    """
    by_package: dict[str, list[EntryPoint]] = defaultdict(list)
    for point in entry_points(group=group):
        by_package[requirement(point)].append(point)
    declared: Declared[T] = Declared({}, {})
    for package, points in sorted(by_package.items()):
        try:
            for point in points:
                _check_id(point, kind, form, own, by_package)
            loaded = {point.name: load(point) for point in points}
        except ValidationError as error:
            first = problems_of(error)[0]
            declared.problems[package] = f"{error.title}: {first.field}: {first.message}"
        except PackageError as error:
            declared.problems[package] = str(error)
        except (Exception, SystemExit) as error:  # another distribution's code
            declared.problems[package] = " ".join(f"{type(error).__name__}: {error}".split())
        else:
            declared.values.update(loaded)
    return declared


def _check_id(
    point: EntryPoint,
    kind: str,
    form: tuple[str, str],
    own: Container[str],
    by_package: Mapping[str, list[EntryPoint]],
) -> None:
    pattern, wanted = form
    if re.fullmatch(pattern, point.name) is None:
        raise PackageError(f"the id {point.name} {wanted}")
    if point.name in own:
        raise PackageError(f"the id {point.name} is that of another {kind}, which stays")
    others = {
        package
        for package, points in by_package.items()
        if package != requirement(point) and any(other.name == point.name for other in points)
    }
    if others:
        raise PackageError(f"{' and '.join(sorted(others))} has an {kind} {point.name} too: both are off")
