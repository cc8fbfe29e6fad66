import re
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from pydantic import ValidationError

import callboard_environments
from callboard_environments.env import CallboardEnv

GUIDE = Path(__file__).parents[2] / "docs/guides/gymnasium.md"


@pytest.mark.parametrize(
    "name",
    [
        "Catch-v0",
        "Memory-v0",
        "Racing-Slow-v0",
        "Racing-Fast-Continuous-v0",
        "Racing-Slow-Opponents-v0",
        "Labyrinth-Small-v0",
    ],
)
@pytest.mark.service
def test_gymnasium_checks_environment_made_by_its_id(name: str) -> None:
    env = gymnasium.make(f"callboard/{name}", disable_env_checker=True)
    check_env(env.unwrapped)
    env.close()


def test_every_environment_of_callboard_is_registered_once() -> None:
    callboard_environments.register_environments()
    assert {"callboard/Labyrinth-Large-v0", "callboard/Racing-Slow-Continuous-v0"} <= set(gymnasium.registry)
    assert not any("CartPole" in name or "ALE" in name for name in callboard_environments.IDS)


def test_seed_determines_an_episode_and_the_next_ones() -> None:
    def balls(seed: int) -> list[int]:
        env = gymnasium.make("callboard/Catch-v0")
        firsts = [env.reset(seed=seed)[0]] + [env.reset()[0] for _ in range(4)]
        return [int(np.argmax(first[0, :, 0])) for first in firsts]

    assert balls(3) == balls(3)
    assert len(set(balls(3))) > 1


def test_settings_are_arguments_of_make() -> None:
    env = gymnasium.make("callboard/Memory-v0", delay_agent_steps=2)
    env.reset(seed=0)
    assert [env.step(0)[2] for _ in range(3)] == [False, False, True]
    with warnings.catch_warnings(), pytest.raises(ValidationError, match="delay_agent_steps"):
        gymnasium.make("callboard/Memory-v0", delay_agent_steps=0)


@pytest.mark.parametrize("action", [-1, 3, 17])
def test_action_that_an_environment_lacks_is_an_error(action: int) -> None:
    env = CallboardEnv("Catch-v0")
    env.reset(seed=0)
    with pytest.raises(gymnasium.error.InvalidAction, match="one of 0 to 2"):
        env.step(action)


def test_actions_have_names() -> None:
    for name, names in (("Catch-v0", ["LEFT", "STAY", "RIGHT"]), ("Memory-v0", ["LEFT", "RIGHT"])):
        env = CallboardEnv(name)
        assert env.get_action_meanings() == names
        assert isinstance(env.action_space, gymnasium.spaces.Discrete)
        assert env.action_space.n == len(names)
    env = CallboardEnv("Pendulum-v1")
    assert len(env.get_action_meanings()) == env.action_space.sample().size


def test_step_after_close_is_an_error() -> None:
    env = CallboardEnv("Catch-v0")
    env.reset(seed=0)
    env.close()
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)


def test_step_before_the_first_reset_or_after_the_end_is_an_error() -> None:
    env = CallboardEnv("Memory-v0", delay_agent_steps=1)
    for _ in range(2):
        with pytest.raises(gymnasium.error.ResetNeeded):
            env.step(0)
        env.reset(seed=0)
        assert [env.step(np.int64(0))[2] for _ in range(2)] == [False, True]
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)


def test_render_returns_the_newest_frame() -> None:
    env = gymnasium.make("callboard/Catch-v0", render_mode="rgb_array")
    env.reset(seed=0)
    first = env.render()
    env.step(0)
    second = env.render()
    assert isinstance(first, np.ndarray)
    assert first.shape == (84, 84, 3)
    assert (first != second).any()


@pytest.mark.parametrize("noop_max", [0, 1])
def test_render_after_a_reset_returns_the_first_frame_of_the_episode(noop_max: int) -> None:
    env = CallboardEnv("ALE/Pong-v5", "rgb_array", noop_max=noop_max)
    env.reset(seed=0)
    first = env.render()
    assert isinstance(first, np.ndarray)
    assert first.shape == (210, 160, 3)
    for _ in range(100):
        env.step(2)
    assert (env.render() != first).any()
    env.reset(seed=0)
    assert (env.render() == first).all()


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("CartPole-v1", {}),
        ("Acrobot-v1", {}),
        ("Pendulum-v1", {}),
        ("Memory-v0", {}),
        ("Hopper-v5", {"normalise": True}),
        ("Hopper-v5", {"normalise": False}),
        ("InvertedPendulum-v5", {}),
    ],
)
def test_declared_spaces_contain_what_an_environment_returns(name: str, config: dict[str, Any]) -> None:
    env = CallboardEnv(name, **config)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # bounds without limits
        check_env(env, skip_render_check=True)
    env.action_space.seed(0)
    observation, _ = env.reset(seed=0)
    for _ in range(100):
        assert env.observation_space.contains(observation)
        observation, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            observation, _ = env.reset()
    env.close()


@pytest.mark.long
def test_a2c_of_stable_baselines3_learns_catch_as_the_guide_says() -> None:
    [sample] = [
        block for block in re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.S) if "A2C" in block
    ]
    names: dict[str, Any] = {}
    exec(sample, names)
    by_env = [np.array(returns) for returns in names["envs"].env_method("get_episode_rewards")]
    # Random actions average -0.6.
    assert np.concatenate([returns[: len(returns) // 20] for returns in by_env]).mean() < -0.3
    assert np.concatenate([returns[-(len(returns) // 5) :] for returns in by_env]).mean() > 0
