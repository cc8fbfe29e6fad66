"""The Atari pipeline against the papers' description, on the real emulator."""

from typing import Any, Literal

import ale_py
import cv2
import gymnasium
import numpy as np
import pytest
from ale_py import Action, ALEInterface, roms

from backend.specs.environments import ENVIRONMENTS
from backend.specs.environments.atari import AtariConfig
from backend.specs.problems import InvalidSpec
from backend.specs.protocols import PROTOCOLS
from backend.specs.run import parse_run_spec
from tests.support.atari_reference import AVERAGES, FRAMES, luminance, reference
from tests.support.waiting import Patience
from workers.engine.envs import Discrete, make_env
from workers.engine.envs.atari import AtariEnv
from workers.engine.envs.base import Env


def evaluation_config(config: AtariConfig) -> AtariConfig:
    return PROTOCOLS["noop_starts"].evaluation_config(config)


def play(env: Env, seed: int, actions: list[int]) -> tuple[list[FRAMES], list[float]]:
    observation = np.empty(env.observation_shape, np.uint8)
    env.reset(seed, observation)
    seen, rewards = [observation.copy()], []
    for action in actions:
        rewards.append(env.step(action, observation).reward)
        seen.append(observation.copy())
    return seen, rewards


def random_actions(n: int, n_actions: int = 4) -> list[int]:
    return [int(action) for action in np.random.default_rng(7).integers(n_actions, size=n)]


def compare(environment: str, decisions: int) -> tuple[list[FRAMES], list[FRAMES], list[AVERAGES]]:
    """The exact pipeline, the fast one and the reference over as many decisions, whole episodes long."""
    exact_env = make_env(environment, AtariConfig(frame_maximum="rgb"))
    fast_env = make_env(environment, AtariConfig())
    rom = roms_by_game()[environment]
    exact: list[FRAMES] = []
    fast: list[FRAMES] = []
    wanted: list[AVERAGES] = []
    seed = 3
    patience = Patience()
    while patience.lasts() and len(wanted) < decisions:
        actions = np.random.default_rng(seed).integers(len(exact_env.action_names), size=decisions).tolist()
        seen, rewards = reference(rom, seed, actions)
        actions = actions[: len(rewards)]
        wanted += seen
        for env, images in ((exact_env, exact), (fast_env, fast)):
            got, got_rewards = play(env, seed, actions)
            assert got_rewards == rewards
            images += got
        seed += 1
    return exact, fast, wanted


def roms_by_game() -> dict[str, str]:
    known = {name.replace("_", ""): name for name in roms.get_all_rom_ids()}
    return {
        env.id: known[env.id.removeprefix("ALE/").removesuffix("-v5").lower()]
        for env in ENVIRONMENTS.values()
        if env.family == "atari"
    }


# The fast pipeline takes the maximum of two greys, where the papers take the grey of two maxima: seen where
# sprites of other colours flicker over each other, and in the last image of a game.
@pytest.mark.long
@pytest.mark.parametrize(
    "environment", ["ALE/Pong-v5", "ALE/Breakout-v5", "ALE/Seaquest-v5", "ALE/MsPacman-v5"]
)
def test_exact_and_fast_pipeline_agree_with_the_oracle_for_1000_steps(environment: str) -> None:
    exact, fast, wanted = compare(environment, 1_000)
    for t, (got, want) in enumerate(zip(exact, wanted, strict=True)):
        np.testing.assert_allclose(got, want, rtol=0, atol=0.5001, err_msg=f"observation {t}")
    difference = np.abs(np.stack(fast).astype(np.int16) - np.stack(exact))
    assert (difference > 0).mean() < 0.01
    assert difference.mean() < 0.05


