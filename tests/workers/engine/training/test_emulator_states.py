"""Emulator states of long episodes: written while a video is rendered, and restored exactly."""

from pathlib import Path

import numpy as np
import pytest

from backend.specs.environments.atari import AtariConfig
from workers.engine.envs.atari import AtariEnv
from workers.engine.training import emulator_states
from workers.engine.training.emulator_states import EmulatorStates, latest_before
from workers.engine.training.restore import RecordedEpisode, restore

BREAKOUT = "ALE/Breakout-v5"
N = 90


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A state every 80 frames: an episode of 18,000 takes seconds."""
    monkeypatch.setattr(emulator_states, "INTERVAL_FRAMES", 80)
    monkeypatch.setattr(emulator_states, "MIN_FRAMES", 160)


def _played(config: AtariConfig, path: Path) -> tuple[RecordedEpisode, list[tuple[bytes, ...]]]:
    """A game of random actions with its states' file, and what it was like before each decision."""
    env = AtariEnv(BREAKOUT, config)
    out = np.empty(env.observation_shape, np.uint8)
    env.reset(2, out)
    actions = np.random.default_rng(0).integers(2, len(env.actions), size=N)  # right or left
    actions[0] = 1
    kept = EmulatorStates(env)
    seen, rewards = [_all(env, out)], []
    for t, action in enumerate(actions):
        step = env.step(int(action), out)
        rewards.append(step.reward)
        kept.add(t + 1, step.frames)
        seen.append(_all(env, out))
    assert kept.save(path)
    return RecordedEpisode(2, actions, np.asarray(rewards, np.float32)), seen


def _all(env: AtariEnv, observation: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> tuple[bytes, ...]:
    return env.ale.getRAM().tobytes(), env.ale.getScreenRGB().tobytes(), observation.tobytes()


@pytest.mark.parametrize(
    "config",
    [AtariConfig(), AtariConfig(sticky_actions=0.9, frame_maximum="rgb")],
    ids=["luminance", "sticky-rgb"],
)
def test_state_is_restored_from_the_latest_one_before_it_as_if_all_was_repeated(
    config: AtariConfig, tmp_path: Path
) -> None:
    path = tmp_path / "states.npz"
    episode, seen = _played(config, path)
    env = AtariEnv(BREAKOUT, config)
    out = np.empty(env.observation_shape, np.uint8)
    for decision, first in ((90, 80), (81, 80), (80, 60), (21, 20), (20, 0), (0, None)):
        repeated: list[int] = []

        def watch(t: int, observation: object, repeated: list[int] = repeated) -> None:
            repeated.append(t)

        frames = restore(env, episode, decision, out, states=path, watch=watch)
        assert (frames, repeated[:1]) == (4 * decision, [] if first is None else [first])
        assert _all(env, out) == seen[decision], decision
        assert env.frames == frames + seen_frames(config)
        for t in range(decision, N):  # and so it goes on
            episode.repeat(env, t, out)
        assert _all(env, out) == seen[N]


def seen_frames(config: AtariConfig) -> int:
    """Frames of the no-ops at the start."""
    env = AtariEnv(BREAKOUT, config)
    env.reset(2, np.empty(env.observation_shape, np.uint8))
    return env.frames


def test_short_episode_has_no_states_and_those_of_another_emulator_are_not_used(tmp_path: Path) -> None:
    env = AtariEnv(BREAKOUT, AtariConfig(noop_max=0))
    out = np.empty(env.observation_shape, np.uint8)
    env.reset(0, out)
    kept = EmulatorStates(env)
    for t in range(40):
        kept.add(t + 1, env.step(0, out).frames)
    path = tmp_path / "states.npz"
    assert not kept.save(path)
    assert not path.exists()
    kept.add(41, env.step(0, out).frames)
    assert kept.save(path)
    assert latest_before(path, 30) is not None
    with np.load(path) as file:
        np.savez(path, **(dict(file) | {"ale_py": np.array("0.1")}))
    assert latest_before(path, 30) is None
