"""Each asynchronous method learns a small task within seconds, and not with its gradient's sign flipped.

The processes of actor-learners have tests of their own.
"""

from typing import Any

import pytest

from tests.workers.engine.methods.asynchronous.learning import check_flipped, score

CARTPOLE_Q = {"learning_rate": 0.002, "t_max": 20, "exploration_anneal_frames": 8_000}
MEMORY = {"t_max": 20, "optimizer": "shared_adam", "learning_rate": 0.001}
CATCH = {
    "network": "compact",
    "n_actors": 2,
    "t_max": 11,
    "optimizer": "shared_adam",
    "learning_rate": 0.001,
    "learning_rate_schedule": "constant",
}
CATCH_Q = {"exploration_anneal_frames": 15_000, "target_update_frames": 1_000}
PENDULUM = {
    "recurrent": False,
    "optimizer": "shared_adam",
    "learning_rate": 0.0003,
    "learning_rate_schedule": "constant",
    "t_max": 10,
    "gamma": 0.9,
    "beta": 0.01,
    "max_grad_norm": 100_000.0,
}
LONG = [pytest.mark.long]
CONTINUOUS = ("a3c", "Pendulum-v1", 200_000, -800.0, PENDULUM)
QUICK_TASKS = [
    ("a3c", "CartPole-v1", 30_000, 80.0, {}),
    ("n_step_q", "CartPole-v1", 40_000, 70.0, CARTPOLE_Q),
    ("one_step_q", "CartPole-v1", 40_000, 50.0, CARTPOLE_Q),
    ("one_step_sarsa", "CartPole-v1", 40_000, 50.0, CARTPOLE_Q),
    ("a3c", "Memory-v0", 30_000, 0.9, MEMORY | {"recurrent": True}),
]
TASKS = [
    QUICK_TASKS[0],
    *(pytest.param(*task, marks=LONG) for task in QUICK_TASKS[1:]),
    pytest.param("a3c", "Catch-v0", 100_000, 0.7, CATCH, marks=LONG),
    pytest.param("n_step_q", "Catch-v0", 100_000, 0.5, CATCH | CATCH_Q, marks=LONG),
    pytest.param(*CONTINUOUS, marks=LONG),
]


@pytest.mark.learning
@pytest.mark.parametrize(("algorithm", "environment", "agent_steps", "enough", "config"), TASKS)
def test_method_learns(
    algorithm: str, environment: str, agent_steps: int, enough: float, config: dict[str, Any]
) -> None:
    assert score(algorithm, environment, agent_steps, enough, **config) >= enough


@pytest.mark.learning
@pytest.mark.long
@pytest.mark.parametrize(
    ("algorithm", "environment", "agent_steps", "enough", "config"), [*QUICK_TASKS, CONTINUOUS]
)
def test_method_does_not_learn_with_the_loss_sign_flipped(
    monkeypatch: pytest.MonkeyPatch,
    algorithm: str,
    environment: str,
    agent_steps: int,
    enough: float,
    config: dict[str, Any],
) -> None:
    check_flipped(monkeypatch, algorithm, environment, agent_steps, enough, **config)


@pytest.mark.learning
@pytest.mark.long
def test_only_recurrent_a3c_solves_the_memory_environment(capsys: pytest.CaptureFixture[str]) -> None:
    forgetful = score("a3c", "Memory-v0", 30_000, 0.9, **MEMORY)
    with capsys.disabled():
        print(f"\na3c without an LSTM on Memory-v0: {forgetful:.2f}")  # noqa: T201
    assert abs(forgetful) < 0.4, "four standard errors of a mean of 100"
