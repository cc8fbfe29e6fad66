"""Stable-Baselines3 with W&B's callback, by `callboard.wandb.install()`."""

import json
import os
from typing import Any

import numpy as np

REQUIREMENTS = ("stable-baselines3==2.9.2", "torch==2.13.0", "tensorboard==2.21.0")


def train(seed: int) -> dict[str, Any]:
    """Train; what the library says of it."""
    import callboard.wandb

    callboard.wandb.install()
    import wandb
    from stable_baselines3 import A2C
    from wandb.integration.sb3 import WandbCallback

    name = f"a2c {seed}"
    run = wandb.init(
        name=name, group=os.environ["LIBRARY_GROUP"], sync_tensorboard=True, config={"note": "x"}
    )
    model = A2C("MlpPolicy", "CartPole-v1", seed=seed, gamma=0.98, tensorboard_log="tb")
    model.learn(1_000, callback=WandbCallback())
    returns = model.get_env().env_method("get_episode_rewards")[0]
    run.finish()
    return {
        "name": name,
        "algorithm": "sb3_a2c",
        "environment": "CartPole-v1",
        "seed": seed,
        "state": "finished",
        "step_unit": "agent_steps",
        "agent_steps": model.num_timesteps,
        "score": float(np.mean(returns[-100:])),
        "config": {"gamma": 0.98, "note": "x", "n_steps": model.n_steps},
    }


if __name__ == "__main__":
    print(json.dumps([train(seed) for seed in (1, 2)]))  # noqa: T201
