"""Scripts written for other libraries, and the README's example, log to the real service."""

import re
import sys
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

import callboard
from tests.client.support import Target

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]


@pytest.mark.service
def test_readme_example_runs_as_printed(target: Target) -> None:
    [block] = re.findall(
        r"Log your own training\.\*\*.*?```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S
    )
    assert len(list(filter(None, block.splitlines()))) == 5
    exec(block, {})
    [run] = target.runs()
    assert (run["origin"], run["state"], run["seed"]) == ("external", "finished", 1)
    assert run["best_return"] == 200.0
    assert len(target.points(run["id"])["loss/policy"]) == 1000


@pytest.mark.service
def test_script_that_logs_to_tensorboard_changes_its_import_only(
    target: Target, caplog: pytest.LogCaptureFixture
) -> None:
    writer = callboard.SummaryWriter("runs/CartPole-v1__ppo__7__1700000000", config={"learning_rate": 0.1})
    writer.add_text("hyperparameters", "|param|value|", 3)
    for step in range(5):
        writer.add_scalar("charts/episodic_return", np.float32(step), step)
        writer.add_scalar("losses/value loss", step, global_step=step)
        writer.add_scalars("speed", {"SPS": 1.0, "fps": 2.0}, step)
        writer.add_scalar("loss", 0.5)
        writer.add_histogram("weights", np.zeros(3), step)
        writer.add_image("frame", np.zeros((3, 2, 2)), step)
    writer.add_video("eval", np.zeros((2, 3, 3, 16, 20), np.uint8), 4, fps=10)
    writer.add_video("wrong", np.zeros((3, 3, 16, 20)))
    writer.add_hparams({"lr": 0.1}, {"hparam/accuracy": 0.9})
    writer.flush()
    assert writer.n_not_kept == {"histograms": 5, "images": 5, "videos": 1}
    writer.close()
    [run] = target.runs()
    videos = target.client.get(f"/api/v1/runs/{run['id']}/videos").json()["items"]
    assert [video["agent_steps"] for video in videos] == [4]
    assert (run["algorithm"], run["environment"], run["seed"]) == ("ppo", "CartPole-v1", 7)
    assert run["spec"]["config"] == {"learning_rate": 0.1, "lr": 0.1}
    assert (run["best_return"], run["return_metric"]) == (4.0, "charts/episodic_return")
    points = target.points(run["id"])
    assert {name: len(rows) for name, rows in points.items()} == {
        "charts/episodic_return": 5,
        "losses/value loss": 5,
        "speed/SPS": 5,
        "speed/fps": 5,
        "loss": 5,
        "hparam/accuracy": 1,
    }
    lines = [line for line in target.lines(run["id"]) if "hyperparameters" in line]
    assert lines == ["hyperparameters: |param|value|"]
    log = target.client.get(f"/api/v1/runs/{run['id']}/log").json()["items"]
    assert [line["agent_steps"] for line in log if "|param|value|" in line["message"]] == [3]
    kept = [record.getMessage() for record in caplog.records if record.name == "callboard"]
    assert kept[:2] == ["callboard: histograms are not kept", "callboard: images are not kept"]
    assert "(N, T, C, H, W)" in kept[2]
    assert kept[3:] == ["callboard: videos are not kept"]


CLEANRL = "|param|value|\n|-|-|\n|exp_name|ppo|\n|learning_rate|{lr}|\n|seed|{seed}|\n|env_id|CartPole-v1|"


@pytest.mark.service
def test_settings_that_come_later_are_the_config_and_their_seed_divides_no_group(target: Target) -> None:
    for lr in (0.00025, 0.01):
        for seed in (1, 2, 3):
            writer = callboard.SummaryWriter("runs/mine")
            writer.add_text("hyperparameters", CLEANRL.format(lr=lr, seed=seed))
            for step in range(1, 4):
                writer.add_scalar("charts/episodic_return", step * seed, step * 100)
            writer.add_hparams({"anneal": True}, {})
            writer.close()
    runs = target.runs()
    assert {run["environment"] for run in runs} == {"CartPole-v1"}
    assert sorted(run["seed"] for run in runs) == [1, 1, 2, 2, 3, 3]
    assert {tuple(sorted(run["spec"]["config"])) for run in runs} == {
        ("anneal", "env_id", "exp_name", "learning_rate", "seed")
    }
    query = {"run": [run["id"] for run in runs]}
    groups = target.client.get("/api/v1/comparisons", params=query).json()["groups"]
    assert [group["n"] for group in groups] == [3, 3]
    assert {run["score"] for run in runs} == {2.0, 4.0, 6.0}


