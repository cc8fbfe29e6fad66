"""Labyrinth: mazes, rewards, an expert, and what becomes of a killed game."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from backend.specs.environments.labyrinth import ACTIONS, SIZES, MazeSize
from backend.specs.events import AnyEvent, LogEvent, ReportEvent, StartedEvent
from backend.specs.run import parse_run_spec
from tests.support.environments import build
from tests.support.shared_names import named_memory
from tests.support.waiting import PATIENCE_S, Patience, until
from workers.engine.envs.base import EnvCrashedError
from workers.engine.envs.labyrinth import LabyrinthEnv
from workers.engine.envs.maze import distances, random_maze
from workers.engine.envs.udmf import CELL, middle
from workers.engine.envs.vector import VectorEnv
from workers.engine.training.loop import Training

pytestmark = pytest.mark.service

FORWARD, LEFT, RIGHT = (ACTIONS.index(name) for name in ("FORWARD", "LOOK_LEFT", "LOOK_RIGHT"))


def labyrinth(size: str = "Small", **settings: float) -> LabyrinthEnv:
    env = build(f"Labyrinth-{size}-v0", **settings)
    assert isinstance(env, LabyrinthEnv)
    return env


def expert(env: LabyrinthEnv) -> int:
    """Go the shortest way to the portal, cell by cell, by the map."""
    x, y, angle = env.pose
    here = (int(-y // CELL), int(x // CELL))
    way = distances(env.floor, env.portal)
    ahead = [
        (here[0] + dy, here[1] + dx)
        for dy, dx in ((-1, 0), (1, 0), (0, -1), (0, 1))
        if way[here[0] + dy, here[1] + dx] == way[here] - 1
    ]
    to = middle(ahead[0] if ahead else env.portal)
    wanted = np.degrees(np.arctan2(to[1] - y, to[0] - x))
    off = (wanted - angle + 180) % 360 - 180
    if abs(off) > 12:
        return LEFT if off > 0 else RIGHT
    return FORWARD


def play(env: LabyrinthEnv, seed: int, choose: Callable[[LabyrinthEnv], int]) -> float:
    observation = np.empty(env.observation_shape, np.uint8)
    env.reset(seed, observation)
    total, over = 0.0, False
    patience = Patience()
    while patience.lasts() and not over:
        step = env.step(choose(env), observation)
        total, over = total + step.reward, step.episode_over
    return total


def games() -> list[psutil.Process]:
    """Running games; other tests' helpers, such as a fork server, may live beside them."""
    engines = []
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):
            if child.name() == "vizdoom":
                engines.append(child)
    return engines


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_mazes_are_connected_and_differ_by_seed(size: MazeSize) -> None:
    seen = set()
    for seed in range(50):
        floor = random_maze(np.random.default_rng(seed), size.cells, size.rooms)
        assert floor.shape == (size.cells, size.cells)
        assert not np.concatenate([floor[0], floor[-1], floor[:, 0], floor[:, -1]]).any()
        y, x = np.argwhere(floor)[0]
        assert ((distances(floor, (y, x)) >= 0) == floor).all()
        rooms = np.lib.stride_tricks.sliding_window_view(floor, (3, 3)).all((2, 3))
        assert rooms.any()
        seen.add(floor.tobytes())
    assert len(seen) == 50
    same = [random_maze(np.random.default_rng(7), size.cells, size.rooms) for _ in range(2)]
    np.testing.assert_array_equal(same[0], same[1])


def test_distances_equal_the_shortest_paths() -> None:
    floor = np.zeros((5, 5), bool)
    floor[1, 1:4] = floor[1:4, 3] = floor[3, 1:4] = True
    wanted = [[-1] * 5, [-1, 0, 1, 2, -1], [-1, -1, -1, 3, -1], [-1, 6, 5, 4, -1], [-1] * 5]
    assert distances(floor, (1, 1)).tolist() == wanted


def test_policy_with_the_map_scores_far_above_random() -> None:
    env = labyrinth()
    rng = np.random.default_rng(0)
    knowing = [play(env, seed, expert) for seed in range(3)]
    wandering = [play(env, seed, lambda w: int(rng.integers(len(ACTIONS)))) for seed in range(3)]
    env.close()
    assert np.mean(knowing) > 70
    assert np.mean(wandering) < 15


def test_portal_rewards_10_and_resets_apples() -> None:
    env = labyrinth()
    observation = np.empty(env.observation_shape, np.uint8)
    env.reset(2, observation)
    maze, portal, apples = env.floor.copy(), env.portal, list(env.apples)
    starts, earned = set(), []
    for _ in range(525):
        before = len(env.apples)
        step = env.step(expert(env), observation)
        if step.reward >= 10:
            earned.append(step.reward)
            assert env.apples == apples
            assert (env.floor == maze).all()
            assert env.portal == portal
            starts.add(env.pose[:2])
        else:
            assert step.reward == before - len(env.apples)
    env.close()
    assert len(starts) > 3
    assert earned.count(10.0) > 3


