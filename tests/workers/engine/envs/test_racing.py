"""Racing against gymnasium's own car, and against who can drive."""

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium.envs.box2d.car_racing import CarRacing

from tests.support.environments import build
from tests.support.waiting import Patience
from workers.engine.envs.car import RaceSimulation
from workers.engine.envs.racing import RacingEnv


def racing(name: str, **settings: float) -> RacingEnv:
    env = build(name, **settings)
    assert isinstance(env, RacingEnv)
    return env


def driver(env: RacingEnv, speed: float) -> int:
    """Look ahead along the middle of the road, and keep a speed."""
    car = env.car
    x, y = car.hull.position
    v = float(np.hypot(*car.hull.linearVelocity))
    ahead = env.centre_line[(env.nearest + int(3 + v / 10)) % len(env.centre_line)]
    off = (np.arctan2(x - ahead[0], ahead[1] - y) - car.hull.angle + np.pi) % (2 * np.pi) - np.pi
    way = "LEFT" if off > 0.1 else "RIGHT" if off < -0.1 else "STRAIGHT"
    pedal = "GAS" if v < speed else "COAST" if v < speed + 10 else "BRAKE"
    return env.action_names.index(f"{way}_{pedal}")


def play(env: RacingEnv, seed: int, choose: Callable[[RacingEnv], int]) -> float:
    observation = np.empty(env.observation_shape, np.uint8)
    env.reset(seed, observation)
    total, over = 0.0, False
    patience = Patience()
    while patience.lasts() and not over:
        step = env.step(choose(env), observation)
        total, over = total + step.reward, step.episode_over
    return total


def test_car_moves_exactly_as_gymnasiums(monkeypatch: pytest.MonkeyPatch) -> None:
    race, reference = RaceSimulation(power=1.0), CarRacing()
    monkeypatch.setattr(reference, "_render", lambda mode: None)
    race.restart(7)
    reference.reset(seed=7)
    own: Any = race.car
    theirs: Any = reference.car
    assert race.track == reference.track
    rng = np.random.default_rng(0)
    for t in range(400):
        if t % 10 == 0:
            steer, pedal = rng.uniform(-1, 1), rng.uniform(-0.6, 1)
        action = np.array([-steer, max(pedal, 0), max(-pedal, 0)])
        reference.step(action)
        own.steer(steer)
        own.gas(action[1])
        own.brake(action[2])
        race.step_frame()
        assert tuple(own.hull.position) == tuple(theirs.hull.position), t
        assert own.hull.angle == theirs.hull.angle
    assert np.hypot(*own.hull.linearVelocity) > 1


@pytest.mark.parametrize(("car", "speed"), [("Slow", 100.0), ("Fast", 35.0)])
def test_scripted_driver_scores_far_above_random(car: str, speed: float) -> None:
    env = racing(f"Racing-{car}-v0")
    rng = np.random.default_rng(0)
    driven = play(env, 1, lambda w: driver(w, speed))
    wandered = play(env, 1, lambda w: int(rng.integers(len(w.action_names))))
    env.close()
    assert driven > 100
    assert wandered < 20


def test_fast_car_is_faster_and_full_gas_leaves_the_track() -> None:
    speeds = []
    for car in ("Slow", "Fast"):
        env = racing(f"Racing-{car}-v0")
        observation = np.empty(env.observation_shape, np.uint8)
        env.reset(0, observation)
        gas = env.action_names.index("STRAIGHT_GAS")
        for _ in range(25):
            env.step(gas, observation)
        speeds.append(float(np.hypot(*env.car.hull.linearVelocity)))
        patience = Patience()
        while patience.lasts() and not (step := env.step(gas, observation)).episode_over:
            pass
        assert step.terminated
        assert not step.truncated
        env.close()
    assert speeds[1] > 1.5 * speeds[0]