@pytest.mark.parametrize("game", ["Pong", "BeamRider", "Tennis", "Solaris", "YarsRevenge"])
def test_episode_depends_on_its_seed_and_actions_only(game: str) -> None:
    actions = random_actions(60, 6)
    fresh = make_env(f"ALE/{game}-v5", AtariConfig())
    used = make_env(f"ALE/{game}-v5", AtariConfig())
    play(used, 99, random_actions(200, 6))
    for got, want in zip(play(used, 5, actions)[0], play(fresh, 5, actions)[0], strict=True):
        np.testing.assert_array_equal(got, want)


def test_reset_takes_1_to_30_noops() -> None:
    env = AtariEnv("ALE/Pong-v5", AtariConfig())
    observation = np.empty(env.observation_shape, np.uint8)
    counts = set()
    for seed in range(200):
        env.reset(seed, observation)
        counts.add(env.ale.getEpisodeFrameNumber())
    assert counts == set(range(1, 31))


@pytest.mark.parametrize("environment", ["ALE/Pong-v5", "ALE/Seaquest-v5"])
def test_rewards_are_those_of_the_emulator(environment: str) -> None:
    env = make_env(environment, AtariConfig())
    actions = random_actions(150, len(env.action_names))
    _, rewards = reference(roms_by_game()[environment], 3, actions)
    assert any(rewards)
    assert play(env, 3, actions)[1] == rewards


def test_episode_is_truncated_at_max_frames() -> None:
    env = make_env("ALE/Pong-v5", AtariConfig(max_frames=100, noop_max=0))
    observation = np.empty(env.observation_shape, np.uint8)
    env.reset(0, observation)
    steps = [env.step(0, observation) for _ in range(25)]
    assert [s.episode_over for s in steps] == [False] * 24 + [True]
    assert steps[-1].truncated
    assert not steps[-1].terminated


def test_life_loss_terminates_without_ending_the_episode() -> None:
    for terminal in (False, True):
        env = make_env("ALE/Breakout-v5", AtariConfig(life_loss_terminal=terminal))
        observation = np.empty(env.observation_shape, np.uint8)
        env.reset(0, observation)
        lives = env.lives()
        for t in range(400):
            step = env.step(1 if t % 8 == 0 else 0, observation)
            if env.lives() < lives:
                break
        assert env.lives() == lives - 1
        assert step.terminated is terminal
        assert not step.episode_over


@pytest.mark.parametrize("frame_maximum", ["rgb", "luminance"])
def test_cropped_observation_shows_rows_34_to_193(frame_maximum: Literal["rgb", "luminance"]) -> None:
    """160×160 to 42×42: every pixel as 21×21, of which 80×80 make a new one."""
    config = AtariConfig(noop_max=0, observation_size="42x42", crop=True, frame_maximum=frame_maximum)
    env = AtariEnv("ALE/Pong-v5", config)
    observation = np.empty(env.observation_shape, np.uint8)
    env.reset(0, observation)
    for action in random_actions(100, 6):
        env.step(action, observation)
    newest = np.maximum(*env.screens)
    grey = cv2.cvtColor(newest, cv2.COLOR_RGB2GRAY) if frame_maximum == "rgb" else newest
    fine = grey[34:194].repeat(21, 0).repeat(21, 1)
    wanted = fine.reshape(42, 80, 42, 80).mean((1, 3))
    np.testing.assert_allclose(observation[..., -1], wanted, rtol=0, atol=0.5001)


def test_evaluation_config_uses_the_exact_pipeline_and_noop_starts() -> None:
    config = evaluation_config(AtariConfig(noop_max=0, max_frames=1_000, life_loss_terminal=True))
    assert config == AtariConfig(frame_maximum="rgb", noop_max=30, max_frames=108_000)


def test_evaluation_config_keeps_observation_size_and_crop() -> None:
    config = AtariConfig(observation_size="42x42", crop=True)
    assert evaluation_config(config) == config.model_copy(update={"frame_maximum": "rgb"})


