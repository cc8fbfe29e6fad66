"""A script in CleanRL's style with its `--track` path: W&B's `init` and a `SummaryWriter`."""

import json
import os
from typing import Any

import numpy as np

REQUIREMENTS = ("gymnasium==1.4.0",)


def train(seed: int) -> dict[str, Any]:
    """Play at random; what the script knows of it."""
    import gymnasium

    import callboard.wandb as wandb
    from callboard import SummaryWriter

    settings = {"env_id": "CartPole-v1", "exp_name": "random", "seed": seed, "learning_rate": 2.5e-4}
    name = f"CartPole-v1__random__{seed}__1700000000"
    wandb.init(
        project="cleanRL", sync_tensorboard=True, config=settings, name=name, monitor_gym=False,
        group=os.environ["LIBRARY_GROUP"], save_code=True,
    )  # fmt: skip
    writer = SummaryWriter(f"runs/{name}")
    rows = "\n".join(f"|{key}|{value}|" for key, value in settings.items())
    writer.add_text("hyperparameters", f"|param|value|\n|-|-|\n{rows}")
    env = gymnasium.wrappers.RecordEpisodeStatistics(gymnasium.make("CartPole-v1"))
    env.reset(seed=seed)
    env.action_space.seed(seed)
    returns, step = [], 0
    for step in range(1, 1_001):
        *_, terminated, truncated, info = env.step(env.action_space.sample())
        if terminated or truncated:
            returns.append(float(info["episode"]["r"]))
            writer.add_scalar("charts/episodic_return", returns[-1], step)
            env.reset()
        writer.add_scalar("losses/value", 1 / step, step)
    writer.close()
    wandb.finish()
    return {
        "name": name,
        "algorithm": "random",
        "environment": "CartPole-v1",
        "seed": seed,
        "state": "finished",
        "step_unit": "agent_steps",
        "agent_steps": step,
        "score": float(np.mean(returns[-100:])),
        "config": settings,
    }


if __name__ == "__main__":
    print(json.dumps([train(seed) for seed in (1, 2)]))  # noqa: T201
