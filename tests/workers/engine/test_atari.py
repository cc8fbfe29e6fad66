"""The Atari pipeline against the papers' description, on the real emulator."""

import cv2
import numpy as np
import pytest
from ale_py import ALEInterface, roms
from numpy.typing import NDArray

from backend.specs.environments.atari import AtariConfig
from workers.engine.envs import evaluation_config, make_world
from workers.engine.envs.base import World

FRAMES = NDArray[np.uint8]


def play(world: World, seed: int, actions: list[int]) -> tuple[list[FRAMES], list[float]]:
    observation = np.empty(world.observation_shape, np.uint8)
    world.reset(seed, observation)
    seen, rewards = [observation.copy()], []
    for action in actions:
        rewards.append(world.step(action, observation).reward)
        seen.append(observation.copy())
    return seen, rewards


def random_actions(n: int, n_actions: int = 4) -> list[int]:
    return np.random.default_rng(7).integers(n_actions, size=n).tolist()


def reference(game: str, noops: int, actions: list[int]) -> tuple[list[FRAMES], list[float]]:
    """Mnih et al. 2015, methods: repeat 4; maximum of the last two RGB frames; luminance; 84×84; four."""
    ale = ALEInterface()
    ale.setFloat("repeat_action_probability", 0.0)
    rom = roms.get_rom_path(game)
    assert rom is not None
    ale.loadROM(rom)
    legal = ale.getMinimalActionSet()
    for _ in range(noops):
        ale.act(legal[0])

    def shrink(rgb: FRAMES) -> FRAMES:
        grey = cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY)
        return np.asarray(cv2.resize(grey, (84, 84), interpolation=cv2.INTER_AREA), np.uint8)

    pictures = [np.zeros((84, 84), np.uint8)] * 3 + [shrink(ale.getScreenRGB())]
    seen, rewards = [np.stack(pictures, -1)], []
    for action in actions:
        reward, screens = 0.0, []
        for _ in range(4):
            reward += ale.act(legal[action])
            screens.append(ale.getScreenRGB())
        pictures = [*pictures[1:], shrink(np.maximum(screens[-1], screens[-2]))]
        seen.append(np.stack(pictures, -1))
        rewards.append(reward)
    return seen, rewards


@pytest.mark.parametrize(("environment", "rom"), [("ALE/Pong-v5", "pong"), ("ALE/Breakout-v5", "breakout")])
def test_rgb_pipeline_is_the_papers_frame_by_frame(environment: str, rom: str) -> None:
    world = make_world(environment, AtariConfig(frame_maximum="rgb"))
    actions = random_actions(150, len(world.action_names))
    seed = 3
    noops = int(np.random.default_rng(seed).integers(1, 31))
    seen, rewards = play(world, seed, actions)
    expected, expected_rewards = reference(rom, noops, actions)
    assert rewards == expected_rewards
    for t, (got, want) in enumerate(zip(seen, expected, strict=True)):
        np.testing.assert_array_equal(got, want, err_msg=f"observation {t}")


def test_fast_pipeline_differs_by_a_few_grey_levels_only() -> None:
    actions = random_actions(100, 6)
    exact, _ = play(make_world("ALE/Pong-v5", AtariConfig(frame_maximum="rgb")), 0, actions)
    fast, _ = play(make_world("ALE/Pong-v5", AtariConfig()), 0, actions)
    difference = np.abs(np.stack(exact).astype(int) - np.stack(fast).astype(int))
    assert difference.mean() < 1.0
    assert difference.max() <= 64


@pytest.mark.parametrize("game", ["Pong", "BeamRider", "Tennis", "Solaris", "YarsRevenge"])
def test_an_episode_is_its_seed_and_actions_whatever_came_before(game: str) -> None:
    actions = random_actions(60, 6)
    fresh = make_world(f"ALE/{game}-v5", AtariConfig())
    used = make_world(f"ALE/{game}-v5", AtariConfig())
    play(used, 99, random_actions(200, 6))
    for got, want in zip(play(used, 5, actions)[0], play(fresh, 5, actions)[0], strict=True):
        np.testing.assert_array_equal(got, want)


def test_starts_differ_by_one_to_thirty_noops() -> None:
    world = make_world("ALE/Pong-v5", AtariConfig())
    frames: list[int] = []
    observation = np.empty(world.observation_shape, np.uint8)
    world.on_frame = lambda picture: frames.append(1)
    counts = set()
    for seed in range(200):
        frames.clear()
        world.reset(seed, observation)
        counts.add(len(frames))  # every second frame is shown
    assert min(counts) == 0  # one no-op, whose frame is not shown
    assert max(counts) == 15
    assert len(counts) > 8


def test_episode_is_cut_off_and_says_so() -> None:
    world = make_world("ALE/Pong-v5", AtariConfig(max_frames=100, noop_max=0))
    observation = np.empty(world.observation_shape, np.uint8)
    world.reset(0, observation)
    steps = [world.step(0, observation) for _ in range(25)]
    assert [s.ended for s in steps] == [False] * 24 + [True]
    assert steps[-1].truncated
    assert not steps[-1].terminal


def test_life_loss_ends_the_return_but_not_the_episode_where_so_set() -> None:
    for terminal in (False, True):
        world = make_world("ALE/Breakout-v5", AtariConfig(life_loss_terminal=terminal))
        observation = np.empty(world.observation_shape, np.uint8)
        world.reset(0, observation)
        lives = world.lives()
        for t in range(400):
            step = world.step(1 if t % 8 == 0 else 0, observation)
            if world.lives() < lives:
                break
        assert world.lives() == lives - 1
        assert step.terminal is terminal
        assert not step.ended


def test_evaluation_uses_the_exact_pipeline_and_starts() -> None:
    config = evaluation_config(AtariConfig(noop_max=0, max_frames=1_000, life_loss_terminal=True))
    assert config == AtariConfig(frame_maximum="rgb", noop_max=30, max_frames=108_000)
