"""Labyrinth: mazes, rewards, an expert, and what becomes of a killed game."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest

from backend.specs.environments.labyrinth import ACTIONS, SIZES
from backend.specs.events import AnyEvent, Log, Report, Started
from backend.specs.run import parse_run_spec
from tests.support.worlds import build
from workers.engine.envs.base import WorldCrashedError
from workers.engine.envs.labyrinth import LabyrinthWorld
from workers.engine.envs.maze import distances, random_maze
from workers.engine.envs.udmf import CELL, middle
from workers.engine.envs.vector import VectorWorld
from workers.engine.training import Training

FORWARD, LEFT, RIGHT = (ACTIONS.index(name) for name in ("FORWARD", "LOOK_LEFT", "LOOK_RIGHT"))


def labyrinth(size: str = "Small", **settings: float) -> LabyrinthWorld:
    world = build(f"Labyrinth-{size}-v0", **settings)
    assert isinstance(world, LabyrinthWorld)
    return world


def expert(world: LabyrinthWorld) -> int:
    """Go the shortest way to the portal, cell by cell, by the map."""
    x, y, angle = world.place
    here = (int(-y // CELL), int(x // CELL))
    way = distances(world.floor, world.portal)
    ahead = [
        (here[0] + dy, here[1] + dx)
        for dy, dx in ((-1, 0), (1, 0), (0, -1), (0, 1))
        if way[here[0] + dy, here[1] + dx] == way[here] - 1
    ]
    to = middle(ahead[0] if ahead else world.portal)
    wanted = np.degrees(np.arctan2(to[1] - y, to[0] - x))
    off = (wanted - angle + 180) % 360 - 180
    if abs(off) > 12:
        return LEFT if off > 0 else RIGHT
    return FORWARD


def play(world: LabyrinthWorld, seed: int, choose) -> float:
    observation = np.empty(world.observation_shape, np.uint8)
    world.reset(seed, observation)
    total, over = 0.0, False
    while not over:
        step = world.step(choose(world), observation)
        total, over = total + step.reward, step.ended
    return total


def games() -> list[psutil.Process]:
    """Running games; other tests' helpers, such as a fork server, may live beside them."""
    return [child for child in psutil.Process().children() if child.name() == "vizdoom"]


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_every_place_of_a_maze_can_be_reached_and_every_maze_is_another(size) -> None:
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
    np.testing.assert_array_equal(*same)


def test_distances_are_those_of_the_shortest_way() -> None:
    floor = np.zeros((5, 5), bool)
    floor[1, 1:4] = floor[1:4, 3] = floor[3, 1:4] = True
    wanted = [[-1] * 5, [-1, 0, 1, 2, -1], [-1, -1, -1, 3, -1], [-1, 6, 5, 4, -1], [-1] * 5]
    assert distances(floor, (1, 1)).tolist() == wanted


def test_who_knows_the_map_earns_far_more_than_who_wanders() -> None:
    world = labyrinth()
    rng = np.random.default_rng(0)
    knowing = [play(world, seed, expert) for seed in range(3)]
    wandering = [play(world, seed, lambda w: int(rng.integers(len(ACTIONS)))) for seed in range(3)]
    world.close()
    assert np.mean(knowing) > 70
    assert np.mean(wandering) < 15


def test_the_portal_earns_ten_and_leads_elsewhere_with_all_apples_back() -> None:
    world = labyrinth()
    observation = np.empty(world.observation_shape, np.uint8)
    world.reset(2, observation)
    maze, portal, apples = world.floor.copy(), world.portal, list(world.apples)
    starts, earned = set(), []
    for _ in range(525):
        before = len(world.apples)
        step = world.step(expert(world), observation)
        if step.reward >= 10:
            earned.append(step.reward)
            assert world.apples == apples
            assert (world.floor == maze).all()
            assert world.portal == portal
            starts.add(world.place[:2])
        else:
            assert step.reward == before - len(world.apples)
    world.close()
    assert len(starts) > 3
    assert earned.count(10.0) > 3


