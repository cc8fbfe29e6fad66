"""Scalars of `info` are summed; anything else in it is ignored."""

import math
import socket
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backend.specs.environments.custom import FILE_VARIABLE, read_custom_environments
from backend.specs.run import RunSpec, parse_run_spec
from tests.support import custom_environment
from tests.support.waiting import PATIENCE_S, Patience
from workers.engine.envs import slice as slice_
from workers.engine.envs.info import MAX_NAMES, InfoTotals, Totals, add_totals
from workers.engine.envs.shared import EnvArrays
from workers.engine.envs.vector import VectorEnv
from workers.engine.processes.child import Channel


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


def _with_info(folder: Path, monkeypatch: pytest.MonkeyPatch) -> RunSpec:
    """A run in an environment whose `info` has scalars."""
    file = custom_environment.write(folder, custom_environment.POISONED_BY.format(path=folder / "poison"))
    monkeypatch.setenv(FILE_VARIABLE, str(file))
    name = "Custom/Poisonable-v0"
    custom = read_custom_environments(file)[name].describe().model_dump(mode="json")
    return parse_run_spec(
        {"algorithm": "paac", "environment": name, "custom": custom, "stop": {"agent_steps": 10}}
    )


@pytest.mark.service
def test_vector_env_collects_info_of_its_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = _with_info(tmp_path, monkeypatch)
    env = VectorEnv(spec, environments=4, processes=2, slots=1, next_seed=lambda i: i, with_info=True)
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


def test_process_goes_on_though_nobody_reads_its_info(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A GPU's rollout reads it once per update; the parent waits for each step meanwhile."""
    spec = _with_info(tmp_path, monkeypatch)
    monkeypatch.setattr(slice_, "SEND_INTERVAL_S", 0.0)
    shared = EnvArrays(
        slots=1, environments=1, observation_shape=(4,), observation_dtype="float32", action_shape=()
    )
    shared.acting_B[:] = True
    mine, theirs = socket.socketpair()
    reader, writer = Channel.pair()
    mine.settimeout(PATIENCE_S)
    stepping = threading.Thread(
        target=slice_.run_slice,
        args=(writer, spec, shared, [range(1)], None, None, True, theirs),
        daemon=True,
    )
    stepping.start()
    assert mine.recv(1) == bytes([slice_.RESET])
    for command in (slice_.RESET, *[0] * 2_000):
        mine.sendall(bytes([command]))
        assert mine.recv(1) == bytes([command])
    mine.close()
    stepping.join(PATIENCE_S)
    theirs.close()
    totals: Totals = {}
    while reader.poll():
        add_totals(totals, reader.receive()[1])
    assert totals["two"][0] == 2 * totals["two"][1]
    assert 0 < totals["two"][1] < 2_000
