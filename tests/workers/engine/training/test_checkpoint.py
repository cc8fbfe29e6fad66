"""Checkpoints are whole or absent, and never run code."""

import json
import os
import pickle
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from backend.specs.run import parse_run_spec
from workers.engine.nn.networks import action_values, actor_critic, gaussian_actor_critic
from workers.engine.nn.optimizers import FlatParameters
from workers.engine.training import checkpoint


def test_load_returns_the_saved_state(tmp_path: Path) -> None:
    path = tmp_path / "checkpoints" / checkpoint.file_name(2, 640)
    digest, size = checkpoint.save(path, {"learner": {"theta": torch.arange(5.0)}, "returns": [1.5, None]})
    assert path.stat().st_size == size
    assert len(digest) == 64
    state = checkpoint.load(path)
    assert torch.equal(state["learner"]["theta"], torch.arange(5.0))
    assert state["returns"] == [1.5, None]
    assert os.listdir(path.parent) == [path.name]


def networks() -> dict[str, nn.Module]:
    return {
        "pixels": actor_critic("nature", (84, 84, 4), 6, lstm_cells=8),
        "values": action_values("mlp", (4,), 2),
        "gaussian": gaussian_actor_critic("mlp", (3,), 1, lstm_cells=4),
    }


def state_of(network: nn.Module) -> dict[str, Any]:
    """A learner's state: theta that the network's parameters are views of, and random vectors beside it."""
    theta = FlatParameters(network).theta
    others = [torch.rand_like(theta) for _ in range(3)]
    return {
        "updates": 7,
        "optimizer": {"m": others[0], "g": others[1]},
        "theta": theta.clone(),
        "target": {"theta_minus": others[2], "synced_at": 3},
        "actors": [{"rng": torch.arange(5, dtype=torch.uint8)}],
    }


def assert_equal(a: Any, b: Any) -> None:
    if isinstance(a, Tensor):
        assert torch.equal(a, b)
    elif isinstance(a, dict):
        assert a.keys() == b.keys()
        for key, value in a.items():
            assert_equal(value, b[key])
    elif isinstance(a, list):
        for value, others in zip(a, b, strict=True):
            assert_equal(value, others)
    else:
        assert a == b


@pytest.mark.parametrize("name", ["pixels", "values", "gaussian"])
def test_parameters_are_stored_by_name_and_load_as_they_were(tmp_path: Path, name: str) -> None:
    network = networks()[name]
    learner = state_of(network)
    path = tmp_path / checkpoint.file_name(1, 10)
    checkpoint.save(path, {"learner": learner, "best": None}, network)

    stored = torch.load(path, weights_only=True)
    assert stored["format"] == 2
    twin = networks()[name]
    twin.load_state_dict(stored["learner"]["theta"])
    assert_equal(dict(twin.named_parameters()), dict(network.named_parameters()))
    for vector in (stored["learner"]["optimizer"]["g"], stored["learner"]["target"]["theta_minus"]):
        assert {n: v.shape for n, v in vector.items()} == {n: p.shape for n, p in network.named_parameters()}
    assert_equal(checkpoint.load(path)["learner"], learner)


def test_file_says_what_its_agent_is(tmp_path: Path) -> None:
    """Without the run: algorithm, environment, network and preprocessing."""
    network = networks()["pixels"]
    path = tmp_path / checkpoint.file_name(1, 10)
    spec = parse_run_spec(
        {
            "algorithm": "paac",
            "environment": "ALE/Pong-v5",
            "seed": 3,
            "name": "mine",
            "config": {"network": "nips"},
            "stop": {"agent_steps": 1},
        }
    )
    checkpoint.save(path, {"learner": state_of(network)}, network, spec)
    with zipfile.ZipFile(path) as archive:
        description = json.loads(archive.read("archive/agent.json"))
    assert (description["algorithm"], description["environment"]) == ("paac", "ALE/Pong-v5")
    assert description["config"] == spec.config.model_dump(mode="json")
    assert description["environment_config"] == spec.environment_config.model_dump(mode="json")
    assert description["config"]["network"] == "nips"
    assert not {"seed", "name"} & description.keys()
    again = parse_run_spec(description | {"stop": {"agent_steps": 1}})
    assert (again.config, again.environment_config) == (spec.config, spec.environment_config)


DOCUMENT = Path(__file__).parents[4] / "docs" / "checkpoints.md"


@pytest.mark.parametrize("name", ["pixels", "values", "gaussian"])
@pytest.mark.parametrize("library", ["torch", "numpy"])
def test_code_in_the_documentation_reads_parameters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, library: str
) -> None:
    network = networks()[name]
    checkpoint.save(
        tmp_path / checkpoint.file_name(1, 1_000_000), {"best": 1.0, "learner": state_of(network)}, network
    )
    [code] = [
        part for part in re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.S) if library in part
    ]
    assert len(code.splitlines()) <= 6  # five and an empty one
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {}
    exec(code, namespace)
    theta = {parameter: np.asarray(array) for parameter, array in namespace["theta"].items()}
    expected = {n: p.detach().numpy() for n, p in network.named_parameters()}
    assert theta.keys() == expected.keys()
    for parameter, array in expected.items():
        np.testing.assert_array_equal(theta[parameter], array, err_msg=parameter)


def test_other_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / checkpoint.file_name(1, 10)
    torch.save({"format": checkpoint.FORMAT + 1}, path)
    with pytest.raises(checkpoint.DamagedCheckpointError, match="another version may have written it"):
        checkpoint.load(path)


def test_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a1-s000000000001.pt"
    checkpoint.save(path, {"n": 1})

    def full(fd: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="disk full"):
        checkpoint.save(path, {"n": 2})
    assert checkpoint.load(path)["n"] == 1
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("damage", ["torn", "empty", "flipped", "other"])
def test_load_raises_for_a_damaged_file(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "a1-s000000000001.pt"
    checkpoint.save(path, {"theta": torch.randn(1000)})
    content = bytearray(path.read_bytes())
    if damage == "flipped":
        content[len(content) // 2] ^= 0xFF
    damaged = {"torn": content[:-100], "empty": bytearray(), "flipped": content, "other": bytearray(b"none")}
    path.write_bytes(damaged[damage])
    with pytest.raises(checkpoint.DamagedCheckpointError):
        checkpoint.load(path)


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch evil",)


def test_load_refuses_pickled_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"format": checkpoint.FORMAT, "x": Evil()}, tmp_path / "zip.pt")
    (tmp_path / "raw.pt").write_bytes(pickle.dumps(Evil()))
    for name in ("zip.pt", "raw.pt"):
        with pytest.raises(checkpoint.DamagedCheckpointError):
            checkpoint.load(tmp_path / name)
    assert not (tmp_path / "evil").exists()


def test_newest_skips_damaged_checkpoints(tmp_path: Path) -> None:
    assert checkpoint.newest(tmp_path) is None
    for attempt, steps in ((1, 100), (1, 300), (2, 200)):
        checkpoint.save(tmp_path / checkpoint.file_name(attempt, steps), {})
    (tmp_path / checkpoint.file_name(2, 400)).write_bytes(b"torn")
    assert checkpoint.newest(tmp_path) == checkpoint.file_name(1, 300)
