"""Any state of a recorded episode, simulated again."""

import numpy as np
import pytest

from backend.specs.environments.atari import AtariConfig
from workers.engine.envs.atari import AtariEnv
from workers.engine.training.restore import RecordedEpisode, ReplayMismatchError, restore

PONG = "ALE/Pong-v5"
STICKY = AtariConfig(sticky_actions=0.25)


def _played(config: AtariConfig, seed: int, n: int) -> tuple[RecordedEpisode, list[tuple[bytes, bytes]]]:
    """An episode of random actions, and RAM and screen before each decision and after the last."""
    env = AtariEnv(PONG, config)
    out = np.empty(env.observation_shape, env.observation_dtype)
    env.reset(seed, out)
    actions = np.random.default_rng(seed).integers(len(env.actions), size=n)
    states, rewards = [_state(env)], []
    for action in actions:
        rewards.append(env.step(int(action), out).reward)
        states.append(_state(env))
    return RecordedEpisode(seed, actions, np.asarray(rewards, np.float32)), states


def _state(env: AtariEnv) -> tuple[bytes, bytes]:
    return env.ale.getRAM().tobytes(), env.ale.getScreenRGB().tobytes()


@pytest.mark.parametrize("config", [AtariConfig(), STICKY], ids=["noops", "sticky"])
def test_every_state_is_restored_bit_for_bit(config: AtariConfig) -> None:
    episode, states = _played(config, seed=11, n=60)
    env = AtariEnv(PONG, config)
    out = np.empty(env.observation_shape, env.observation_dtype)
    for decision in (60, 0, 17, 1):
        frames = restore(env, episode, decision, out)
        assert _state(env) == states[decision], decision
        assert frames == 4 * decision
    watched = []
    restore(env, episode, 3, out, watch=lambda t, observation: watched.append((t, observation.copy())))
    assert [t for t, _ in watched] == [0, 1, 2]
    assert np.array_equal(watched[2][1][..., -1], out[..., -2]), "before the decision, not after it"


def test_episode_that_goes_another_way_or_is_too_short_is_refused() -> None:
    episode, _ = _played(AtariConfig(), seed=3, n=8)
    env = AtariEnv(PONG, AtariConfig())
    out = np.empty(env.observation_shape, env.observation_dtype)
    with pytest.raises(ValueError, match="has 8 decisions, and no state 9"):
        restore(env, episode, 9, out)
    other = RecordedEpisode(3, episode.actions, episode.rewards + 1)
    with pytest.raises(ReplayMismatchError, match=r"decision 0 gave reward 0\.0, but 1\.0 was recorded"):
        restore(env, other, 5, out)
    short = AtariEnv(PONG, AtariConfig(max_frames=100))
    with pytest.raises(ReplayMismatchError, match="is over after decision"):
        restore(short, _played(AtariConfig(), seed=3, n=40)[0], 40, out)
