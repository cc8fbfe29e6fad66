"""Stable-Baselines3's own methods train, and `CallboardCallback` logs them to the real service."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from stable_baselines3 import A2C, DQN, TD3
from stable_baselines3.common.callbacks import ConvertCallback
from stable_baselines3.common.logger import KVWriter, Logger, Video
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnvWrapper, VecMonitor, VecNormalize

import callboard
from callboard.sb3 import CallboardCallback
from tests.client.support import Target
from tests.support.waiting import PATIENCE_S, until

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]

Row = tuple[int, float]
"""Agent steps and value."""


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Networks this small are slower on several threads."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)


class Truth(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Counts returns and lengths of an environment below every wrapper of the library."""

    def __init__(self, n_environments: int = 1) -> None:
        super().__init__(gymnasium.make("CartPole-v1"))
        self.episodes: list[tuple[int, float, int]] = []
        self._n_environments = n_environments
        self._n_steps = self._length = 0
        self._return = 0.0

    def reset(self, **options: Any) -> Any:
        self._length, self._return = 0, 0.0
        return self.env.reset(**options)

    def step(self, action: Any) -> Any:
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._n_steps += self._n_environments
        self._length += 1
        self._return += float(reward)
        if terminated or truncated:
            self.episodes.append((self._n_steps, self._return, self._length))
        return observation, reward, terminated, truncated, info


class Written(KVWriter):  # type: ignore[misc]
    """An output of the library's logger: what it writes, as the rows of metrics."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Row]] = {}

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, Any], step: int = 0) -> None:
        for key, value in key_values.items():
            if "tensorboard" not in key_excluded[key]:
                self.rows.setdefault(key, []).append((step, float(value)))

    def close(self) -> None:
        pass


def written_by(model: Any) -> Written:
    """An output beside the callback's, in a logger that the model keeps."""
    written = Written()
    model.set_logger(Logger(None, [written]))
    return written


def stored(target: Target, run: dict[str, Any]) -> dict[str, list[Row]]:
    """The rows of each metric that the service has."""
    return {
        metric: [(int(row["agent_steps"]), float(row["value"])) for row in rows]
        for metric, rows in target.points(run["id"]).items()
    }


def returns_and_lengths(episodes: list[tuple[int, float, int]]) -> dict[str, list[Row]]:
    return {
        "rollout/episode_return": [(steps, return_) for steps, return_, _ in episodes],
        "rollout/episode_length": [(steps, float(length)) for steps, _, length in episodes],
    }


@pytest.mark.service
def test_episodes_and_metrics_of_a2c_and_dqn_arrive_exactly_once(target: Target) -> None:
    env = Truth()
    model = A2C("MlpPolicy", env, seed=1, n_steps=16, learning_rate=lambda remaining: 1e-3 * remaining)
    written = written_by(model)
    model.learn(1_000, callback=CallboardCallback(tags=["sb3"]), log_interval=5)
    [run] = target.runs()
    assert (run["algorithm"], run["environment"], run["seed"]) == ("sb3_a2c", "CartPole-v1", 1)
    assert (run["state"], run["tags"]) == ("finished", ["sb3"])
    config = run["spec"]["config"]
    assert (config["n_steps"], config["gamma"], config["n_envs"]) == (16, 0.99, 1)
    assert (config["policy"], config["learning_rate"]) == ("ActorCriticPolicy", "0.001 to 0")
    assert len(env.episodes) > 10
    assert {"train/value_loss", "time/fps", "rollout/ep_rew_mean"} <= set(written.rows)
    assert stored(target, run) == written.rows | returns_and_lengths(env.episodes)

    env = Truth()
    dqn = DQN("MlpPolicy", env, seed=2, learning_starts=100, buffer_size=1_000, target_update_interval=100)
    written = written_by(dqn)
    dqn.learn(500, callback=CallboardCallback(environment="mine", name="dqn"), log_interval=4)
    [run] = [run for run in target.runs() if run["algorithm"] == "sb3_dqn"]
    assert (run["name"], run["environment"], run["seed"]) == ("dqn", "mine", 2)
    assert run["spec"]["config"]["train_freq"] == [4, "TrainFrequencyUnit.STEP"]
    assert {"train/loss", "rollout/exploration_rate"} <= set(written.rows)
    assert stored(target, run) == written.rows | returns_and_lengths(env.episodes)