def test_episode_lasts_60_game_seconds() -> None:
    env = labyrinth()
    observation = np.empty(env.observation_shape, np.uint8)
    env.reset(0, observation)
    steps = [env.step(LEFT, observation) for _ in range(525)]
    env.close()
    assert sum(step.frames for step in steps) == 60 * 35
    assert [step.episode_over for step in steps] == [False] * 524 + [True]
    assert steps[-1].terminated


def test_four_quarter_turns_return_to_the_first_view() -> None:
    env = labyrinth()
    observation = np.empty(env.observation_shape, np.uint8)
    env.reset(1, observation)
    first, angle = observation.copy(), env.pose[2]
    views = []
    for _ in range(16):
        env.step(RIGHT, observation)
        views.append(observation.copy())
    assert abs(env.pose[2] - angle) < 0.01
    env.close()
    assert np.abs(views[-1].astype(int) - first).mean() < 5
    assert np.abs(views[7].astype(int) - first).mean() > 10


def test_watching_changes_neither_game_nor_observation() -> None:
    env = labyrinth()
    observation = np.empty(env.observation_shape, np.uint8)
    actions = np.random.default_rng(0).integers(len(ACTIONS), size=80).tolist()
    seen: list[list[Any]] = []
    images: list[np.ndarray] = []
    for on_frame in (None, images.append):
        env.on_frame = on_frame
        env.reset(11, observation)
        seen.append([])
        for action in actions:
            seen[-1].append((env.step(action, observation), observation.tobytes(), env.pose))
    env.close()
    assert seen[0] == seen[1]
    assert len(images) == 4 * len(actions)
    assert images[0].shape == (240, 560, 3)


def test_killed_game_loses_one_episode() -> None:
    spec = parse_run_spec(
        {"algorithm": "paac", "environment": "Labyrinth-Small-v0", "stop": {"agent_steps": 1}}
    )
    env = VectorEnv(spec, environments=2, processes=0, slots=1, next_seed=lambda i: i)
    env.reset()
    assert env.step(np.array([0, 0]), 0) == []
    running = games()
    running[0].kill()
    [lost] = env.step(np.array([0, 0]), 0)
    assert lost.crashed
    assert env.shared.terminated_B.tolist().count(True) == 1
    assert env.step(np.array([LEFT, LEFT]), 0) == []
    assert env.shared.observation_SB[0, lost.environment].std() > 5
    env.close()
    until(lambda: not games())


def test_repeatedly_killed_game_raises() -> None:
    env = labyrinth()
    observation = np.empty(env.observation_shape, np.uint8)
    for _ in range(2):
        env.reset(0, observation)
        env.game.process.kill()
        assert env.step(0, observation).crashed
    env.reset(0, observation)
    env.game.process.kill()
    with pytest.raises(EnvCrashedError):
        env.step(0, observation)
    env.close()


@pytest.mark.long
def test_run_continues_with_a_warning_after_its_game_is_killed(tmp_path: Path) -> None:
    request = {
        "algorithm": "paac",
        "environment": "Labyrinth-Small-v0",
        "config": {"n_e": 2, "n_w": 1, "evaluation_episodes": 0},
        "environment_config": {"episode_s": 2},
        "stop": {"agent_steps": 600},
    }
    said: list[AnyEvent] = []

    def listen(event: AnyEvent) -> None:
        said.append(event)
        if isinstance(event, StartedEvent):
            games()[0].kill()

    assert Training(parse_run_spec(request), tmp_path, on_event=listen).run().state == "finished"
    warnings = [event.message for event in said if isinstance(event, LogEvent) and event.level == "warning"]
    assert len(warnings) == 1
    assert "crashed" in warnings[0]
    [last] = [event for event in said if isinstance(event, ReportEvent)][-1:]
    assert last.agent_steps >= 600
    assert 10 < last.episodes < 36  # 17 decisions an episode; the broken one is not counted
    until(lambda: not games())


_PLAYER = """
import sys
import numpy as np
from tests.support.environments import build
env = build("Labyrinth-Small-v0")
observation = np.empty(env.observation_shape, np.uint8)
env.reset(0, observation)
print(env.game.process.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.long
def test_killed_engine_leaves_no_game_and_no_shared_memory(tmp_path: Path) -> None:
    player = subprocess.Popen(
        [sys.executable, "-c", _PLAYER],
        env=os.environ | {"PYTHONPATH": os.getcwd()},
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert player.stdout is not None
    assert player.stdin is not None
    game = psutil.Process(json.loads(player.stdout.readline()))
    assert game.name() == "vizdoom"
    assert named_memory(game.pid, player.pid) == set()
    player.send_signal(signal.SIGKILL)
    player.wait()
    _, alive = psutil.wait_procs([game], timeout=PATIENCE_S)
    player.stdin.close()
    player.stdout.close()
    assert not alive
    assert list(tmp_path.iterdir()) == []
