"""Algorithms of other distributions, which declare them by entry points.

    [project.entry-points."callboard.algorithms"]
    a2c_gae = "a2c_gae.spec:ALGORITHM"

    [project.entry-points."callboard.methods"]
    a2c_gae = "a2c_gae.engine:METHOD"

Names are the algorithms' ids. The first is an `Algorithm`, whose module imports `callboard_algorithms.spec`
and no torch; the second is its method, which only engines load. A distribution with a problem is off as a
whole: none of its algorithms is in the catalogue, and the host's page says why.
"""

from collections.abc import Container, Iterator
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points

from backend.specs.algorithms.base import Algorithm, AlgorithmConfig
from backend.specs.declared import Declared, PackageError, load_declared, requirement

ALGORITHMS_GROUP, METHODS_GROUP = "callboard.algorithms", "callboard.methods"
_ID = (r"[a-z][a-z0-9_]{0,39}", "must have lower-case letters, digits and _, at most 40")


def find_packages(own: Container[str]) -> Declared[Algorithm]:
    """Load the specs of all distributions that declare algorithms.

    Args:
        own: ids of Callboard's algorithms, which are taken.
    """
    return load_declared(ALGORITHMS_GROUP, "algorithm", _ID, own, _load)


def find_method(algorithm: Algorithm) -> EntryPoint:
    """The entry point of the method of an algorithm of another distribution.

    Raises:
        PackageError: the distribution declares none.
    """
    for point in entry_points(group=METHODS_GROUP, name=algorithm.id):
        if requirement(point) == algorithm.package:
            return point
    raise PackageError(f"{algorithm.package} declares no method {algorithm.id} in {METHODS_GROUP}")


def _load(point: EntryPoint) -> Algorithm:
    algorithm = point.load()
    if not isinstance(algorithm, Algorithm):
        raise PackageError(f"{point.value} is no Algorithm but a {type(algorithm).__name__}")
    if algorithm.id != point.name:
        raise PackageError(f"{point.value} has the id {algorithm.id}, not {point.name}")
    for problem in _problems(algorithm):
        raise PackageError(f"{point.value}: {problem}")
    algorithm = replace(algorithm, package=requirement(point))
    find_method(algorithm)
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
    for preset in algorithm.presets:
        config.model_validate(algorithm.defaults(preset.observation, algorithm.actions[0]) | preset.config)
    config.model_json_schema()  # raises where a setting has no schema
