"""The registry of methods: how each algorithm of `backend.specs.algorithms` is trained and evaluated.

An algorithm's method is the `METHOD` of the module that is named after its id, in one of the packages beside
this file, such as `dqn/dqn.py`. Methods of other distributions are loaded when a run needs them.
"""

import json
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from backend.specs.algorithms import ALGORITHMS
from backend.specs.algorithms.packages import find_method
from workers.engine.methods.base import Method


class RegistryError(RuntimeError):
    """An algorithm has no method, or its module declares none."""


def find_modules(algorithms: Iterable[str]) -> dict[str, str]:
    """The module of each algorithm's method, by the algorithm's id.

    Raises:
        RegistryError: an algorithm has no method, or several.
    """
    files = {}
    for algorithm in algorithms:
        paths = list(Path(__file__).parent.glob(f"*/{algorithm}.py"))
        if len(paths) != 1:
            raise RegistryError(
                f"{algorithm}: one module {algorithm}.py must stand in a package of workers/engine/methods, "
                f"there are {len(paths)}"
            )
        files[algorithm] = f"{__package__}.{paths[0].parent.name}.{algorithm}"
    return files


def load_method(module: str) -> Method:
    """The method that a module declares.

    Raises:
        RegistryError: it declares none.
    """
    method = getattr(import_module(module), "METHOD", None)
    if not isinstance(method, Method):
        raise RegistryError(f"{module} declares no METHOD")
    return method


class Methods(dict[str, Method]):
    """Methods by the ids of their algorithms; those of other distributions once they were asked for."""

    def __missing__(self, algorithm: str) -> Method:
        """Load the method of another distribution's algorithm.

        Raises:
            KeyError: there is no such algorithm.
            RegistryError: its entry point names no method.
        """
        point = find_method(ALGORITHMS[algorithm])
        method = point.load()
        if not isinstance(method, Method):
            raise RegistryError(f"{point.value} is no Method but a {type(method).__name__}")
        self[algorithm] = method
        return method


METHODS = Methods(
    (algorithm, load_method(module))
    for algorithm, module in find_modules(
        name for name, algorithm in ALGORITHMS.items() if algorithm.package is None
    ).items()
)
"""Every method, by the id of its algorithm."""


def refusal(algorithm: str) -> str | None:
    """Why the method of another distribution cannot be loaded, in a line; None if it can."""
    try:
        METHODS[algorithm]
    except (Exception, SystemExit) as error:  # another distribution's code
        return " ".join(f"{type(error).__name__}: {error}".split())
    return None


if __name__ == "__main__":
    for name in sys.argv[1:]:
        sys.stdout.write(f"\n{json.dumps([name, refusal(name)])}\n")
        sys.stdout.flush()
