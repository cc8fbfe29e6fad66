"""What a script of another tool's means is what its run has: ids, axes, ranks, restarts, libraries."""

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit

import callboard
import callboard.wandb as wandb
from callboard.ranks import VARIABLES
from tests.client.support import Target

pytestmark = pytest.mark.service


@pytest.fixture(autouse=True)
def _without_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    for name in (*VARIABLES, "WANDB_MODE"):
        monkeypatch.delenv(name, raising=False)
    yield
    wandb.finish()


def points(target: Target, run: str | None, metric: str) -> list[tuple[int, float]]:
    """Steps and values of a metric."""
    return [(int(row["agent_steps"]), float(row["value"])) for row in target.points(run)[metric]]


def test_requeued_job_with_an_id_of_its_own_finds_its_run(
    target: Target, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ids = set()
    monkeypatch.setenv("WANDB_RUN_ID", "job-4711")
    monkeypatch.setenv("WANDB_PROJECT", "p")
    for at in range(3):
        run = wandb.init(resume="allow", config={"seed": 1}, algorithm="a", environment="e")
        assert (run.id, run.resumed) == ("job-4711", at > 0)
        assert run.external is not None
        ids.add(run.external.id)
        run.log({"a": at})
        run.finish()
    [stored] = target.runs()
    assert ids == {stored["id"]}
    assert points(target, stored["id"], "a") == [(0, 0.0), (1, 1.0), (2, 2.0)]
    with pytest.raises(wandb.UsageError, match='resume="never": there is a run'):
        wandb.init(resume="never")
    with pytest.raises(wandb.UsageError, match='resume="must": there is no run'):
        wandb.init(project="another", resume="must")
    wandb.init(algorithm="a", environment="e").finish()
    assert len(target.runs()) == 2
    assert f"this is another run than {stored['id']}" in caplog.text


def test_run_is_resumed_or_forked_from_a_row(target: Target) -> None:
    run = wandb.init(algorithm="a", environment="e")
    for row in range(10):
        run.log({"a": 1.0}, step=row)
    run.finish()
    resumed = wandb.init(resume_from=f"{run.id}?_step=5")
    resumed.log({"a": 2.0}, step=6)
    resumed.finish()
    assert points(target, run.id, "a") == [*((row, 1.0) for row in range(6)), (6, 2.0)]
    fork = wandb.init(fork_from=f"{run.id}?_step=5", algorithm="a", environment="e")
    fork.finish()
    assert f"Forked from run {run.id} at its step 5." in target.run(fork.id)["notes"]
    counted = wandb.init(algorithm="a", environment="e")
    counted.log({"global_step": 64, "a": 1.0})
    counted.finish()
    with pytest.raises(wandb.UsageError, match="counts agent steps, not rows"):
        wandb.init(resume_from=f"{counted.id}?_step=5")


def test_axis_of_a_script_is_that_of_its_run_and_the_summary_has_last_values(target: Target) -> None:
    run = wandb.init(algorithm="a", environment="e")
    run.define_metric("*", step_metric="env_steps")
    for row in range(3):
        run.log({"env_steps": row * 64, "loss": float(row)})
    assert (run.summary["loss"], wandb.summary.loss) == (2.0, 2.0)
    run.finish()
    assert target.run(run.id)["step_unit"] == "agent_steps"
    assert points(target, run.id, "loss") == [(0, 0.0), (64, 1.0), (128, 2.0)]
    other = wandb.init(algorithm="a", environment="e")
    other.define_metric("*", step_metric="train/global_step")
    other.log({"train/global_step": 7, "loss": 1.0})
    other.finish()
    assert target.run(other.id)["step_unit"] == "iterations"
    assert points(target, other.id, "loss") == [(7, 1.0)]


def test_writer_of_a_script_with_a_run_of_wandb_logs_to_that_run(target: Target) -> None:
    run = wandb.init(project="p", sync_tensorboard=True, config={"env_id": "CartPole-v1"}, algorithm="a")
    writer = callboard.SummaryWriter("runs/CartPole-v1__ppo__7__1")
    for step in range(3):
        writer.add_scalar("charts/episodic_return", step, step * 10)
    writer.close()
    wandb.log({"late": 1.0})
    wandb.finish()
    [stored] = target.runs()
    assert (stored["id"], stored["project"], stored["step_unit"]) == (run.id, "p", "agent_steps")
    assert stored["score"] is not None
    assert points(target, run.id, "late") == [(20, 1.0)]


def test_purge_step_of_an_existing_run_keeps_its_later_points_aside(
    target: Target, caplog: pytest.LogCaptureFixture
) -> None:
    writer = callboard.SummaryWriter("runs/mine", purge_step=3)
    assert "this is a new run" in caplog.text
    for step in range(0, 100, 10):
        writer.add_scalar("a", 1.0, step)
    writer.close()
    for options in ({"run": callboard.init(id=writer.run.id)}, {"id": writer.run.id}):
        again = callboard.SummaryWriter("runs/mine", purge_step=50, **options)
        again.add_scalar("a", 2.0, 60)
        again.close()
        again.run.close()
    assert points(target, writer.run.id, "a") == [*((step, 1.0) for step in range(0, 50, 10)), (60, 2.0)]


@pytest.mark.parametrize("variable", VARIABLES)
def test_process_above_rank_0_logs_nothing_and_says_so(
    target: Target, variable: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(variable, "1")
    with callboard.init(algorithm="a", environment="e", config={"lr": 0.1}) as run:
        run.log({"a": 1.0}, agent_steps=1)
        run.episode(1.0, 1)
        run.text("x")
        run.video(np.zeros((1, 16, 16, 3), np.uint8))
        run.checkpoint(__file__)
        run.config.update({"late": 1})
        assert (run.id, run.url, run.stop_requested, run.n_dropped, run.flush()) == (
            None,
            None,
            False,
            0,
            True,
        )
    with callboard.SummaryWriter("runs/mine") as writer:
        writer.add_scalar("a", 1.0, 1)
    wandb.init(id="job", resume="allow").log({"a": 1.0})
    wandb.finish()
    assert target.runs() == []
    assert caplog.text.count("logs nothing") == 3


def test_episodes_that_a_wrapper_above_cuts_are_said_once(
    target: Target, caplog: pytest.LogCaptureFixture
) -> None:
    with callboard.init(algorithm="a", environment="e") as run:
        env: Any = TimeLimit(callboard.RecordReturns(gymnasium.make("CartPole-v1").unwrapped, run), 2)
        for _ in range(6):
            env.reset()
            for _ in range(2):
                env.step(0)
    said = [record.getMessage() for record in caplog.records if "episodes in a row" in record.getMessage()]
    assert len(said) == 1
    assert "put RecordReturns around the wrapper that ends them" in said[0]


def test_libraries_that_import_wandb_log_here_once_it_is_installed(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    stable_baselines3 = pytest.importorskip("stable_baselines3")
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    try:
        _train_with_installed(stable_baselines3.A2C)
        [stored] = target.runs()
        assert (stored["algorithm"], stored["environment"], stored["seed"]) == ("sb3_a2c", "CartPole-v1", 3)
        assert (stored["state"], stored["project"]) == ("finished", "p")
        assert 0 < stored["agent_steps"] <= 60
        assert stored["spec"]["config"]["policy_type"] == "MlpPolicy"
        sys.modules["wandb"] = logging
        with pytest.raises(RuntimeError, match="wandb is imported already"):
            wandb.install()
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "wandb"]:
            del sys.modules[name]


def _train_with_installed(method: Any) -> None:
    wandb.install()
    wandb.install()
    import wandb as imported
    from wandb.integration.sb3 import WandbCallback
    from wandb.sdk.lib import RunDisabled
    from wandb.sdk.lib.config_util import ConfigError

    assert imported is sys.modules["callboard.wandb"]
    assert version("wandb") == imported.__version__
    assert isinstance(RunDisabled, type)
    assert issubclass(ConfigError, Exception)
    run = imported.init(project="p", sync_tensorboard=True, config={"policy_type": "MlpPolicy"})
    model = method("MlpPolicy", "CartPole-v1", seed=3, device="cpu")
    model.learn(60, callback=WandbCallback(gradient_save_freq=10))
    run.finish()


def test_writer_for_rsl_rl_has_its_interface(target: Target, tmp_path: Path) -> None:
    stub = tmp_path / "rsl_rl" / "utils"
    stub.mkdir(parents=True)
    (stub / "log_writer.py").write_text("class LogWriter: pass")  # the library needs a GPU's torch
    script = (
        "from callboard.rsl_rl import CallboardLogWriter as Writer\n"
        "writer = Writer('logs/rsl_rl/cartpole/run', agent_steps_per_iteration=96)\n"
        "settings = {'algorithm': {'class_name': 'PPO'}, 'seed': 7, 'experiment_name': 'cartpole'}\n"
        "writer.store_config({'decimation': 2}, settings)\n"
        "for at in range(3):\n"
        "    writer.add_scalar('Train/mean_reward', at, at)\n"
        "    writer.add_scalar('Train/mean_reward/time', at, 0)\n"
        "writer.save_model(__file__, 2)\n"
        "writer.stop()\n"
    )
    (tmp_path / "train.py").write_text(script)
    client = Path(callboard.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "train.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": f"{tmp_path}:{client}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    [stored] = target.runs()
    assert (stored["algorithm"], stored["environment"], stored["seed"]) == ("rsl_rl_ppo", "cartpole", 7)
    assert stored["spec"]["config"]["env_cfg.decimation"] == 2
    assert points(target, stored["id"], "Train/mean_reward") == [(0, 0.0), (96, 1.0), (192, 2.0)]
    assert "Train/mean_reward/time" not in target.points(stored["id"])
