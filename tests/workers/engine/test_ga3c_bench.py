"""`callboard bench ga3c`: what it makes of what it measured, and a moment of it."""

import json

import pytest
from typer.testing import CliRunner

from backend.cli.main import app
from workers.engine.algorithms import ga3c_bench
from workers.engine.algorithms.ga3c_bench import Found, Measured
from workers.engine.ga3c.adjustment import Setting


def test_the_walks_end_is_held_against_the_grids_best_measured_twice() -> None:
    slow, fast = Setting(1, 1, 1), Setting(8, 2, 1)
    found = Found(
        grid=[Measured(0, 10, slow, 5.0), Measured(10, 10, fast, 110.0)],
        again=Measured(0, 10, fast, 90.0),
        walk=[
            Measured(0, 60, slow, 5.0),
            Measured(60, 15, Setting(7, 2, 1), 70.0),
            Measured(75, 20, fast, 90.0),
            Measured(95, 5, Setting(9, 2, 1), 65.0),
        ],
    )
    assert found.best.setting == fast
    assert found.best_tps == 100.0
    assert found.reached_tps == pytest.approx((20 * 90 + 5 * 65) / 25), "the last quarter, by time"


def test_a_world_it_cannot_learn_is_named() -> None:
    done = CliRunner().invoke(app, ["bench", "ga3c", "Pendulum-v1"])
    assert done.exit_code == 2
    assert "environment: GA3C chooses discrete actions, not continuous" in done.output


@pytest.mark.long
def test_measures_a_grid_and_a_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ga3c_bench, "AGENTS", (1, 2))
    monkeypatch.setattr(ga3c_bench, "THREADS", ((1, 1), (2, 1)))
    options = ["--grid-seconds", "2", "--walk-seconds", "10", "--json"]
    done = CliRunner().invoke(app, ["bench", "ga3c", "CartPole-v1", *options])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    settings = [(one["n_actors"], one["n_predictors"], one["n_trainers"]) for one in told["grid"]]
    assert settings == [(1, 1, 1), (1, 2, 1), (2, 1, 1), (2, 2, 1)]
    assert all(one["tps"] > 0 for one in told["grid"])
    walk = [(one["n_actors"], one["n_predictors"], one["n_trainers"]) for one in told["walk"]]
    assert walk[0] == (1, 1, 1)
    assert len(walk) >= 3
    assert told["share"] == pytest.approx(told["reached_tps"] / told["best_tps"])
