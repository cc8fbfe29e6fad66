"""Racing against gymnasium's own car, and against who can drive."""

import numpy as np
import pytest
from gymnasium.envs.box2d.car_racing import CarRacing

from tests.support.worlds import build
from workers.engine.envs.car import Course
from workers.engine.envs.racing import RacingWorld


def racing(name: str, **settings: float) -> RacingWorld:
    world = build(name, **settings)
    assert isinstance(world, RacingWorld)
    return world


def driver(world: RacingWorld, speed: float) -> int:
    """Look ahead along the middle of the road, and keep a speed."""
    car = world.car
    x, y = car.hull.position
    v = float(np.hypot(*car.hull.linearVelocity))
    ahead = world.middle[(world.nearest + int(3 + v / 10)) % len(world.middle)]
    off = (np.arctan2(x - ahead[0], ahead[1] - y) - car.hull.angle + np.pi) % (2 * np.pi) - np.pi
    way = "LEFT" if off > 0.1 else "RIGHT" if off < -0.1 else "STRAIGHT"
    pedal = "GAS" if v < speed else "COAST" if v < speed + 10 else "BRAKE"
    return world.action_names.index(f"{way}_{pedal}")


def play(world: RacingWorld, seed: int, choose) -> float:
    observation = np.empty(world.observation_shape, np.uint8)
    world.reset(seed, observation)
    total, over = 0.0, False
    while not over:
        step = world.step(choose(world), observation)
        total, over = total + step.reward, step.ended
    return total


def test_the_car_moves_exactly_as_gymnasiums() -> None:
    course, reference = Course(power=1.0), CarRacing()
    reference._render = lambda mode: None
    course.begin(7)
    reference.reset(seed=7)
    assert course.track == reference.track
    rng = np.random.default_rng(0)
    for t in range(400):
        if t % 10 == 0:
            steer, pedal = rng.uniform(-1, 1), rng.uniform(-0.6, 1)
        action = np.array([-steer, max(pedal, 0), max(-pedal, 0)])
        reference.step(action)
        course.car.steer(steer)
        course.car.gas(action[1])
        course.car.brake(action[2])
        course.frame()
        assert tuple(course.car.hull.position) == tuple(reference.car.hull.position), t
        assert course.car.hull.angle == reference.car.hull.angle
    assert np.hypot(*course.car.hull.linearVelocity) > 1


@pytest.mark.parametrize(("car", "speed"), [("Slow", 100.0), ("Fast", 35.0)])
def test_who_can_drive_earns_far_more_than_who_cannot(car: str, speed: float) -> None:
    world = racing(f"Racing-{car}-v0")
    rng = np.random.default_rng(0)
    driven = play(world, 1, lambda w: driver(w, speed))
    wandered = play(world, 1, lambda w: int(rng.integers(len(w.action_names))))
    world.close()
    assert driven > 100
    assert wandered < 20


def test_the_fast_car_is_faster_and_gas_alone_leaves_the_field() -> None:
    speeds = []
    for car in ("Slow", "Fast"):
        world = racing(f"Racing-{car}-v0")
        observation = np.empty(world.observation_shape, np.uint8)
        world.reset(0, observation)
        gas = world.action_names.index("STRAIGHT_GAS")
        for _ in range(25):
            world.step(gas, observation)
        speeds.append(float(np.hypot(*world.car.hull.linearVelocity)))
        while not (step := world.step(gas, observation)).ended:
            pass
        assert step.terminal
        assert not step.truncated
        world.close()
    assert speeds[1] > 1.5 * speeds[0]


def test_the_reward_is_the_way_along_the_middle_and_nothing_beside_the_road() -> None:
    world = racing("Racing-Slow-v0", frame_skip=1)
    observation = np.empty(world.observation_shape, np.uint8)
    world.reset(1, observation)
    for _ in range(200):
        step = world.step(driver(world, 30.0), observation)
    hull = world.car.hull
    direction = world.direction[world.nearest]
    assert step.reward == pytest.approx(np.dot(hull.linearVelocity, direction) / 50 / 10)
    assert step.reward > 0.01
    # Backwards along the road, then as fast beside it.
    for wheel in (hull, *world.car.wheels):
        wheel.linearVelocity = tuple(-20.0 * direction)
    assert world.step(world.action_names.index("STRAIGHT_COAST"), observation).reward < -0.01
    for body in (hull, *world.car.wheels):
        body.position = tuple(np.array(body.position) + 15 * np.array([-direction[1], direction[0]]))
        body.linearVelocity = tuple(20.0 * direction)
    assert world.step(world.action_names.index("STRAIGHT_COAST"), observation).reward == 0.0
    world.close()


def test_a_race_is_cut_off_after_its_time() -> None:
    world = racing("Racing-Slow-v0", episode_s=2)
    observation = np.empty(world.observation_shape, np.uint8)
    world.reset(0, observation)
    steps = [world.step(4, observation) for _ in range(25)]
    world.close()
    assert [step.ended for step in steps] == [False] * 24 + [True]
    assert steps[-1].truncated
    assert not steps[-1].terminal


def test_the_view_turns_with_the_car_and_shows_road_grass_and_instruments() -> None:
    world = racing("Racing-Slow-v0")
    observation = np.empty(world.observation_shape, np.uint8)
    world.reset(0, observation)
    assert not observation[74:].any()  # standing: no instrument shows anything
    grey = np.ptp(observation[:74].astype(int), axis=-1) < 10
    assert grey[40:55, 38:46].all()  # road ahead of the car
    green = observation[:74, :, 1] > 190
    assert green[40:55, :20].any()
    car = (observation[..., 0] > 150) & (observation[..., 1] < 60)
    assert 55 < np.argwhere(car)[:, 0].mean() < 70
    for _ in range(40):
        world.step(driver(world, 30.0), observation)
    assert (observation[74:77, :20] == 255).all()  # speed
    world.close()


def test_discrete_and_continuous_cars_are_the_same_car() -> None:
    discrete, continuous = racing("Racing-Fast-v0"), racing("Racing-Fast-Continuous-v0")
    one = np.empty(discrete.observation_shape, np.uint8)
    two = np.empty_like(one)
    discrete.reset(5, one)
    continuous.reset(5, two)
    actions = {
        "LEFT_GAS": (0.6, 1.0),
        "STRAIGHT_BRAKE": (0.0, -0.8),
        "RIGHT_COAST": (-0.6, 0.0),
    }
    for name, numbers in list(actions.items()) * 10:
        a = discrete.step(discrete.action_names.index(name), one)
        b = continuous.step(np.array(numbers, np.float32), two)
        assert a.reward == pytest.approx(b.reward, abs=1e-4)
    assert np.abs(one.astype(int) - two).mean() < 2
    discrete.close()
    continuous.close()
