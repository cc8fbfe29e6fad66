"""Scalars of `info` are summed; anything else in it is ignored."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backend.specs.environments.custom import FILE_VARIABLE, read_custom_environments
from backend.specs.run import parse_run_spec
from tests.support import custom_environment
from tests.support.waiting import Patience
from workers.engine.envs.info import MAX_NAMES, InfoTotals, Totals, add_totals
from workers.engine.envs.vector import VectorEnv


def totals_of(*infos: dict[Any, Any]) -> dict[str, tuple[float, int]]:
    totals = InfoTotals()
    for info in infos:
        totals.add(info)
    return totals.take()


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (2, 2.0),
        (True, 1.0),
        (-0.5, -0.5),
        (np.float32(0.25), 0.25),
        (np.int64(7), 7.0),
        (np.bool_(True), 1.0),
    ],
)
def test_finite_numbers_are_added(value: Any, number: float) -> None:
    assert totals_of({"goal/x": 1, "x": value}, {"x": value}, {}) == {"x": (2 * number, 2)}


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        np.float32("-inf"),
        10**400,
        "1",
        None,
        [1],
        {"a": 1},
        np.ones(3),
        np.array(1.0),
        1j,
    ],
)
def test_other_values_are_ignored(value: Any) -> None:
    assert totals_of({"x": value}) == {}


@pytest.mark.parametrize("name", ["", "1x", "a b", "a/b", "é", "x" * 61, "x\n", 3, None])
def test_other_names_are_ignored(name: Any) -> None:
    assert totals_of({name: 1.0, "Fine_1.2-x": 1.0}) == {"Fine_1.2-x": (1.0, 1)}


def test_number_of_names_is_bounded_over_several_calls() -> None:
    totals = InfoTotals()
    totals.add({f"n{k}": k for k in range(MAX_NAMES)})
    assert len(totals.take()) == MAX_NAMES
    totals.add({"late": 1.0, "n3": 3.0})
    assert totals.take() == {"n3": (3.0, 1)}
    assert totals.take() == {}


def test_totals_are_added_by_name() -> None:
    totals = {"a": (1.0, 2)}
    add_totals(totals, {"a": (0.5, 1), "b": (4.0, 4)})
    assert totals == {"a": (1.5, 3), "b": (4.0, 4)}


@pytest.mark.service
def test_vector_env_collects_info_of_its_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = custom_environment.write(tmp_path, custom_environment.POISONED_BY.format(path=tmp_path / "poison"))
    monkeypatch.setenv(FILE_VARIABLE, str(file))
    name = "Custom/Poisonable-v0"
    custom = read_custom_environments(file)[name].describe().model_dump(mode="json")
    request = {"algorithm": "paac", "environment": name, "custom": custom, "stop": {"agent_steps": 10}}
    env = VectorEnv(
        parse_run_spec(request), environments=4, processes=2, slots=1, next_seed=lambda i: i, with_info=True
    )
    try:
        env.reset()
        totals: Totals = {}
        patience, steps = Patience(), 0
        while patience.lasts() and totals.get("last", (0.0, 0))[1] < 4:
            env.step(np.zeros(4, np.int32), 0)
            steps += 1
            add_totals(totals, env.take_info())
    finally:
        env.close()
    assert totals["last"] == (20.0 * totals["last"][1], totals["last"][1])
    assert totals["two"][0] == 2.0 * totals["two"][1]
    assert 80 <= totals["two"][1] <= 4 * steps
