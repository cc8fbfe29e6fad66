"""Scripted opponents of a race; ours, since the paper's simulator is no longer maintained.

Each opponent is one rigid body in gymnasium's simulation, without wheels, so that it collides with the
agent's car and with other opponents. It follows a lane of the road, left or right of the centre, at a
constant speed, and slows down to that of whoever is close ahead of it in its lane. Lanes and speeds come from
the episode's seed. A collision changes its velocity; it returns to its lane by a limited acceleration.
"""

from math import pi
from typing import Any

import numpy as np
from gymnasium.envs.box2d.car_racing import FPS, TRACK_WIDTH
from numpy.typing import NDArray

Points = NDArray[np.float64]

NEAR = np.arange(-6, 7)
"""The nearest centre point is searched among these neighbours of the last one: roads may cross."""
HALF_SIZE = (1.2, 2.4)
"""Half of the width and of the length, about gymnasium's car, in simulation units."""
COLOUR = (0.1, 0.2, 0.9)
LANE_UNITS = 0.45 * TRACK_WIDTH
"""Distance of a lane from the centre of the road, whose half width is `TRACK_WIDTH`."""
FIRST_POINT, POINTS_APART = 8, 8
"""Centre points of 3.5 units between the agent's car and the first opponent, and between two of them."""
LOOK_AHEAD_POINTS = 3
CONTROL_FRAMES = 4
"""Frames between two changes of an opponent's velocity: 0.08 s."""
MAX_ACCELERATION = 25.0
"""Units per second squared."""
MAX_TURN = 4.0
"""Radians per second."""
GAP_UNITS, GAP_S = 6.0, 0.4
"""An opponent keeps `GAP_UNITS`, plus the distance that it covers in `GAP_S`, from the car ahead."""


class Opponents:
    """The opponents of one episode."""

    def __init__(
        self,
        world: Any,
        centre_line: Points,
        direction: Points,
        *,
        n: int,
        speeds: tuple[float, float],
        seed: int,
    ) -> None:
        """Place the opponents on the road ahead of the agent's car.

        Args:
            world: Box2D's world.
            centre_line: f8[P, 2], points of the road's centre, in the direction of travel.
            direction: f8[P, 2], unit vectors of travel there.
            n: number of opponents.
            speeds: the lowest and the highest, in units per second.
            seed: seed of the episode.
        """
        rng = np.random.default_rng([seed, n])
        sides = np.column_stack([-direction[:, 1], direction[:, 0]])
        lane = rng.choice([-LANE_UNITS, LANE_UNITS], size=n)
        self.lanes = centre_line + lane[:, None, None] * sides
        """f8[n, P, 2]: the points that each follows."""
        self.speed = rng.uniform(*speeds, size=n)
        self.nearest = (FIRST_POINT + POINTS_APART * np.arange(n)) % len(centre_line)
        self._direction = direction
        self._all = np.arange(n)
        self._frames = 0
        self.bodies = [
            world.CreateDynamicBody(
                position=tuple(self.lanes[i, at]),
                angle=float(np.arctan2(-direction[at, 0], direction[at, 1])),
                linearVelocity=tuple(self.speed[i] * direction[at]),
            )
            for i, at in enumerate(self.nearest)
        ]
        for body in self.bodies:
            body.CreatePolygonFixture(box=HALF_SIZE, density=1.0, friction=0.2, restitution=0.2)
            body.color = COLOUR

    def drive(self, player: Any) -> None:
        """Set the velocities before a frame, once in `CONTROL_FRAMES`.

        Args:
            player: the body of the agent's car.
        """
        self._frames += 1
        if self._frames % CONTROL_FRAMES == 0:
            self._control(player)

    def _control(self, player: Any) -> None:
        position = np.array([body.position for body in self.bodies], float)
        velocity = np.array([body.linearVelocity for body in self.bodies], float)
        near = (self.nearest[:, None] + NEAR) % len(self._direction)
        away = self.lanes[self._all[:, None], near] - position[:, None]
        self.nearest = near[self._all, np.einsum("nkd,nkd->nk", away, away).argmin(axis=1)]
        target = self.lanes[self._all, (self.nearest + LOOK_AHEAD_POINTS) % len(self._direction)] - position
        heading = target / np.linalg.norm(target, axis=1, keepdims=True)
        speed = np.minimum(self.speed, self._free_speed(position, velocity, heading, player))
        change = speed[:, None] * heading - velocity
        size = np.linalg.norm(change, axis=1, keepdims=True)
        velocity += change * np.minimum(1.0, MAX_ACCELERATION * CONTROL_FRAMES / FPS / np.maximum(size, 1e-9))
        angle = np.arctan2(-heading[:, 0], heading[:, 1])
        for i, body in enumerate(self.bodies):
            turn = (float(angle[i]) - body.angle + pi) % (2 * pi) - pi
            body.angularVelocity = max(-MAX_TURN, min(MAX_TURN, turn * FPS / (2 * CONTROL_FRAMES)))
            body.linearVelocity = (float(velocity[i, 0]), float(velocity[i, 1]))

    def _free_speed(self, position: Points, velocity: Points, heading: Points, player: Any) -> Points:
        """The speed of the slowest car close ahead of each in its lane; infinite if there is none."""
        others = np.vstack([position, np.array([player.position], float)])
        speeds = np.linalg.norm(np.vstack([velocity, np.array([player.linearVelocity], float)]), axis=1)
        away = others[None] - position[:, None]
        ahead = np.einsum("nmd,nd->nm", away, heading)
        beside = np.abs(away[..., 0] * heading[:, None, 1] - away[..., 1] * heading[:, None, 0])
        gap = GAP_UNITS + GAP_S * np.linalg.norm(velocity, axis=1, keepdims=True)
        is_close = (ahead > 0) & (ahead < gap) & (beside < 2 * HALF_SIZE[0])
        slowest: Points = np.where(is_close, speeds, np.inf).min(axis=1)
        return slowest
