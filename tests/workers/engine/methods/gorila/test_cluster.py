"""How a Gorila run connects to Ray."""

import os

import pytest

from workers.engine.methods.gorila import cluster
from workers.engine.processes.phases import listening


@pytest.mark.parametrize(("address", "phase"), [(None, "starting Ray"), ("there:1", "connecting to Ray")])
def test_start_of_ray_is_a_phase_of_its_own(
    monkeypatch: pytest.MonkeyPatch, address: str | None, phase: str
) -> None:
    def fails(address: str, **options: object) -> None:
        raise ConnectionError("no Ray in this test")

    environment = {name: value for name, value in os.environ.items() if name != cluster.ADDRESS}
    monkeypatch.setattr(os, "environ", environment | ({} if address is None else {cluster.ADDRESS: address}))
    monkeypatch.setattr("ray.init", fails)
    phases: list[str] = []
    with listening(phases.append), pytest.raises((ConnectionError, RuntimeError)):
        cluster.RayCluster(0)
    assert phases == [phase]
