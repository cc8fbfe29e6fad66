"""Racing from pixels on gymnasium's car and tracks (Mnih et al. 2016, section 5.2, on TORCS).

Each episode's track comes from its seed. The reward of a decision is a tenth of the distance, in simulation
units, that the car moved along the centre of the road: negative against the direction of travel, 0 off the
road. An episode is truncated after `episode_s` seconds and terminates when the car leaves the field. The
observation is one 84×84 RGB frame, whose lowest eighth shows speed, steering and rotation.

In `Racing-Slow-Opponents-v0` and `Racing-Fast-Opponents-v0` other cars are on the road: those of
`workers.engine.envs.opponents`. The track of a seed, the reward and the ends of an episode are the same.

Differences from the paper, whose simulator is no longer maintained: the car is seen from above; the opponents
are scripted by us; the slow car has a twentieth of the power of gymnasium's, the fast one a fifth.
Differences from gymnasium's CarRacing: its reward is for new tiles; a lap does not end an episode; the camera
does not zoom in the first second; skid marks are not drawn.
"""

from typing import Any

import cv2
import numpy as np
from gymnasium.envs.box2d.car_racing import FPS, PLAYFIELD, TRACK_WIDTH
from numpy.typing import NDArray

from backend.specs.environments import ENVIRONMENTS
from backend.specs.environments.racing import ACTIONS, N_OPPONENTS, OPPONENT_SPEEDS, POWER, RacingConfig
from workers.engine.envs.base import Action, ActionSpace, Box, Discrete, OnFrame, Step
from workers.engine.envs.car import RaceSimulation
from workers.engine.envs.images import SIZE
from workers.engine.envs.opponents import NEAR, Opponents
from workers.engine.envs.road_frame import draw_track, draw_view

FRAME_PIXELS = 336
UNITS_PER_REWARD = 10.0

cv2.setNumThreads(1)


class RacingEnv:
    """One race."""

    observation_shape: tuple[int, ...] = (SIZE, SIZE, 3)
    observation_dtype = np.dtype(np.uint8)
    frames_per_second = float(FPS)

    def __init__(self, environment: str, config: RacingConfig) -> None:
        catalogue = ENVIRONMENTS[environment]
        self.action_names = catalogue.action_names
        self.action_space: ActionSpace = (
            Box((-1.0, -1.0), (1.0, 1.0)) if catalogue.actions == "continuous" else Discrete(len(ACTIONS))
        )
        self._controls = list(ACTIONS.values())
        self._config = config
        car, *others = environment.split("-")[1:-1]
        self._race = RaceSimulation(POWER[car])
        self._opponent_speeds = OPPONENT_SPEEDS[car] if "Opponents" in others else None
        self.opponents: Opponents | None = None
        self.on_frame: OnFrame | None = None

    def reset(self, seed: int, out: NDArray[Any]) -> None:
        """Build the seed's track with the car at its start and the opponents ahead of it."""
        self._race.restart(seed)
        points = np.array(self._race.track)
        self.centre_line = points[:, 2:4]
        self.direction = np.column_stack([-np.sin(points[:, 1]), np.cos(points[:, 1])])
        self.nearest = 0
        if self._opponent_speeds is not None:
            self.opponents = Opponents(
                self._race.world,
                self.centre_line,
                self.direction,
                n=N_OPPONENTS,
                speeds=self._opponent_speeds,
                seed=seed,
            )
        self._drawing = draw_track(self._race.road_poly)
        self._frames = 0
        self._draw(out)

    def step(self, action: Action, out: NDArray[Any]) -> Step:
        """Repeat the action for `frame_skip` frames, fewer if the car leaves the field."""
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
            if self.opponents is not None:
                self.opponents.drive(car.hull)
            self._race.step_frame()
            frames += 1
            units += self._speed_along_road() / FPS
            x, y = car.hull.position
            out_of_field = abs(x) > PLAYFIELD or abs(y) > PLAYFIELD
            if self.on_frame is not None:
                self.on_frame(self.frame())
        self._frames += frames
        self._draw(out)
        truncated = not out_of_field and self._frames >= self._config.episode_s * FPS
        return Step(
            reward=units / UNITS_PER_REWARD,
            terminated=out_of_field,
            episode_over=out_of_field or truncated,
            truncated=truncated,
            frames=frames,
        )

    @property
    def car(self) -> Any:
        """The car of gymnasium's simulation."""
        return self._race.car

    def lives(self) -> int:
        """Always 0: there are no lives."""
        return 0

    def close(self) -> None:
        """Free the simulation."""
        self._race.close()  # type: ignore[no-untyped-call]

    def _speed_along_road(self) -> float:
        """Speed along the centre of the road in units per second, 0 off the road."""
        near = (self.nearest + NEAR) % len(self.centre_line)
        away = self.centre_line[near] - self.car.hull.position
        distances = np.einsum("nd,nd->n", away, away)
        best = int(distances.argmin())
        self.nearest = int(near[best])
        if distances[best] > TRACK_WIDTH**2:
            return 0.0
        vx, vy = self.car.hull.linearVelocity
        dx, dy = self.direction[self.nearest]
        return float(vx * dx + vy * dy)

    def frame(self) -> NDArray[np.uint8]:
        """The current frame."""
        frame = np.empty((FRAME_PIXELS, FRAME_PIXELS, 3), np.uint8)
        self._draw(frame)
        return frame

    def _draw(self, out: NDArray[np.uint8]) -> None:
        others = self.opponents.bodies if self.opponents is not None else ()
        draw_view(self._drawing, self.car, out, others)
