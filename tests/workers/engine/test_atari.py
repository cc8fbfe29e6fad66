"""The Atari pipeline against the papers' description, on the real emulator."""

from typing import Any

import ale_py
import cv2
import gymnasium
import numpy as np
import pytest
from ale_py import Action, ALEInterface, roms
from numpy.typing import NDArray

from backend.specs.environments import ENVIRONMENTS
from backend.specs.environments.atari import AtariConfig
from backend.specs.run import InvalidSpec, parse_run_spec
from workers.engine.envs import Discrete, evaluation_config, make_world
from workers.engine.envs.atari import AtariWorld
from workers.engine.envs.base import World

FRAMES = NDArray[np.uint8]
AVERAGES = NDArray[np.float32]
"""Of greys, before they are rounded."""


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


def luminance(rgb: FRAMES) -> AVERAGES:
    """Exact area averages: every pixel of 210×160 as 2×21, of which 5×40 make a new one."""
    fine = cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY).repeat(2, 0).repeat(21, 1)
    return fine.reshape(84, 5, 84, 40).mean((1, 3)).astype(np.float32)


def reference(game: str, seed: int, actions: list[int]) -> tuple[list[AVERAGES], list[float]]:
    """Mnih et al. 2015, methods: repeat 4; maximum of the last two RGB frames; luminance; 84×84; four.

    One episode from 1 to 30 no-ops, to its end or for as many actions as there are.
    """
    ale = ALEInterface()
    ale.setFloat("repeat_action_probability", 0.0)
    rom = roms.get_rom_path(game)
    assert rom is not None
    ale.loadROM(rom)
    legal = ale.getMinimalActionSet()
    for _ in range(int(np.random.default_rng(seed).integers(1, 31))):
        ale.act(Action.NOOP)
    pictures = [np.zeros((84, 84), np.float32)] * 3 + [luminance(ale.getScreenRGB())]
    seen, rewards = [np.stack(pictures, -1)], []
    for action in actions:
        reward, screens = 0.0, [ale.getScreenRGB()]
        for _ in range(4):
            reward += ale.act(legal[action])
            screens.append(ale.getScreenRGB())
            if ale.game_over():
                break
        pictures = [*pictures[1:], luminance(np.maximum(screens[-1], screens[-2]))]
        seen.append(np.stack(pictures, -1))
        rewards.append(reward)
        if ale.game_over():
            break
    return seen, rewards


def compare(environment: str, decisions: int) -> tuple[list[FRAMES], list[FRAMES], list[AVERAGES]]:
    """The exact pipeline, the fast one and the reference over as many decisions, whole episodes long."""
    exact_world = make_world(environment, AtariConfig(frame_maximum="rgb"))
    fast_world = make_world(environment, AtariConfig())
    rom = roms_by_game()[environment]
    exact: list[FRAMES] = []
    fast: list[FRAMES] = []
    wanted: list[AVERAGES] = []
    seed = 3
    while len(wanted) < decisions:
        actions = np.random.default_rng(seed).integers(len(exact_world.action_names), size=decisions).tolist()
        seen, rewards = reference(rom, seed, actions)
        actions = actions[: len(rewards)]
        wanted += seen
        for world, pictures in ((exact_world, exact), (fast_world, fast)):
            got, got_rewards = play(world, seed, actions)
            assert got_rewards == rewards
            pictures += got
        seed += 1
    return exact, fast, wanted


def roms_by_game() -> dict[str, str]:
    known = {name.replace("_", ""): name for name in roms.get_all_rom_ids()}
    return {
        world.id: known[world.id.removeprefix("ALE/").removesuffix("-v5").lower()]
        for world in ENVIRONMENTS.values()
        if world.family == "atari"
    }


# The fast pipeline takes the maximum of two greys, where the papers take the grey of two maxima: seen where
# sprites of other colours flicker over each other, and in the last picture of a game.
@pytest.mark.parametrize(
    "environment",
    [
        "ALE/Pong-v5",
        *(
            pytest.param(game, marks=pytest.mark.long)
            for game in ("ALE/Breakout-v5", "ALE/Seaquest-v5", "ALE/MsPacman-v5")
        ),
    ],
)
def test_a_thousand_decisions_of_the_exact_and_the_fast_pipeline(environment: str) -> None:
    exact, fast, wanted = compare(environment, 1_000)
    for t, (got, want) in enumerate(zip(exact, wanted, strict=True)):
        np.testing.assert_allclose(got, want, rtol=0, atol=0.5001, err_msg=f"observation {t}")
    difference = np.abs(np.stack(fast).astype(np.int16) - np.stack(exact))
    assert (difference > 0).mean() < 0.01
    assert difference.mean() < 0.05


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


