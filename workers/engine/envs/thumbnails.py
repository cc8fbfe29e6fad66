"""Thumbnails of all environments for the pages: `python -m workers.engine.envs.thumbnails FOLDER`."""

import sys
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from backend.specs.environments import ENVIRONMENTS
from workers.engine.envs import Box, make_env

HEIGHT = 96
AGENT_STEPS = 60
QUALITY = 70


def thumbnail(environment: str) -> NDArray[np.uint8]:
    """A frame after some random play, (96, W, 3) RGB."""
    env = make_env(environment, ENVIRONMENTS[environment].config())
    space, rng = env.action_space, np.random.default_rng(0)
    observation = np.empty(env.observation_shape, env.observation_dtype)
    frames: list[NDArray[np.uint8]] = []
    env.reset(0, observation)
    for t in range(AGENT_STEPS):
        if t == AGENT_STEPS - 10:
            env.on_frame = frames.append
        action = rng.uniform(space.low, space.high) if isinstance(space, Box) else rng.integers(space.n)
        if env.step(action, observation).episode_over:
            env.reset(t, observation)
    env.close()
    latest = max(frames[-20:], key=np.std)  # flickering sprites are drawn every other frame
    width = round(latest.shape[1] * HEIGHT / latest.shape[0])
    return np.asarray(cv2.resize(latest, (width, HEIGHT), interpolation=cv2.INTER_AREA), np.uint8)


def file_name(environment: str) -> str:
    """`ALE/Pong-v5` -> `ALE-Pong-v5.webp`."""
    return f"{environment.replace('/', '-')}.webp"


if __name__ == "__main__":
    for name in ENVIRONMENTS:
        _, encoded = cv2.imencode(
            ".webp", cv2.cvtColor(thumbnail(name), cv2.COLOR_RGB2BGR), [cv2.IMWRITE_WEBP_QUALITY, QUALITY]
        )
        (Path(sys.argv[1]) / file_name(name)).write_bytes(encoded.tobytes())