def test_reward_is_progress_along_the_road_and_0_off_it() -> None:
    env = racing("Racing-Slow-v0", frame_skip=1)
    observation = np.empty(env.observation_shape, np.uint8)
    env.reset(1, observation)
    for _ in range(200):
        step = env.step(driver(env, 30.0), observation)
    hull = env.car.hull
    direction = env.direction[env.nearest]
    assert step.reward == pytest.approx(np.dot(hull.linearVelocity, direction) / 50 / 10)
    assert step.reward > 0.01
    # Backwards along the road, then as fast beside it.
    for wheel in (hull, *env.car.wheels):
        wheel.linearVelocity = tuple(-20.0 * direction)
    assert env.step(env.action_names.index("STRAIGHT_COAST"), observation).reward < -0.01
    for body in (hull, *env.car.wheels):
        body.position = tuple(np.array(body.position) + 15 * np.array([-direction[1], direction[0]]))
        body.linearVelocity = tuple(20.0 * direction)
    assert env.step(env.action_names.index("STRAIGHT_COAST"), observation).reward == 0.0
    env.close()


def test_race_is_truncated_after_its_time() -> None:
    env = racing("Racing-Slow-v0", episode_s=2)
    observation = np.empty(env.observation_shape, np.uint8)
    env.reset(0, observation)
    steps = [env.step(4, observation) for _ in range(25)]
    env.close()
    assert [step.episode_over for step in steps] == [False] * 24 + [True]
    assert steps[-1].truncated
    assert not steps[-1].terminated


def test_view_turns_with_the_car_and_shows_road_grass_and_gauges() -> None:
    env = racing("Racing-Slow-v0")
    observation = np.empty(env.observation_shape, np.uint8)
    env.reset(0, observation)
    assert not observation[74:].any()  # standing: no instrument shows anything
    grey = np.ptp(observation[:74].astype(int), axis=-1) < 10
    assert grey[40:55, 38:46].all()  # road ahead of the car
    green = observation[:74, :, 1] > 190
    assert green[40:55, :20].any()
    car = (observation[..., 0] > 150) & (observation[..., 1] < 60)
    assert 55 < np.argwhere(car)[:, 0].mean() < 70
    for _ in range(40):
        env.step(driver(env, 30.0), observation)
    assert (observation[74:77, :20] == 255).all()  # speed
    env.close()


def test_opponents_follow_their_lanes_at_their_speeds() -> None:
    env = racing("Racing-Slow-Opponents-v0", frame_skip=1)
    observation = np.empty(env.observation_shape, np.uint8)
    env.reset(3, observation)
    assert env.opponents is not None
    assert len(env.opponents.bodies) == 5
    starts = env.opponents.nearest.copy()
    for _ in range(250):
        env.step(env.action_names.index("STRAIGHT_COAST"), observation)  # behind all of them
    for i, body in enumerate(env.opponents.bodies):
        lane = env.opponents.lanes[i]
        assert np.linalg.norm(lane - np.array(body.position), axis=1).min() < 1.5
        moved_units = 3.5 * ((env.opponents.nearest[i] - starts[i]) % len(lane))
        assert 0.5 * 5 * 12 < moved_units < 1.1 * 5 * env.opponents.speed[i]
    env.close()


def test_opponents_come_from_the_seed_and_leave_the_track_as_it_is() -> None:
    with_them, without = racing("Racing-Fast-Opponents-v0"), racing("Racing-Fast-v0")
    observation = np.empty(with_them.observation_shape, np.uint8)
    drawn = []
    for seed in (4, 5, 4):
        with_them.reset(seed, observation)
        without.reset(seed, np.empty_like(observation))
        assert (with_them.centre_line == without.centre_line).all()
        assert with_them.opponents is not None
        positions = [tuple(body.position) for body in with_them.opponents.bodies]
        drawn.append((with_them.opponents.speed.tolist(), positions))
    assert drawn[0] == drawn[2]
    assert drawn[0][0] != drawn[1][0]
    assert len(with_them.car.world.bodies) - len(without.car.world.bodies) == 5
    with_them.close()
    without.close()


def ram(env: RacingEnv, opponent: int, speed: float) -> None:
    """Put the car right behind an opponent, at this speed along its lane."""
    assert env.opponents is not None
    body = env.opponents.bodies[opponent]
    direction = env.direction[env.opponents.nearest[opponent]]
    shift = np.array(body.position) - 5.2 * direction - np.array(env.car.hull.position)
    turn = body.angle - env.car.hull.angle
    cos, sin = np.cos(turn), np.sin(turn)
    pivot = np.array(env.car.hull.position)
    for part in (env.car.hull, *env.car.wheels):
        x, y = np.array(part.position) - pivot
        part.position = tuple(pivot + shift + (cos * x - sin * y, sin * x + cos * y))
        part.angle += turn
        part.linearVelocity = tuple(speed * direction)
    env.nearest = int(env.opponents.nearest[opponent])


