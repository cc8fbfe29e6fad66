"""The registry of methods and that of specs hold the same algorithms."""

import pytest

from workers.engine.methods.registry import RegistryError, check_registered


def test_algorithm_without_a_method_is_refused_with_both_places_named() -> None:
    with pytest.raises(RegistryError) as refused:
        check_registered({"dqn", "double_dqn", "a3c"}, {"dqn", "a3c"})
    assert str(refused.value) == (
        "double_dqn: registered in backend.specs.algorithms but not in workers.engine.methods.registry; "
        "add or remove a line"
    )


def test_method_without_a_spec_is_refused() -> None:
    with pytest.raises(RegistryError, match=r"^paac, ppo: registered in workers\.\S+ but not in backend\."):
        check_registered({"dqn"}, {"dqn", "ppo", "paac"})


def test_equal_ids_are_accepted_in_any_order() -> None:
    check_registered(["a3c", "dqn"], ["dqn", "a3c"])
