"""Whether DQN, or Gorila, plays a game better than chance after a quarter of an hour on two cores.

    python -m tests.above_random [--algorithm dqn] [--environment ALE/RoadRunner-v5] [--agent-steps 200000]
                                 [--seed 0]

Trains with the preset `quarter-hour`. Prints the mean of 30 null-op episodes with epsilon 0.05 at each
checkpoint that is scored, that of the best-kept parameters from new starts, and that of random play.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import torch

from backend.specs.algorithms import ALGORITHMS
from backend.specs.events import AnyEvent, Ended, Evaluation
from backend.specs.run import RunSpec, parse_run_spec
from workers.engine.algorithms.dqn import network
from workers.engine.devices import prepare_torch
from workers.engine.envs import make_world
from workers.engine.evaluation import evaluate
from workers.engine.event_log import read_frames
from workers.engine.policies import EpsilonGreedyPolicy
from workers.engine.training import Training

EPISODES = 30


def main() -> None:
    """Play at random, train, tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--algorithm", default="dqn", choices=["dqn", "gorila_dqn"])
    parser.add_argument("--environment", default="ALE/RoadRunner-v5")
    parser.add_argument("--agent-steps", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    prepare_torch()
    [preset] = [one for one in ALGORITHMS[asked.algorithm].presets if one.id == "quarter-hour"]
    every = min(preset.config["evaluation_interval_agent_steps"], asked.agent_steps)
    spec = parse_run_spec(
        {
            "algorithm": asked.algorithm,
            "environment": asked.environment,
            "seed": asked.seed,
            "device": "cpu",
            "config": preset.config | {"evaluation_interval_agent_steps": every},
            "stop": {"agent_steps": asked.agent_steps},
        }
    )
    print(f"random play: {told(random_returns(spec))}", flush=True)  # noqa: T201
    with tempfile.TemporaryDirectory() as folder:
        Training(spec, Path(folder)).run()
        log = Path(folder) / "attempts" / "1" / "events.log"
        for event in (event for frame, _ in read_frames(log) for event in frame):
            if line := line_of(event):
                print(line)  # noqa: T201


def random_returns(spec: RunSpec) -> list[float]:
    """Of episodes in which every action is drawn."""
    world = make_world(spec.environment, spec.environment_config)
    unread = network(spec, world)
    world.close()
    policy = EpsilonGreedyPolicy(unread, torch.device("cpu"), spec.seed, 1.0)
    return evaluate(policy, spec, episodes=EPISODES, seed=spec.seed, processes=1).returns


def line_of(event: AnyEvent) -> str | None:
    """What is to be told of an event."""
    match event:
        case Evaluation():
            minutes = event.wall_time_s / 60
            return f"{event.agent_steps:,} agent steps, {minutes:.1f} min, {event.checkpoint}: " + told(
                event.returns
            )
        case Ended():
            return f"{event.state} {event.traceback or ''}"
        case _:
            return None


def told(returns: list[float]) -> str:
    """Mean and its standard error, spread."""
    error = np.std(returns, ddof=1) / np.sqrt(len(returns))
    return f"{np.mean(returns):.1f} ± {error:.1f} (least {min(returns):g}, most {max(returns):g})"


if __name__ == "__main__":
    main()