@pytest.mark.parametrize("frame_maximum", ["rgb", "luminance"])
def test_a_cropped_picture_is_of_rows_34_to_193(frame_maximum: str) -> None:
    """160×160 to 42×42: every pixel as 21×21, of which 80×80 make a new one."""
    config = AtariConfig(noop_max=0, picture_size="42x42", crop=True, frame_maximum=frame_maximum)
    world = AtariWorld("ALE/Pong-v5", config)
    observation = np.empty(world.observation_shape, np.uint8)
    world.reset(0, observation)
    for action in random_actions(100, 6):
        world.step(action, observation)
    newest = np.maximum(*world._screens)
    grey = cv2.cvtColor(newest, cv2.COLOR_RGB2GRAY) if frame_maximum == "rgb" else newest
    fine = grey[34:194].repeat(21, 0).repeat(21, 1)
    wanted = fine.reshape(42, 80, 42, 80).mean((1, 3))
    np.testing.assert_allclose(observation[..., -1], wanted, rtol=0, atol=0.5001)


def test_evaluation_uses_the_exact_pipeline_and_starts() -> None:
    config = evaluation_config(AtariConfig(noop_max=0, max_frames=1_000, life_loss_terminal=True))
    assert config == AtariConfig(frame_maximum="rgb", noop_max=30, max_frames=108_000)


def test_evaluation_shows_the_agent_pictures_of_the_same_kind() -> None:
    config = AtariConfig(picture_size="42x42", crop=True)
    assert evaluation_config(config) == config.model_copy(update={"frame_maximum": "rgb"})


@pytest.mark.long
def test_every_game_is_told_as_ale_has_it() -> None:
    gymnasium.register_envs(ale_py)
    ids = {name for name in gymnasium.registry if name.startswith("ALE/") and name.endswith("-v5")}
    games = {world.id: world for world in ENVIRONMENTS.values() if world.family == "atari"}
    assert set(games) == ids
    for environment, rom in roms_by_game().items():
        ale = ALEInterface()
        path = roms.get_rom_path(rom)
        assert path is not None
        ale.loadROM(path)
        told = games[environment]
        assert told.action_names == tuple(action.name for action in ale.getMinimalActionSet())
        assert told.allowed == {
            "mode": tuple(ale.getAvailableModes()),
            "difficulty": tuple(ale.getAvailableDifficulties()),
        }


def test_all_eighteen_actions_where_asked_for() -> None:
    world = make_world("ALE/Pong-v5", AtariConfig(full_action_set=True))
    assert len(world.action_names) == 18
    assert world.action_space == Discrete(18)
    assert evaluation_config(AtariConfig(full_action_set=True)).model_dump()["full_action_set"] is True


class Console:
    """The emulator, with a note of what was held in each frame."""

    def __init__(self, ale: ALEInterface) -> None:
        self._ale = ale
        self.held: list[Action] = []

    def act(self, action: Action) -> float:
        self.held.append(action)
        return float(self._ale.act(action))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ale, name)


def test_sticky_actions_come_as_often_as_asked_and_are_the_seeds() -> None:
    """Two actions in turn, a frame each; what sticks is then the other one.

    P(held is not the chosen one) = x = p (1 - x), so x = p / (1 + p).
    """

    def held(probability: float, seed: int) -> list[bool]:
        config = AtariConfig(frame_skip=1, noop_max=0, sticky_actions=probability)
        world = AtariWorld("ALE/Breakout-v5", config)
        console = Console(world._ale)
        world._ale = console  # type: ignore[assignment]
        observation = np.empty(world.observation_shape, np.uint8)
        world.reset(seed, observation)
        for t in range(1_500):
            world.step(2 + t % 2, observation)
        return [action != world._actions[2 + t % 2] for t, action in enumerate(console.held)]

    assert not any(held(0.0, 1))
    stuck = held(0.25, 1)
    assert abs(np.mean(stuck) - 0.2) < 0.03
    assert held(0.25, 1) == stuck
    assert held(0.25, 2) != stuck


