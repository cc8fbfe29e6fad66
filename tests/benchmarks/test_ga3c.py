"""`python -m benchmarks ga3c`: what it makes of what it measured, and a moment of it."""

import json

import pytest
from typer.testing import CliRunner

from benchmarks import ga3c as ga3c_bench
from benchmarks.__main__ import app
from benchmarks.ga3c import AdjustmentResult, Measurement
from workers.engine.methods.ga3c.adjustment import ThreadCounts

pytestmark = pytest.mark.long


def test_ga3c_benchmark_compares_adjusted_tps_with_the_best_of_the_grid() -> None:
    slow, fast = ThreadCounts(1, 1, 1), ThreadCounts(8, 2, 1)
    adjustment = AdjustmentResult(
        grid=[Measurement(0, 10, slow, 5.0), Measurement(10, 10, fast, 110.0)],
        again=Measurement(0, 10, fast, 90.0),
        walk=[
            Measurement(0, 60, slow, 5.0),
            Measurement(60, 15, ThreadCounts(7, 2, 1), 70.0),
            Measurement(75, 20, fast, 90.0),
            Measurement(95, 5, ThreadCounts(9, 2, 1), 65.0),
        ],
    )
    assert adjustment.best.setting == fast
    assert adjustment.best_tps == 100.0
    assert adjustment.reached_tps == pytest.approx((20 * 90 + 5 * 65) / 25), "the last quarter, by time"


@pytest.mark.service
def test_ga3c_benchmark_names_an_unsupported_environment() -> None:
    done = CliRunner().invoke(app, ["ga3c", "Pendulum-v1"])
    assert done.exit_code == 2
    assert "environment: GA3C supports discrete actions, not continuous" in done.output


@pytest.mark.timeout(3_600)
def test_ga3c_benchmark_measures_grid_and_adjustment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ga3c_bench, "AGENTS", (1, 2))
    monkeypatch.setattr(ga3c_bench, "THREADS", ((1, 1), (2, 1)))
    options = ["--grid-seconds", "2", "--walk-seconds", "30", "--json"]
    done = CliRunner().invoke(app, ["ga3c", "CartPole-v1", *options])
    assert done.exit_code == 0, done.output
    reported = json.loads(done.stdout)
    settings = [
        (measurement["n_actors"], measurement["n_predictors"], measurement["n_trainers"])
        for measurement in reported["grid"]
    ]
    assert settings == [(1, 1, 1), (1, 2, 1), (2, 1, 1), (2, 2, 1)]
    assert all(measurement["tps"] > 0 for measurement in reported["grid"])
    walk = [
        (measurement["n_actors"], measurement["n_predictors"], measurement["n_trainers"])
        for measurement in reported["walk"]
    ]
    assert walk[0] == (1, 1, 1)
    assert len(walk) >= 3
    assert reported["share"] == pytest.approx(reported["reached_tps"] / reported["best_tps"])