@pytest.mark.long
def test_catalogue_matches_ale_for_every_game() -> None:
    gymnasium.register_envs(ale_py)
    ids = {name for name in gymnasium.registry if name.startswith("ALE/") and name.endswith("-v5")}
    games = {env.id: env for env in ENVIRONMENTS.values() if env.family == "atari"}
    assert set(games) == ids
    for environment, rom in roms_by_game().items():
        ale = ALEInterface()
        path = roms.get_rom_path(rom)
        assert path is not None
        ale.loadROM(path)
        entry = games[environment]
        assert entry.action_names == tuple(action.name for action in ale.getMinimalActionSet())
        assert entry.allowed == {
            "mode": tuple(ale.getAvailableModes()),
            "difficulty": tuple(ale.getAvailableDifficulties()),
        }


def test_full_action_set_offers_18_actions() -> None:
    env = make_env("ALE/Pong-v5", AtariConfig(full_action_set=True))
    assert len(env.action_names) == 18
    assert env.action_space == Discrete(18)
    assert evaluation_config(AtariConfig(full_action_set=True)).model_dump()["full_action_set"] is True


class Console:
    """The emulator, with a note of what was held in each frame."""

    def __init__(self, ale: ALEInterface) -> None:
        self.ale = ale
        self.held: list[Action] = []

    def act(self, action: Action) -> float:
        self.held.append(action)
        return float(self.ale.act(action))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ale, name)


def test_sticky_actions_repeat_with_their_probability_by_seed() -> None:
    """Two actions in turn, a frame each; what sticks is then the other one.

    P(held is not the chosen one) = x = p (1 - x), so x = p / (1 + p).
    """

    def held(probability: float, seed: int) -> list[bool]:
        config = AtariConfig(frame_skip=1, noop_max=0, sticky_actions=probability)
        env = AtariEnv("ALE/Breakout-v5", config)
        console = Console(env.ale)
        env.ale = console  # type: ignore[assignment]
        observation = np.empty(env.observation_shape, np.uint8)
        env.reset(seed, observation)
        for t in range(1_500):
            env.step(2 + t % 2, observation)
        return [action != env.actions[2 + t % 2] for t, action in enumerate(console.held)]

    assert not any(held(0.0, 1))
    stuck = held(0.25, 1)
    assert abs(np.mean(stuck) - 0.2) < 0.03
    assert held(0.25, 1) == stuck
    assert held(0.25, 2) != stuck


def test_fire_at_reset_starts_the_game() -> None:
    def ball_moves(*, fires: bool) -> bool:
        env = make_env("ALE/Breakout-v5", AtariConfig(noop_max=0, fire_at_reset=fires))
        observation = np.empty(env.observation_shape, np.uint8)
        env.reset(0, observation)
        for _ in range(400):
            env.step(0, observation)
        return env.lives() < 5

    assert ball_moves(fires=True)
    assert not ball_moves(fires=False)
    assert not evaluation_config(AtariConfig(fire_at_reset=True)).model_dump()["fire_at_reset"]


def test_mode_and_difficulty_change_the_game() -> None:
    actions = random_actions(40, 6)
    plain = play(make_env("ALE/SpaceInvaders-v5", AtariConfig()), 0, actions)[0]
    for other in (AtariConfig(mode=9), AtariConfig(difficulty=1)):
        env = make_env("ALE/SpaceInvaders-v5", other)
        seen = play(env, 0, actions)[0]
        assert (np.stack(seen) != np.stack(plain)).any()
        np.testing.assert_array_equal(seen, play(env, 0, actions)[0])
        kept = evaluation_config(other)
        assert (kept.mode, kept.difficulty) == (other.mode, other.difficulty)