def test_collision_slows_the_car_and_pushes_the_opponent() -> None:
    env = racing("Racing-Slow-Opponents-v0", frame_skip=1)
    observation = np.empty(env.observation_shape, np.uint8)
    env.reset(3, observation)
    assert env.opponents is not None
    coast = env.action_names.index("STRAIGHT_COAST")
    ram(env, 2, 60.0)
    hit = env.opponents.bodies[2]
    before = hit.linearVelocity.length
    patience, fastest = Patience(), 0.0
    for _ in range(15):
        assert patience.lasts()
        env.step(coast, observation)
        fastest = max(fastest, hit.linearVelocity.length)
    assert fastest > before + 5
    assert env.car.hull.linearVelocity.length < 55
    blue = (observation[:74, :, 2] > 200) & (observation[:74, :, 0] < 60)
    assert blue.sum() > 10, "the opponent is in view"
    env.close()


def test_collision_is_the_same_after_episodes_with_other_seeds() -> None:
    env = racing("Racing-Slow-Opponents-v0", frame_skip=1)
    observation = np.empty(env.observation_shape, np.uint8)
    coast = env.action_names.index("STRAIGHT_COAST")
    collisions = []
    for seed in (5, 8, 5):
        env.reset(seed, observation)
        assert env.opponents is not None
        ram(env, 0, 60.0)
        moves = []
        for _ in range(5):
            env.step(coast, observation)
            moves.append([(*body.position, body.angle) for body in (env.car.hull, *env.opponents.bodies)])
        collisions.append(moves)
    env.close()
    assert collisions[0] == collisions[2]


def test_tiles_and_wheels_of_earlier_episodes_are_freed() -> None:
    simulation = RaceSimulation(1.0)
    simulation.restart(0)
    assert simulation.road is not None
    assert simulation.car is not None
    earlier = [weakref.ref(part) for part in (*simulation.road, *simulation.car.wheels)]
    simulation.restart(1)
    gc.collect()
    assert [part for part in earlier if part() is not None] == []
    simulation.close()


def test_opponent_brakes_for_the_car_ahead_of_it() -> None:
    env = racing("Racing-Slow-Opponents-v0", frame_skip=1)
    observation = np.empty(env.observation_shape, np.uint8)
    env.reset(3, observation)
    assert env.opponents is not None
    ram(env, 0, 0.0)  # in its lane
    shift = np.array(env.opponents.bodies[0].position) - np.array(env.car.hull.position)
    for part in (env.car.hull, *env.car.wheels):  # ahead of it by 7.2 units
        part.position = tuple(np.array(part.position) + shift * 12.4 / 5.2)
    brake = env.action_names.index("STRAIGHT_BRAKE")
    for _ in range(50):
        env.step(brake, observation)
    assert env.opponents.bodies[0].linearVelocity.length < 0.5 * env.opponents.speed[0]
    assert env.car.hull.linearVelocity.length < 5
    env.close()


def test_driver_who_follows_the_middle_of_the_road_overtakes_opponents() -> None:
    env = racing("Racing-Fast-Opponents-v0")
    driven = play(env, 1, lambda w: driver(w, 35.0))
    env.close()
    assert driven > 60


def test_discrete_and_continuous_actions_drive_the_same_car() -> None:
    discrete, continuous = racing("Racing-Fast-v0"), racing("Racing-Fast-Continuous-v0")
    image = np.empty(discrete.observation_shape, np.uint8)
    two = np.empty_like(image)
    discrete.reset(5, image)
    continuous.reset(5, two)
    actions = {
        "LEFT_GAS": (0.6, 1.0),
        "STRAIGHT_BRAKE": (0.0, -0.8),
        "RIGHT_COAST": (-0.6, 0.0),
    }
    for name, numbers in list(actions.items()) * 10:
        a = discrete.step(discrete.action_names.index(name), image)
        b = continuous.step(np.array(numbers, np.float32), two)
        assert a.reward == pytest.approx(b.reward, abs=1e-4)
    assert np.abs(image.astype(int) - two).mean() < 2
    discrete.close()
    continuous.close()
