"""`callboard bench environments`, for a moment."""

import json

import pytest
from typer.testing import CliRunner

from backend.cli.main import app
from workers.engine.envs import bench


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "MEASURE_S", 0.05)


def test_tells_the_rates_of_ours_and_theirs() -> None:
    done = CliRunner().invoke(app, ["bench", "environments", "CartPole-v1", "Catch-v0", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["environments"]
    assert {"single", "batched", "gymnasium"} <= set(found["CartPole-v1"])
    assert set(found["Catch-v0"]) == {"single", "batched"}
    assert all(rate > 100 for rates in found.values() for rate in rates.values())


def test_an_unknown_world_is_named() -> None:
    done = CliRunner().invoke(app, ["bench", "environments", "Pong"])
    assert done.exit_code == 2
    assert "environment: unknown environment 'Pong'" in done.output


@pytest.mark.long
@pytest.mark.parametrize("environment", bench.WORLDS)
def test_each_kind_of_world_can_be_measured(environment: str) -> None:
    assert bench.measure(environment)["single"] > 10
