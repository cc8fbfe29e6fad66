"""Stable-Baselines3 on the same GPU, in the same minutes; see `benchmarks.sb3`."""

from benchmarks.gpu.row_runner import Row
from benchmarks.gpu.stages.base import StageContext
from benchmarks.gpu.stages.throughput import GAME


def run(context: StageContext) -> None:
    """Measure its A2C and its DQN, with RL Zoo's hyperparameters."""
    measured_s = 1.5 if context.is_short else 4.0
    rows = [
        Row(
            name,
            {
                "environment": GAME,
                "algorithm": algorithm,
                "device": context.device,
                "warm_up_s": 0.2 if context.is_short else 1.0,
                "measured_s": measured_s,
            },
            limit_s=measured_s + 30.0,
            facts={"method": f"sb3-{algorithm}"},
        )
        for name, algorithm in (
            ("Stable-Baselines3's A2C, 16 environments in subprocesses", "a2c"),
            ("Stable-Baselines3's DQN", "dqn"),
        )
    ]
    context.run_rows("benchmarks.gpu.rows.peers:train", rows)
