"""Small pictures of every world, for the Worlds page: `python -m workers.engine.envs.pictures FOLDER`."""

import sys
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from backend.specs.environments import ENVIRONMENTS
from workers.engine.envs import Box, make_world

HEIGHT = 96
AGENT_STEPS = 60
QUALITY = 70


def picture(environment: str) -> NDArray[np.uint8]:
    """The world after a while of random play, (96, W, 3) RGB."""
    world = make_world(environment, ENVIRONMENTS[environment].config())
    space, rng = world.action_space, np.random.default_rng(0)
    observation = np.empty(world.observation_shape, world.observation_dtype)
    seen: list[NDArray[np.uint8]] = []
    world.reset(0, observation)
    for t in range(AGENT_STEPS):
        if t == AGENT_STEPS - 10:
            world.on_frame = seen.append
        action = rng.uniform(space.low, space.high) if isinstance(space, Box) else rng.integers(space.n)
        if world.step(action, observation).ended:
            world.reset(t, observation)
    world.close()
    latest = max(seen[-20:], key=np.std)  # sprites that flicker are there every other frame
    width = round(latest.shape[1] * HEIGHT / latest.shape[0])
    return np.asarray(cv2.resize(latest, (width, HEIGHT), interpolation=cv2.INTER_AREA), np.uint8)


def file_name(environment: str) -> str:
    """`ALE/Pong-v5` -> `ALE-Pong-v5.webp`."""
    return f"{environment.replace('/', '-')}.webp"


if __name__ == "__main__":
    for name in ENVIRONMENTS:
        _, encoded = cv2.imencode(
            ".webp", cv2.cvtColor(picture(name), cv2.COLOR_RGB2BGR), [cv2.IMWRITE_WEBP_QUALITY, QUALITY]
        )
        (Path(sys.argv[1]) / file_name(name)).write_bytes(encoded.tobytes())