def test_fire_at_reset_starts_a_game_that_waits_for_it() -> None:
    def ball_moves(*, fires: bool) -> bool:
        world = make_world("ALE/Breakout-v5", AtariConfig(noop_max=0, fire_at_reset=fires))
        observation = np.empty(world.observation_shape, np.uint8)
        world.reset(0, observation)
        for _ in range(400):
            world.step(0, observation)
        return world.lives() < 5

    assert ball_moves(fires=True)
    assert not ball_moves(fires=False)
    assert not evaluation_config(AtariConfig(fire_at_reset=True)).model_dump()["fire_at_reset"]


def test_mode_and_difficulty_make_another_game() -> None:
    actions = random_actions(40, 6)
    plain = play(make_world("ALE/SpaceInvaders-v5", AtariConfig()), 0, actions)[0]
    for other in (AtariConfig(mode=9), AtariConfig(difficulty=1)):
        world = make_world("ALE/SpaceInvaders-v5", other)
        seen = play(world, 0, actions)[0]
        assert (np.stack(seen) != np.stack(plain)).any()
        np.testing.assert_array_equal(seen, play(world, 0, actions)[0])
        kept = evaluation_config(other)
        assert isinstance(kept, AtariConfig)
        assert (kept.mode, kept.difficulty) == (other.mode, other.difficulty)


@pytest.mark.parametrize(
    ("settings", "field", "said"),
    [
        ({"mode": 7}, "mode", "Pong takes 0, 1, got 7"),
        ({"difficulty": 4}, "difficulty", "Pong takes 0, 1, 2, 3, got 4"),
        ({"max_frames": 150, "noop_max": 150}, "max_frames", "noop_max"),
        ({"sticky_actions": 1}, "sticky_actions", "less than 1"),
    ],
)
def test_what_cannot_be_played_is_refused_by_name(settings: dict, field: str, said: str) -> None:
    request = {"algorithm": "paac", "environment": "ALE/Pong-v5", "stop": {"agent_steps": 1}}
    with pytest.raises(InvalidSpec) as caught:
        parse_run_spec(request | {"environment_config": settings})
    [problem] = caught.value.problems
    assert problem.field == f"environment_config.{field}"
    assert said in problem.message


@pytest.mark.parametrize("game", ["Backgammon", "VideoCheckers"])
def test_games_without_a_noop_of_their_own_start_with_noops_too(game: str) -> None:
    world = make_world(f"ALE/{game}-v5", AtariConfig())
    assert "NOOP" not in world.action_names
    ale = ALEInterface()
    path = roms.get_rom_path(roms_by_game()[f"ALE/{game}-v5"])
    assert path is not None
    ale.loadROM(path)
    for _ in range(int(np.random.default_rng(5).integers(1, 31))):
        ale.act(Action.NOOP)
    observation = np.empty(world.observation_shape, np.uint8)
    pictures: list[FRAMES] = []
    world.on_frame = pictures.append
    world.reset(5, observation)
    np.testing.assert_array_equal(pictures[-1], ale.getScreenRGB())


def test_published_scores_keep_their_protocols_apart() -> None:
    def score(game: str, label: str, protocol: str) -> float:
        [found] = [
            s.score
            for s in ENVIRONMENTS[f"ALE/{game}-v5"].published
            if (s.label, s.protocol) == (label, protocol)
        ]
        return found

    assert score("MsPacman", "random", "human_starts") == 197.8
    assert score("NameThisGame", "random", "human_starts") == 1747.8
    assert score("Amidar", "human", "noop_starts") == 1675.8
    assert score("Boxing", "human", "human_starts") == 9.6
    assert score("Qbert", "PAAC nature", "noop_starts") == 17249.2
    assert score("UpNDown", "A3C FF", "human_starts") == 74705.7
    assert score("Jamesbond", "Gorila", "noop_starts") == 605.0
    assert ENVIRONMENTS["ALE/Atlantis2-v5"].published == ()
    with_references = {
        world.id
        for world in ENVIRONMENTS.values()
        if {s.label for s in world.published if s.protocol == "noop_starts"} >= {"random", "human"}
    }
    assert len(with_references) == 49
