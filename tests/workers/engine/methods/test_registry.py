"""Every algorithm has a method, found by its id, and tests of its own."""

import re
from pathlib import Path

import pytest

from backend.specs.algorithms import ALGORITHMS
from tests.support.algorithms import LEARNING
from workers.engine.methods.registry import METHODS, RegistryError, find_modules, load_method

METHODS_FOLDER = Path(__file__).parents[4] / "workers/engine/methods"


def test_every_algorithm_has_a_method() -> None:
    assert list(METHODS) == list(ALGORITHMS)


def test_every_module_with_a_method_is_an_algorithms() -> None:
    declaring = {
        path.stem for path in METHODS_FOLDER.glob("*/*.py") if "\nMETHOD = " in path.read_text("utf-8")
    }
    assert declaring == set(ALGORITHMS)


def test_algorithm_without_a_module_is_refused() -> None:
    with pytest.raises(RegistryError, match=r"double_dqn: one module double_dqn\.py must stand in a package"):
        find_modules(["dqn", "double_dqn"])


def test_module_without_a_method_is_refused() -> None:
    with pytest.raises(RegistryError, match=r"methods\.asynchronous\.q declares no METHOD"):
        load_method("workers.engine.methods.asynchronous.q")


@pytest.mark.parametrize("algorithm", LEARNING)
def test_a_learning_test_trains_every_algorithm(algorithm: str) -> None:
    """The test stands beside those of the methods, is marked `learning` and names the algorithm."""
    texts = (path.read_text("utf-8") for path in Path(__file__).parent.glob("*/test_*.py"))
    named = re.compile(rf"\b{algorithm}\b")
    assert any("mark.learning" in text and named.search(text) for text in texts), (
        f"no test marked `learning` names {algorithm}: see docs/guides/algorithm.md"
    )
