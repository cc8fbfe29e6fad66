"""Devices: asked for, named, and how states come to them."""

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info

from backend.specs.algorithms import ALGORITHMS
from backend.specs.problems import InvalidSpec
from backend.specs.run import parse_run_spec
from tests.support.devices import DEVICES
from workers.engine.nn.devices import NoSuchDeviceError, describe, resolve_device, to_device
from workers.engine.nn.networks import actor_critic, as_input


@pytest.mark.parametrize("device", DEVICES)
def test_observations_are_sent_as_bytes_and_scaled_on_the_device(device: str) -> None:
    where = resolve_device(device)
    rng = np.random.default_rng(0)
    states = rng.integers(0, 256, (4, 84, 84, 4), np.uint8)
    kept = states.copy()
    on_device = [to_device(states, where)]
    assert on_device[0].dtype == torch.uint8
    assert on_device[0].device.type == device
    if device == "cuda":
        states[:] = (
            0  # the memory belongs to the environment again: it is written while the copy is under way
        )
        on_device += [to_device(rng.integers(0, 256, states.shape, np.uint8), where) for _ in range(8)]
    x = as_input(on_device[0])
    assert x.device.type == device
    torch.testing.assert_close(x.cpu(), torch.from_numpy(kept).permute(0, 3, 1, 2) / 255)


@pytest.mark.parametrize("device", DEVICES)
def test_network_output_is_the_same_on_every_device(device: str) -> None:
    torch.manual_seed(0)
    network = actor_critic("nips", (84, 84, 4), 3)
    states = np.random.default_rng(0).integers(0, 256, (4, 84, 84, 4), np.uint8)
    with torch.no_grad():
        expected = network(torch.from_numpy(states))
        outputs = network.to(device)(to_device(states, resolve_device(device)))
    for output, other in zip(outputs, expected, strict=True):
        torch.testing.assert_close(output.cpu(), other, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("device", DEVICES)
def test_device_name_is_readable(device: str) -> None:
    described = describe(resolve_device(device))
    if device == "cpu":
        assert described == "cpu"
    else:
        assert described == f"cuda:0 ({torch.cuda.get_device_name(0)})"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_resolve_device_raises_without_the_requested_gpu() -> None:
    assert resolve_device("auto").type == "cpu"
    with pytest.raises(NoSuchDeviceError, match="device: cuda was requested"):
        resolve_device("cuda")


@pytest.mark.parametrize("algorithm", [a.id for a in ALGORITHMS.values() if "cuda" not in a.devices])
def test_cpu_only_methods_refuse_a_gpu(algorithm: str) -> None:
    request = {"algorithm": algorithm, "environment": "CartPole-v1", "stop": {"agent_steps": 1}}
    assert parse_run_spec(request).device == "auto"
    with pytest.raises(InvalidSpec, match=r"device: .* trains on CPUs only"):
        parse_run_spec(request | {"device": "cuda"})


def test_matrix_products_use_one_thread() -> None:
    threads = [pool["num_threads"] for pool in threadpool_info() if "numpy" in pool["filepath"]]
    assert threads == [1]
