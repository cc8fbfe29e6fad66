"""Pong, full frame: the score against wall time and agent steps, by PAAC."""

import time
from typing import Any

from backend.specs.algorithms.paac import PAAC
from benchmarks.gpu.row_runner import NOT_REACHED, START_LIMIT_S, Row
from benchmarks.gpu.stages.base import StageContext

TRAINING_S = 180.0
_PRESET = next(preset for preset in PAAC.presets if preset.id == "gpu-host")
CONFIG: dict[str, Any] = _PRESET.config | {
    "network": "nips",
    "precision": "fp32",
    "evaluation_interval_agent_steps": 0,
    "evaluation_episodes": 0,
}
"""Of the run: the preset's, without evaluations; n_w is the number of cores. More environments are a little
faster on a GPU and make fewer updates of the same agent steps."""
ANNEALED_OVER_AGENT_STEPS = int(_PRESET.stop["agent_steps"])
"""The learning rate falls to 0 over these, as in a run of the preset."""
EVALUATION_EPISODES = 30

_AROUND_S = 14.0
"""Of the stage's time, for the start of the engine and for its last checkpoint."""
_SHORT_CONFIG: dict[str, Any] = CONFIG | {"n_e": 8}


def run(context: StageContext) -> None:
    """Train until the time is up, then evaluate if there is time left."""
    seconds = 6.0 if context.is_short else TRAINING_S
    seconds = min(seconds, context.deadline - time.monotonic() - _AROUND_S)
    config = (_SHORT_CONFIG if context.is_short else CONFIG) | {"n_w": context.cores}
    run_dir = str(context.folder / "pong")
    rows = [
        Row(
            "training",
            {
                "device": context.device,
                "config": config,
                "seconds": seconds,
                "annealed_over_agent_steps": ANNEALED_OVER_AGENT_STEPS,
                "run_dir": run_dir,
            },
            limit_s=seconds + START_LIMIT_S,
            facts={"config": config},
        )
    ]
    if seconds > 0:
        context.run_rows("benchmarks.gpu.rows.pong:train", rows)
    else:
        context.add("training", {"config": config, "error": NOT_REACHED})
    evaluation = Row(
        "evaluation",
        {
            "device": context.device,
            "run_dir": run_dir,
            "episodes": 1 if context.is_short else EVALUATION_EPISODES,
            "processes": context.cores,
        },
        limit_s=60.0,
    )
    context.run_rows("benchmarks.gpu.rows.pong:evaluate_run", [evaluation])
