"""gymnasium's car and track, stepped without its rendering."""

import math
from typing import Any

from gymnasium.envs.box2d import car_dynamics as dynamics
from gymnasium.envs.box2d import car_racing
from gymnasium.envs.box2d.car_racing import FPS, CarRacing

_FRICTION = dynamics.FRICTION_LIMIT
_GRASS_FRICTION = 0.6 * _FRICTION
_STIFFNESS = 205000 * dynamics.SIZE * dynamics.SIZE
_BRAKE_FORCE = 15.0


class FastCar(dynamics.Car):
    """The same car by the same equations, in plain floats and without skid marks.

    `power` is a fraction of the original engine power.
    """

    power = 1.0

    def step(self, dt: float) -> None:
        """Steer, turn and push each wheel for `dt` seconds, as `gymnasium`'s `Car.step` does."""
        power = dynamics.ENGINE_POWER * self.power
        inertia = dynamics.WHEEL_MOMENT_OF_INERTIA
        for w in self.wheels:
            turn = w.steer - w.joint.angle
            w.joint.motorSpeed = math.copysign(min(50.0 * abs(turn), 3.0), turn)
            friction_limit = _FRICTION if w.tiles else _GRASS_FRICTION
            forward = w.GetWorldVector((0, 1))
            side = w.GetWorldVector((1, 0))
            v = w.linearVelocity
            v_forward = forward[0] * v[0] + forward[1] * v[1]
            v_side = side[0] * v[0] + side[1] * v[1]
            omega = w.omega + dt * power * w.gas / inertia / (abs(w.omega) + 5.0)
            if w.brake >= 0.9:
                omega = 0.0
            elif w.brake > 0:
                omega -= math.copysign(min(_BRAKE_FORCE * w.brake, abs(omega)), omega)
            f_force = (-v_forward + omega * w.wheel_rad) * _STIFFNESS
            p_force = -v_side * _STIFFNESS
            force = math.sqrt(f_force * f_force + p_force * p_force)
            if force > friction_limit:
                f_force = f_force / force * friction_limit
                p_force = p_force / force * friction_limit
            w.omega = omega - dt * f_force * w.wheel_rad / inertia
            w.ApplyForceToCenter(
                (
                    p_force * side[0] + f_force * forward[0],
                    p_force * side[1] + f_force * forward[1],
                ),
                True,
            )


class _TileContacts(car_racing.FrictionDetector):
    """Tracks which tiles each wheel is on; keeps no score."""

    def _contact(self, contact: Any, begin: bool) -> None:
        first, other = contact.fixtureA.body.userData, contact.fixtureB.body.userData
        tile, wheel = (other, first) if hasattr(first, "tiles") else (first, other)
        if tile is None or not hasattr(tile, "road_friction") or not hasattr(wheel, "tiles"):
            return
        if begin:
            wheel.tiles.add(tile)
        else:
            wheel.tiles.discard(tile)


class RaceSimulation(CarRacing):
    """gymnasium's CarRacing with a `FastCar`, stepped frame by frame and never rendered.

    Args:
        power: the power of the car, as a fraction of the original engine power.
    """

    def __init__(self, power: float) -> None:
        super().__init__(render_mode=None, continuous=True)
        self._power = power

    def restart(self, seed: int) -> None:
        """Build the seed's track and put the car at its start.

        In a new world: which of two bodies that touch Box2D takes for the first depends on numbers that it
        uses again within a world, so that an episode would depend on those before it.
        """
        self._destroy()  # type: ignore[no-untyped-call] # else pybox2d keeps what its bodies refer to
        self.world = type(self.world)((0, 0), contactListener=self.contactListener_keepref)
        self.reset(seed=seed)
        assert self.car is not None
        self.car.destroy()  # type: ignore[no-untyped-call]
        contacts = _TileContacts(self, self.lap_complete_percent)  # type: ignore[no-untyped-call]
        self.world.contactListener_bug_workaround = self.world.contactListener = contacts
        self.car = FastCar(self.world, *self.track[0][1:4])  # type: ignore[no-untyped-call]
        self.car.power = self._power
        self.step_frame()  # as gymnasium's own reset

    def step_frame(self) -> None:
        """Simulate one fiftieth of a second."""
        assert self.car is not None
        self.car.step(1.0 / FPS)  # type: ignore[no-untyped-call]
        self.world.Step(1.0 / FPS, 6 * 30, 2 * 30)

    def _render(self, mode: str) -> None:
        """Does nothing: the caller renders."""