class Repeat(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Takes each action twice."""

    def step(self, action: Any) -> Any:
        first = self.env.step(action)
        return first if first[2] or first[3] else self.env.step(action)


@pytest.mark.service
def test_lengths_are_agent_steps_above_a_wrapper_that_repeats_actions(target: Target) -> None:
    env = Truth()
    model = A2C("MlpPolicy", Repeat(Monitor(env)), seed=1, n_steps=16)
    model.learn(400, callback=CallboardCallback())
    [run] = target.runs()
    lengths = stored(target, run)["rollout/episode_length"]
    assert [length for _, length in lengths] == [-(-length // 2) for _, _, length in env.episodes]
    assert len(lengths) > 5


@pytest.mark.service
def test_action_noise_is_stored_as_text_in_the_config(target: Target) -> None:
    noise = NormalActionNoise(mean=np.zeros(1), sigma=np.full(1, 0.5))
    TD3("MlpPolicy", "Pendulum-v1", seed=1, action_noise=noise, buffer_size=100).learn(
        5, callback=CallboardCallback()
    )
    [run] = target.runs()
    assert (run["algorithm"], run["state"]) == ("sb3_td3", "finished")
    config = run["spec"]["config"]
    assert (config["action_noise"], config["learning_rate"]) == (repr(noise), 0.001)


@pytest.mark.service
def test_example_of_the_guide_runs_as_printed(target: Target) -> None:
    text = (ROOT / "docs/guides/log.md").read_text("utf-8")
    [block] = re.findall(r"## Stable-Baselines3\n\n```python\n(.*?)```", text, re.S)
    exec(block, {})
    [run] = target.runs()
    assert (run["algorithm"], run["state"], run["tags"]) == ("sb3_a2c", "finished", ["sb3"])
    assert run["episodes"] > 10


@pytest.mark.service
def test_run_created_by_the_script_continues_with_each_call_of_learn_and_stays_open(target: Target) -> None:
    truths = [Truth(2), Truth(2)]
    model = A2C("MlpPolicy", DummyVecEnv([partial(Monitor, truth) for truth in truths]), seed=1)
    written = written_by(model)
    with callboard.init(algorithm="a", environment="e") as run:
        callback = CallboardCallback(run)
        model.learn(300, callback=callback, log_interval=10)
        first = {metric: len(rows) for metric, rows in written.rows.items()}
        model.learn(300, callback=callback, log_interval=10)
        # This call goes on with the model's agent steps, which are those of the second.
        continued = {"log_interval": 10, "reset_num_timesteps": False}
        model.learn(300, callback=CallboardCallback(run), **continued)
        assert run.flush(timeout_s=PATIENCE_S)
        assert target.run(run.id)["state"] == "running"
        assert run.n_dropped == 0
    points = stored(target, target.run(run.id))
    # The model counts the second call's agent steps from 0; the run goes on where it was.
    for metric, n in first.items():
        later = [(300 + steps, value) for steps, value in written.rows[metric][n:]]
        assert points[metric] == written.rows[metric][:n] + later
    episodes = sorted(row for truth in truths for row in truth.episodes)
    assert sorted(points["rollout/episode_return"]) == [(steps, return_) for steps, return_, _ in episodes]


@pytest.mark.service
def test_training_that_raises_fails_its_run_and_leaves_nothing_in_the_logger(target: Target) -> None:
    model = A2C("MlpPolicy", "CartPole-v1", seed=1)
    written = written_by(model)
    callback = CallboardCallback()
    with pytest.raises(ZeroDivisionError):
        model.learn(100, callback=[callback, ConvertCallback(lambda *_: 1 // 0)])
    model.learn(100, callback=callback, log_interval=5)
    latest, earlier = target.runs()
    assert (earlier["state"], latest["state"]) == ("failed", "finished")
    assert "exception" in earlier["state_reason"]
    assert model.logger.output_formats == [written]


@pytest.mark.service
def test_training_whose_exception_is_caught_has_failed_once_another_one_begins(target: Target) -> None:
    first, second = CallboardCallback(name="first"), CallboardCallback(name="second")
    inner = CallboardCallback(name="inner")
    with suppress(ZeroDivisionError):
        A2C("MlpPolicy", "CartPole-v1").learn(100, callback=[first, ConvertCallback(lambda *_: 1 // 0)])

    def nested(*_: Any) -> bool:
        if inner.run is None:
            A2C("MlpPolicy", "CartPole-v1").learn(10, callback=inner)
            assert second.run is not None
            assert target.run(second.run.id)["state"] == "running", "its own training goes on"
        return True

    A2C("MlpPolicy", "CartPole-v1").learn(20, callback=[second, ConvertCallback(nested)])
    states = {run["name"]: run["state"] for run in target.runs()}
    assert states == {"first": "failed", "second": "finished", "inner": "finished"}


CAUGHT = """
from stable_baselines3 import A2C
from stable_baselines3.common.callbacks import ConvertCallback
from callboard.sb3 import CallboardCallback
fail = ConvertCallback(lambda *_: 1 // 0)
try: A2C("MlpPolicy", "CartPole-v1").learn(100, callback=[CallboardCallback(), fail])
except ZeroDivisionError: print("caught")
"""


@pytest.mark.service
def test_training_whose_exception_is_caught_has_failed_once_the_script_ends(target: Target) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "client")}
    done = subprocess.run(
        [sys.executable, "-c", CAUGHT], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "caught\n"
    [run] = target.runs()
    assert (run["state"], run["state_reason"]) == ("failed", "its training has ended with an exception")


@pytest.mark.service
def test_stop_on_the_page_ends_the_training(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callboard.background.HEARTBEAT_INTERVAL_S", 0.1)
    model = A2C("MlpPolicy", "CartPole-v1", seed=1)
    with callboard.init(algorithm="a", environment="e") as run:
        target.client.post(f"/api/v1/runs/{run.id}/stop").raise_for_status()
        until(lambda: run.stop_requested)
        model.learn(10_000, callback=CallboardCallback(run))
    assert model.num_timesteps == 1


@pytest.mark.service
def test_value_that_is_not_a_metric_becomes_a_log_line_or_a_warning(
    target: Target, caplog: pytest.LogCaptureFixture
) -> None:
    model = A2C("MlpPolicy", DummyVecEnv([Truth]), seed=1)

    def record(local: dict[str, Any], _: dict[str, Any]) -> bool:
        logger = local["self"].logger
        logger.record("diagnostics/note", "half-way", exclude="csv")
        logger.record("diagnostics/weights", np.zeros(3))
        logger.record("diagnostics/hidden", 1.0, exclude="tensorboard")
        logger.record("diagnostics/flag", np.bool_(True))
        logger.record("diagnostics/film", Video(torch.zeros(1, 2, 3, 16, 16, dtype=torch.uint8), fps=4))
        logger.record("diagnostics/torn", Video(torch.zeros(2, 3), fps=4))
        half = torch.zeros(1, 2, 3, 16, 16, dtype=torch.bfloat16)
        logger.record("diagnostics/half", Video(half, fps=4))
        return True

    model.learn(10, callback=[CallboardCallback(), ConvertCallback(record)], log_interval=1)
    [run] = target.runs()
    assert stored(target, run)["diagnostics/flag"] == [(5, 1.0), (10, 1.0)]
    assert "diagnostics/hidden" not in stored(target, run)
    assert target.lines(run["id"]).count("diagnostics/note: half-way") == 2
    assert [record.getMessage() for record in caplog.records if record.name == "callboard"] == [
        "callboard: no returns of episodes: wrap the environments in Monitor or VecMonitor",
        "callboard: diagnostics/weights is not kept: it is a ndarray",
        "callboard: diagnostics/torn is not kept: must have the shape (N, T, C, H, W), with C 1 or 3: "
        "got (2, 3)",
        "callboard: diagnostics/half is not kept: Got unsupported ScalarType BFloat16",
    ]
    videos = target.service.client.get(f"/api/v1/runs/{run['id']}/videos").json()["items"]
    assert sorted(video["agent_steps"] for video in videos) == [5, 10]


@pytest.mark.service
@pytest.mark.parametrize(
    ("wrap", "is_reported"),
    [
        (lambda env: VecMonitor(VecNormalize(env)), True),
        (lambda env: VecMonitor(VecNormalize(env, norm_reward=False)), False),
        (lambda env: VecNormalize(VecMonitor(env)), False),
    ],
)
def test_returns_of_normalised_rewards_are_reported(
    target: Target,
    caplog: pytest.LogCaptureFixture,
    wrap: Callable[[DummyVecEnv], VecEnvWrapper],
    is_reported: bool,
) -> None:
    env = wrap(DummyVecEnv([lambda: gymnasium.make("CartPole-v1")]))
    A2C("MlpPolicy", env, seed=1).learn(5, callback=CallboardCallback())
    messages = [record.getMessage() for record in caplog.records if record.name == "callboard"]
    assert any("normalised rewards" in message for message in messages) == is_reported


@pytest.mark.service
def test_importing_the_client_does_not_import_the_library() -> None:
    code = "import callboard, sys; sys.exit('stable_baselines3' in sys.modules)"
    folder = str(ROOT / "client")
    assert (
        subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": folder}, check=False).returncode == 0
    )