@pytest.mark.parametrize(
    ("settings", "field", "said"),
    [
        ({"mode": 7}, "mode", "Pong allows 0, 1, got 7"),
        ({"difficulty": 4}, "difficulty", "Pong allows 0, 1, 2, 3, got 4"),
        ({"max_frames": 150, "noop_max": 150}, "max_frames", "noop_max"),
        ({"sticky_actions": 1}, "sticky_actions", "less than 1"),
    ],
)
def test_unavailable_mode_or_difficulty_is_refused_by_name(
    settings: dict[str, Any], field: str, said: str
) -> None:
    request = {"algorithm": "paac", "environment": "ALE/Pong-v5", "stop": {"agent_steps": 1}}
    with pytest.raises(InvalidSpec) as caught:
        parse_run_spec(request | {"environment_config": settings})
    [problem] = caught.value.problems
    assert problem.field == f"environment_config.{field}"
    assert said in problem.message


@pytest.mark.parametrize("game", ["Backgammon", "VideoCheckers"])
def test_noop_starts_work_without_noop_in_the_action_set(game: str) -> None:
    env = make_env(f"ALE/{game}-v5", AtariConfig())
    assert "NOOP" not in env.action_names
    ale = ALEInterface()
    path = roms.get_rom_path(roms_by_game()[f"ALE/{game}-v5"])
    assert path is not None
    ale.loadROM(path)
    for _ in range(int(np.random.default_rng(5).integers(1, 31))):
        ale.act(Action.NOOP)
    observation = np.empty(env.observation_shape, np.uint8)
    images: list[FRAMES] = []
    env.on_frame = images.append
    env.reset(5, observation)
    np.testing.assert_array_equal(images[-1], ale.getScreenRGB())


def test_published_scores_name_their_protocol() -> None:
    def score(game: str, label: str, protocol: str) -> float:
        [matching] = [
            s.score
            for s in ENVIRONMENTS[f"ALE/{game}-v5"].published
            if (s.label, s.protocol) == (label, protocol)
        ]
        return matching

    assert score("MsPacman", "random", "human_starts") == 197.8
    assert score("NameThisGame", "random", "human_starts") == 1747.8
    assert score("Amidar", "human", "noop_starts_5min") == 1675.8
    assert score("Boxing", "human", "human_starts") == 9.6
    assert score("Qbert", "PAAC nature", "noop_starts") == 17249.2
    assert score("UpNDown", "A3C FF", "human_starts") == 74705.7
    assert score("Jamesbond", "Gorila", "noop_starts_5min") == 605.0
    assert ENVIRONMENTS["ALE/Atlantis2-v5"].published == ()
    with_references = {
        env.id
        for env in ENVIRONMENTS.values()
        if {s.label for s in env.published if s.protocol == "noop_starts_5min"} >= {"random", "human"}
    }
    assert len(with_references) == 49


def test_frame_skip_of_one_shows_each_frame_alone() -> None:
    env = make_env("ALE/Seaquest-v5", AtariConfig(frame_skip=1, frame_maximum="rgb"))
    assert isinstance(env, AtariEnv)
    observation = np.empty(env.observation_shape, np.uint8)
    env.reset(3, observation)
    moved = 0
    for action in random_actions(100, 18):
        before = env.ale.getScreenRGB()
        assert env.step(action, observation).frames == 1
        frame = env.ale.getScreenRGB()
        np.testing.assert_allclose(observation[..., -1], luminance(frame), rtol=0, atol=0.5001)
        moved += not np.array_equal(np.maximum(before, frame), frame)
    assert moved > 10


@pytest.mark.parametrize(
    ("game", "title"),
    [
        ("Qbert", "Q*bert"),
        ("Et", "E.T."),
        ("Hero", "H.E.R.O."),
        ("Jamesbond", "James Bond"),
        ("Riverraid", "River Raid"),
        ("MsPacman", "Ms. Pac-Man"),
        ("BeamRider", "Beam Rider"),
    ],
)
def test_title_of_a_game_is_written_as_on_its_cartridge(game: str, title: str) -> None:
    assert ENVIRONMENTS[f"ALE/{game}-v5"].title == title
