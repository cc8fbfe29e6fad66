"""By what MuJoCo's observations are normalised: each number's mean and standard deviation in random play.

`mujoco_scales.json` holds them for every task. They are constants, so that an episode stays what its seed and
actions make it, in every process and after every resume. Made by
`python -m workers.engine.envs.mujoco_scales`.
"""

import json
import sys
from functools import cache
from importlib import resources

import gymnasium
import numpy as np
from numpy.typing import NDArray

from backend.specs.environments.mujoco import TASKS

AGENT_STEPS = 10_000
DECIMALS = 5


def measure(task: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation (D,) over `AGENT_STEPS` uniformly random decisions from seed 0 on."""
    env = gymnasium.make(f"{task}-v5", disable_env_checker=True)
    rng = np.random.default_rng(0)
    space = env.action_space
    assert isinstance(space, gymnasium.spaces.Box)
    seen: list[NDArray[np.float64]] = []
    seed, ended = 0, True
    while len(seen) < AGENT_STEPS:
        if ended:
            observation, _ = env.reset(seed=seed)
            seed += 1
        else:
            observation, _, terminated, truncated, _ = env.step(rng.uniform(space.low, space.high))
        ended = not ended and (terminated or truncated)
        seen.append(np.asarray(observation, np.float64))
    env.close()
    return np.mean(seen, 0), np.std(seen, 0)


@cache
def scales(task: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Mean and standard deviation (D,) of a task's observations; 1 where a number hardly changes."""
    text = resources.files("workers.engine.envs").joinpath("mujoco_scales.json").read_text("utf-8")
    mean, deviation = (np.asarray(row, np.float32) for row in json.loads(text)[task])
    return mean, np.where(deviation < 1e-3, 1, deviation).astype(np.float32)


if __name__ == "__main__":
    found = {name: [row.round(DECIMALS).tolist() for row in measure(name)] for name in TASKS}
    lines = [f"{json.dumps(name)}: {json.dumps(rows)}" for name, rows in found.items()]
    sys.stdout.write("{\n" + ",\n".join(lines) + "\n}\n")
