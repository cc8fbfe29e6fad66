"""`python -m benchmarks environments`, for a moment."""

import json

import pytest
from typer.testing import CliRunner

from benchmarks import environments as bench
from benchmarks.__main__ import app

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "MEASURE_S", 0.5)  # a pause of the machine counts, too


@pytest.mark.service
def test_environment_benchmark_reports_our_rates_and_theirs() -> None:
    done = CliRunner().invoke(app, ["environments", "CartPole-v1", "Catch-v0", "--json"])
    assert done.exit_code == 0, done.output
    measured = json.loads(done.stdout)["environments"]
    assert {"single", "batched", "gymnasium"} <= set(measured["CartPole-v1"])
    assert set(measured["Catch-v0"]) == {"single", "batched"}
    assert all(rate > 0 for rates in measured.values() for rate in rates.values())


def test_environment_benchmark_names_an_unknown_environment() -> None:
    done = CliRunner().invoke(app, ["environments", "Pong"])
    assert done.exit_code == 2
    assert 'environment: unknown environment "Pong"' in done.output


@pytest.mark.parametrize("environment", bench.ENVS)
def test_environment_benchmark_measures_every_family(environment: str) -> None:
    assert bench.measure(environment)["single"] > 0
