"""rsl_rl's logger with `callboard.rsl_rl:CallboardLogWriter`."""

import json
import os
from pathlib import Path
from typing import Any

REQUIREMENTS = ("rsl-rl-lib==5.5.1", "torch==2.13.0")


def train() -> dict[str, Any]:
    """Log iterations; what the library says of them."""
    import torch
    from rsl_rl.utils.logger import Logger

    writer = {"class_name": "callboard.rsl_rl:CallboardLogWriter", "group": os.environ["LIBRARY_GROUP"]}
    settings = {"algorithm": {"class_name": "PPO"}, "seed": 7, "num_steps_per_env": 24, "logger": writer}
    settings["experiment_name"] = "cartpole"
    Path("rsl").mkdir()
    logger = Logger(
        log_dir="rsl", cfg=settings, env_cfg={"decimation": 2}, num_envs=4, is_distributed=False,
        gpu_world_size=1, gpu_global_rank=0, device="cpu",
    )  # fmt: skip
    logger.init_logging_writer()
    for iteration in range(4):
        logger.process_env_step(torch.ones(4), torch.tensor([1, 0, 1, 0]), {}, None)
        logger.log(
            it=iteration, start_it=0, total_it=4, collect_time=0.1, learn_time=0.1, loss_dict={"value": 0.5},
            learning_rate=1e-3, action_std=torch.ones(1), rnd_weight=None, print_minimal=True,
        )  # fmt: skip
    logger.stop_logging_writer()
    return {
        "name": "rsl",
        "algorithm": "rsl_rl_ppo",
        "environment": "cartpole",
        "seed": 7,
        "state": "finished",
        "step_unit": "iterations",
        "agent_steps": 3,
        "score": sum(logger.rewbuffer) / len(logger.rewbuffer),
        "config": {"num_steps_per_env": 24, "env_cfg.decimation": 2},
    }


if __name__ == "__main__":
    print(json.dumps([train()]))  # noqa: T201
