"""Racing from pixels on gymnasium's car and tracks (Mnih et al. 2016, section 5.2, on TORCS).

Each episode has a new track, the seed's. A decision earns a tenth of the way, in the world's units, that the
car has made along the middle of the road; nothing beside the road; against the direction it costs as much. An
episode is cut off after `episode_s` seconds and ends where the car leaves the field. The agent sees one 84×84
RGB picture, whose lowest eighth shows speed, steering and rotation.

Differences from the paper, whose simulator is dead: the car is seen from above; there are no opponents, which
no library that is kept up offers; the slow car has a twentieth of the power of gymnasium's, the fast one a
fifth. From gymnasium's CarRacing: the reward, which there is for new tiles; no lap ends an episode; the
camera does not draw near in the first second; skid marks are not drawn.
"""

from typing import Any

import cv2
import numpy as np
from gymnasium.envs.box2d.car_racing import FPS, PLAYFIELD, TRACK_WIDTH
from numpy.typing import NDArray

from backend.specs.environments import ENVIRONMENTS
from backend.specs.environments.racing import ACTIONS, POWER, RacingConfig
from workers.engine.envs.base import Action, ActionSpace, Box, Discrete, OnFrame, Step
from workers.engine.envs.car import Course
from workers.engine.envs.road_picture import draw_track, draw_view

SIZE = 84
SHOWN_PIXELS = 336
UNITS_PER_REWARD = 10.0
NEAR = np.arange(-6, 7)
"""Among these neighbours of the last nearest point of the middle, the next is looked for: roads may cross."""

cv2.setNumThreads(1)


class RacingWorld:
    """One race."""

    observation_shape: tuple[int, ...] = (SIZE, SIZE, 3)
    observation_dtype = np.dtype(np.uint8)
    frames_per_second = float(FPS)

    def __init__(self, environment: str, config: RacingConfig) -> None:
        told = ENVIRONMENTS[environment]
        self.action_names = told.action_names
        self.action_space: ActionSpace = (
            Box((-1.0, -1.0), (1.0, 1.0)) if told.actions == "continuous" else Discrete(len(ACTIONS))
        )
        self._controls = list(ACTIONS.values())
        self._config = config
        self._course = Course(POWER[environment.split("-")[1]])
        self.on_frame: OnFrame | None = None

    def reset(self, seed: int, out: NDArray[Any]) -> None:
        """Build the seed's track; the car stands at its start."""
        self._course.begin(seed)
        points = np.array(self._course.track)
        self.middle = points[:, 2:4]
        self.direction = np.column_stack([-np.sin(points[:, 1]), np.cos(points[:, 1])])
        self.nearest = 0
        self._drawing = draw_track(self._course.road_poly)
        self._frames = 0
        draw_view(self._drawing, self.car, out)

    def step(self, action: Action, out: NDArray[Any]) -> Step:
        """Hold the action for `frame_skip` frames, fewer where the car leaves the field."""
        if isinstance(self.action_space, Box):
            steering, pedal = self.action_space.clip(action).tolist()
        else:
            steering, pedal = self._controls[int(action)]
        car = self.car
        car.steer(steering)
        units = 0.0
        out_of_field = False
        frames = 0
        while frames < self._config.frame_skip and not out_of_field:
            car.gas(max(pedal, 0.0))
            car.brake(max(-pedal, 0.0))
            self._course.frame()
            frames += 1
            units += self._way() / FPS
            x, y = car.hull.position
            out_of_field = abs(x) > PLAYFIELD or abs(y) > PLAYFIELD
            if self.on_frame is not None:
                self._show(self.on_frame)
        self._frames += frames
        draw_view(self._drawing, car, out)
        truncated = not out_of_field and self._frames >= self._config.episode_s * FPS
        return Step(
            reward=units / UNITS_PER_REWARD,
            terminal=out_of_field,
            ended=out_of_field or truncated,
            truncated=truncated,
            frames=frames,
        )

    @property
    def car(self) -> Any:
        """The car, gymnasium's."""
        return self._course.car

    def lives(self) -> int:
        """One car."""
        return 0

    def close(self) -> None:
        """Free the course."""
        self._course.close()  # type: ignore[no-untyped-call]

    def _way(self) -> float:
        """Speed along the middle of the road in units a second, 0 beside the road."""
        near = (self.nearest + NEAR) % len(self.middle)
        away = self.middle[near] - self.car.hull.position
        distances = np.einsum("nd,nd->n", away, away)
        best = int(distances.argmin())
        self.nearest = int(near[best])
        if distances[best] > TRACK_WIDTH**2:
            return 0.0
        vx, vy = self.car.hull.linearVelocity
        dx, dy = self.direction[self.nearest]
        return float(vx * dx + vy * dy)

    def _show(self, on_frame: OnFrame) -> None:
        picture = np.empty((SHOWN_PIXELS, SHOWN_PIXELS, 3), np.uint8)
        draw_view(self._drawing, self.car, picture)
        on_frame(picture)
