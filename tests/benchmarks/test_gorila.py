"""`python -m benchmarks gorila`, for a moment."""

import json

import pytest
from typer.testing import CliRunner

from benchmarks import engine as bench_engine
from benchmarks import gorila as gorila_bench
from benchmarks.__main__ import app

pytestmark = pytest.mark.long


@pytest.mark.timeout(3_600)
@pytest.mark.filterwarnings("ignore")  # the others' own
def test_gorila_benchmark_reports_rates_by_process_count_and_of_dqn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gorila_bench, "PARTS", ((1, 1, 1), (1, 2, 2)))
    monkeypatch.setattr(bench_engine, "DQN_ROUNDS", 1)
    monkeypatch.setattr(gorila_bench, "LEARNING_STARTS", 100)
    done = CliRunner().invoke(app, ["gorila", "--seconds", "1", "--json"])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert [(row["n_actors"], row["n_learners"], row["n_shards"]) for row in document["gorila"]] == [
        (1, 1, 1),
        (1, 2, 2),
    ]
    assert all(row["updates_per_s"] > 0 and row["agent_steps_per_s"] > 0 for row in document["gorila"])
    assert document["dqn"]["callboard"] > 0


def test_gorila_benchmark_names_an_environment_that_is_not_an_atari_game() -> None:
    done = CliRunner().invoke(app, ["gorila", "CartPole-v1"])
    assert done.exit_code == 2
    assert 'environment: "CartPole-v1" is not an Atari game' in done.output
