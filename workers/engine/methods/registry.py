"""The registry of methods: how each algorithm of `backend.specs.algorithms` is trained and evaluated.

An algorithm's method is the `METHOD` of the module that is named after its id, in one of the packages beside
this file, such as `dqn/dqn.py`.
"""

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from backend.specs.algorithms import ALGORITHMS
from workers.engine.methods.base import Method


class RegistryError(RuntimeError):
    """An algorithm has no method, or its module declares none."""


def find_modules(algorithms: Iterable[str]) -> dict[str, str]:
    """The module of each algorithm's method, by the algorithm's id.

    Raises:
        RegistryError: an algorithm has no module, or several.
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


METHODS: dict[str, Method] = {
    algorithm: load_method(module) for algorithm, module in find_modules(ALGORITHMS).items()
}
"""Every method, by the id of its algorithm."""