def test_an_episode_lasts_sixty_seconds_of_the_game() -> None:
    world = labyrinth()
    observation = np.empty(world.observation_shape, np.uint8)
    world.reset(0, observation)
    steps = [world.step(LEFT, observation) for _ in range(525)]
    world.close()
    assert sum(step.frames for step in steps) == 60 * 35
    assert [step.ended for step in steps] == [False] * 524 + [True]
    assert steps[-1].terminal


def test_four_quarter_turns_show_the_first_view_again() -> None:
    world = labyrinth()
    observation = np.empty(world.observation_shape, np.uint8)
    world.reset(1, observation)
    first, angle = observation.copy(), world.place[2]
    views = []
    for _ in range(16):
        world.step(RIGHT, observation)
        views.append(observation.copy())
    assert abs(world.place[2] - angle) < 0.01
    world.close()
    assert np.abs(views[-1].astype(int) - first).mean() < 5
    assert np.abs(views[7].astype(int) - first).mean() > 10


def test_who_is_watched_plays_the_same_game_and_the_agent_never_sees_the_map() -> None:
    world = labyrinth()
    observation = np.empty(world.observation_shape, np.uint8)
    actions = np.random.default_rng(0).integers(len(ACTIONS), size=80).tolist()
    seen = []
    pictures: list[np.ndarray] = []
    for on_frame in (None, pictures.append):
        world.on_frame = on_frame
        world.reset(11, observation)
        seen.append([])
        for action in actions:
            seen[-1].append((world.step(action, observation), observation.tobytes(), world.place))
    world.close()
    assert seen[0] == seen[1]
    assert len(pictures) == 4 * len(actions)
    assert pictures[0].shape == (240, 560, 3)


def test_a_killed_game_is_a_lost_episode_and_the_next_begins() -> None:
    spec = parse_run_spec(
        {"algorithm": "paac", "environment": "Labyrinth-Small-v0", "stop": {"agent_steps": 1}}
    )
    world = VectorWorld(spec, environments=2, processes=0, slots=1, next_seed=lambda i: i)
    world.reset()
    assert world.step(np.array([0, 0]), 0) == []
    running = games()
    running[0].kill()
    [lost] = world.step(np.array([0, 0]), 0)
    assert lost.crashed
    assert world.shared.terminal_B.tolist().count(True) == 1
    assert world.step(np.array([LEFT, LEFT]), 0) == []
    assert world.shared.observation_SB[0, lost.environment].std() > 5
    world.close()
    assert games() == []


def test_a_game_that_is_killed_again_and_again_ends_in_an_error() -> None:
    world = labyrinth()
    observation = np.empty(world.observation_shape, np.uint8)
    for _ in range(2):
        world.reset(0, observation)
        world._game.process.kill()
        assert world.step(0, observation).crashed
    world.reset(0, observation)
    world._game.process.kill()
    with pytest.raises(WorldCrashedError):
        world.step(0, observation)
    world.close()


def test_a_run_goes_on_with_a_warning_when_its_game_is_killed(tmp_path: Path) -> None:
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
        if isinstance(event, Started):
            games()[0].kill()

    assert Training(parse_run_spec(request), tmp_path, on_event=listen).run().state == "finished"
    warnings = [event.message for event in said if isinstance(event, Log) and event.level == "warning"]
    assert len(warnings) == 1
    assert "broke" in warnings[0]
    [last] = [event for event in said if isinstance(event, Report)][-1:]
    assert last.agent_steps >= 600
    assert 10 < last.episodes < 36  # 17 decisions an episode; the broken one is not counted
    assert games() == []


_PLAYER = """
import sys
import numpy as np
from tests.support.worlds import build
world = build("Labyrinth-Small-v0")
observation = np.empty(world.observation_shape, np.uint8)
world.reset(0, observation)
print(world._game.process.pid, flush=True)
sys.stdin.read()
"""


def test_a_killed_engine_leaves_no_game_and_no_shared_memory_behind(tmp_path: Path) -> None:
    before = set(os.listdir("/dev/shm"))
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
    player.send_signal(signal.SIGKILL)
    player.wait()
    _, alive = psutil.wait_procs([game], timeout=30)
    player.stdin.close()
    player.stdout.close()
    assert not alive
    assert [name for name in set(os.listdir("/dev/shm")) - before if name.startswith("ViZDoom")] == []
    assert list(tmp_path.iterdir()) == []