@pytest.mark.service
def test_config_of_a_run_is_updated_live_and_after_a_resumption(target: Target) -> None:
    with callboard.init(algorithm="a", environment="e", config={"lr": 0.1, "net": {"n": 1}}) as run:
        run.config.update({"net": {"n": 2}, "gamma": 0.9}, beta=1)
        run.config["seed"] = 5
        assert dict(run.config) == {"lr": 0.1, "net.n": 2, "gamma": 0.9, "beta": 1, "seed": 5}
        run.config.update({f"f{at}": at for at in range(500)})
        run.config.update(3)
        assert sum(run.dropped.values()) == 2, "and the script goes on"
        assert len(run.config) == 5
    with callboard.init(id=run.id) as resumed:
        assert resumed.config["gamma"] == 0.9
        resumed.config.update(gamma="0.9")
    stored = target.run(run.id)
    assert stored["spec"]["config"] == {"lr": 0.1, "net.n": 2, "gamma": "0.9", "beta": 1, "seed": 5}
    assert stored["seed"] == 5
    run.config["x"] = 1
    assert run.dropped["the run is closed"] == 1


@pytest.mark.service
def test_algorithm_of_a_writer_is_that_of_its_settings_else_the_name_of_the_script(target: Target) -> None:
    table = "|param|value|\n|-|-|\n|exp_name|ppo|\n|env_id|CartPole-v1|"
    with callboard.SummaryWriter("runs/table") as writer:
        writer.add_text("hyperparameters", table)
        writer.add_scalar("a/b", 1.0, 1)
    with callboard.SummaryWriter("runs/ALE/Pong-v5__dqn__1__1700000000") as writer:
        writer.add_text("hyperparameters", "|param|value|\n|-|-|\n|env_id|ALE/Pong-v5|\n|exp_name|ppo|")
    with callboard.SummaryWriter("runs/hparams") as writer:
        writer.add_hparams({"exp_name": "ppo", "env_id": "CartPole-v1"}, {"a/b": 1.0})
    with callboard.SummaryWriter("runs/given", algorithm="mine", environment="e") as writer:
        writer.add_text("hyperparameters", table)
    with callboard.SummaryWriter("runs/neither") as writer:
        writer.add_scalar("a/b", 1.0, 1)
    callboard.SummaryWriter("runs/empty").close()
    script = Path(sys.argv[0]).stem
    stored = {run["name"]: (run["algorithm"], run["environment"]) for run in target.runs()}
    assert stored == {
        "table": ("ppo", "CartPole-v1"),
        "hparams": ("ppo", "CartPole-v1"),
        "Pong-v5__dqn__1__1700000000": ("dqn", "ALE/Pong-v5"),
        "given": ("mine", "e"),
        "neither": (script, "unknown"),
        "empty": (script, "unknown"),
    }


@pytest.mark.service
def test_writer_closes_its_own_run_in_the_state_of_the_exception(target: Target) -> None:
    with pytest.raises(ZeroDivisionError), callboard.SummaryWriter(environment="e", algorithm="a") as writer:
        writer.add_scalar("x/y", 1 / 0)
    with callboard.init(algorithm="a", environment="e") as run:
        with callboard.SummaryWriter(run=run) as other:
            other.add_scalar("x/y", 1.0, 3)
        run.log({"x/y": 2.0}, agent_steps=4)
    assert {row["id"]: row["state"] for row in target.runs()} == {
        writer.run.id: "failed",
        run.id: "finished",
    }


