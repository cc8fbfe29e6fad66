"""Algorithms of other distributions, which declare them by entry points.

    [project.entry-points."callboard.algorithms"]
    a2c_gae = "a2c_gae.spec:ALGORITHM"

    [project.entry-points."callboard.methods"]
    a2c_gae = "a2c_gae.engine:METHOD"

Names are the algorithms' ids. The first is an `Algorithm`, whose module imports `callboard_algorithms.spec`
and no torch; the second is its method, which only engines load. A distribution with a problem is off as a
whole: none of its algorithms is in the catalogue, and the host's page says why.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from typing import NamedTuple

from backend.specs.algorithms.base import Algorithm, AlgorithmConfig

ALGORITHMS_GROUP, METHODS_GROUP = "callboard.algorithms", "callboard.methods"
ID = r"[a-z][a-z0-9_]{0,39}"


class PackageError(ValueError):
    """A distribution's algorithms cannot be used; the message says why."""


class Packages(NamedTuple):
    """The algorithms of all distributions but Callboard's."""

    algorithms: dict[str, Algorithm]
    """By id."""
    problems: dict[str, str]
    """Distribution, as `requirement` names it -> why its algorithms are off."""


def requirement(point: EntryPoint) -> str:
    """The distribution of an entry point with its version, as pip installs it: `callboard-a2c-gae==1.0`."""
    assert point.dist is not None  # those that are found have one
    return f"{point.dist.name}=={point.dist.version}"


def find_packages(own: Mapping[str, Algorithm]) -> Packages:
    """Load the specs of all distributions that declare algorithms.

    Args:
        own: Callboard's algorithms, whose ids are taken.
    """
    by_package: dict[str, list[EntryPoint]] = defaultdict(list)
    for point in entry_points(group=ALGORITHMS_GROUP):
        by_package[requirement(point)].append(point)
    packages = Packages({}, {})
    for package, points in sorted(by_package.items()):
        try:
            for point in points:
                _check_id(point, own, by_package)
            loaded = {point.name: replace(_load(point), package=package) for point in points}
        except PackageError as error:
            packages.problems[package] = str(error)
        except (Exception, SystemExit) as error:  # another distribution's code
            packages.problems[package] = f"{type(error).__name__}: {error}"
        else:
            packages.algorithms.update(loaded)
    return packages


def find_method(algorithm: Algorithm) -> EntryPoint:
    """The entry point of the method of an algorithm of another distribution.

    Raises:
        PackageError: the distribution declares none.
    """
    for point in entry_points(group=METHODS_GROUP, name=algorithm.id):
        if requirement(point) == algorithm.package:
            return point
    raise PackageError(f"{algorithm.package} declares no method {algorithm.id} in {METHODS_GROUP}")


def _check_id(
    point: EntryPoint, own: Mapping[str, Algorithm], by_package: Mapping[str, list[EntryPoint]]
) -> None:
    if re.fullmatch(ID, point.name) is None:
        raise PackageError(f"the id {point.name} must have lower-case letters, digits and _, at most 40")
    if point.name in own:
        raise PackageError(f"the id {point.name} is that of an algorithm of Callboard, which stays")
    others = {
        package
        for package, points in by_package.items()
        if package != requirement(point) and any(other.name == point.name for other in points)
    }
    if others:
        raise PackageError(f"{' and '.join(sorted(others))} has an algorithm {point.name} too: both are off")


def _load(point: EntryPoint) -> Algorithm:
    algorithm = point.load()
    if not isinstance(algorithm, Algorithm):
        raise PackageError(f"{point.value} is no Algorithm but a {type(algorithm).__name__}")
    if algorithm.id != point.name:
        raise PackageError(f"{point.value} has the id {algorithm.id}, not {point.name}")
    for problem in _problems(algorithm):
        raise PackageError(f"{point.value}: {problem}")
    find_method(replace(algorithm, package=requirement(point)))
    return algorithm


def _problems(algorithm: Algorithm) -> Iterator[str]:
    """What is wrong with an algorithm's settings."""
    config = algorithm.config
    if not (isinstance(config, type) and issubclass(config, AlgorithmConfig)):
        yield "config is no AlgorithmConfig"
        return
    for name, field in config.model_fields.items():
        extra = field.json_schema_extra
        if not (isinstance(extra, dict) and "group" in extra):
            yield f"the setting {name} must be declared by setting(...)"
    if missing := sorted(config.model_fields.keys() - algorithm.sources.keys()):
        yield f"sources has nothing of {', '.join(missing)}"
    for observation in algorithm.observations:
        for actions in algorithm.actions:
            config.model_validate(algorithm.defaults(observation, actions))