@pytest.mark.service
def test_writer_of_a_resumed_run_continues_at_its_last_step(target: Target) -> None:
    with callboard.init(algorithm="a", environment="e") as run:
        run.log({"x/y": 1.0}, agent_steps=50)
    with callboard.init(id=run.id) as resumed:
        writer = callboard.SummaryWriter(run=resumed)
        writer.add_scalar("x/y", 2.0)
        writer.add_scalar("x/y", 3.0, 60)
        writer.add_scalar("x/y", 4.0)
    assert resumed.n_dropped == 0
    points = [(int(row["agent_steps"]), float(row["value"])) for row in target.points(run.id)["x/y"]]
    assert points == [(50, 1.0), (50, 2.0), (60, 3.0), (60, 4.0)]


class Rewards(gymnasium.Env[np.int64, np.int64]):
    """Episodes of 3 agent steps, each with the reward 10."""

    observation_space = gymnasium.spaces.Discrete(1)
    action_space = gymnasium.spaces.Discrete(1)
    _left = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.int64, dict[str, Any]]:
        self._left = 3
        return np.int64(0), {}

    def step(self, action: np.int64) -> tuple[np.int64, float, bool, bool, dict[str, Any]]:
        self._left -= 1
        return np.int64(0), 10.0, self._left == 0, False, {}


@pytest.mark.service
def test_wrapper_reports_true_returns_below_wrappers_that_clip(target: Target) -> None:
    with callboard.init(algorithm="a", environment="e") as run:
        recorded = callboard.RecordReturns(Rewards(), run, n_environments=2)
        env = gymnasium.wrappers.TransformReward(recorded, lambda reward: min(float(reward), 1.0))
        env.reset()
        for step in range(7):
            _, reward, terminated, truncated, _ = env.step(np.int64(0))
            assert reward == 1.0
            if terminated or truncated:
                env.reset()
            if step == 3:
                env.reset()  # one that has not ended
        with pytest.raises(ValueError, match="n_environments"):
            callboard.RecordReturns(Rewards(), run, n_environments=0)
    points = target.points(run.id)
    assert [float(row["value"]) for row in points["rollout/episode_return"]] == [30.0, 30.0]
    assert [float(row["value"]) for row in points["rollout/episode_length"]] == [3.0, 3.0]
    assert [int(row["agent_steps"]) for row in points["rollout/episode_return"]] == [6, 14]


@pytest.mark.service
def test_vector_environment_that_resets_instead_of_stepping_loses_no_episode(target: Target) -> None:
    n, n_steps = 4, 400
    with callboard.init(algorithm="a", environment="e") as run:
        make = partial(gymnasium.make, "CartPole-v1")
        envs = SyncVectorEnv([lambda: callboard.RecordReturns(make(), run, n_environments=n)] * n)
        envs.reset(seed=1)
        envs.action_space.seed(1)
        n_ended = 0
        for _ in range(n_steps):
            _, _, terminated, truncated, _ = envs.step(envs.action_space.sample())
            n_ended += int((terminated | truncated).sum())
    stored = target.run(run.id)
    assert stored["episodes"] == n_ended > 50
    assert stored["agent_steps"] <= n * n_steps
    assert not any("dropped" in line for line in target.lines(run.id))


@pytest.mark.service
def test_steps_below_a_frame_skip_are_counted_once(target: Target) -> None:
    with callboard.init(algorithm="a", environment="e") as run:
        env = callboard.RecordReturns(Rewards(), run, frame_skip=2)
        for _ in range(2):
            env.reset()
            while not any(env.step(np.int64(0))[2:4]):
                pass
    points = target.points(run.id)
    assert [float(row["value"]) for row in points["rollout/episode_length"]] == [2.0, 2.0]
    assert [int(row["agent_steps"]) for row in points["rollout/episode_return"]] == [2, 4]


def test_returns_of_a_run_in_iterations_are_at_the_iteration_logged_last(target: Target) -> None:
    with callboard.init(algorithm="a", environment="e", step_unit="iterations") as run:
        env = callboard.RecordReturns(Rewards(), run)
        env.reset()
        run.log({"loss/policy": 0.5}, agent_steps=2)
        while not any(env.step(np.int64(0))[2:4]):
            pass
        run.episode(5.0, 500)
    points = target.points(run.id)
    assert [int(row["agent_steps"]) for row in points["rollout/episode_return"]] == [2, 2]
    assert target.run(run.id)["agent_steps"] == 2
