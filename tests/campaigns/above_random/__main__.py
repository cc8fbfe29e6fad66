"""Whether DQN or Gorila plays a game better than random after a quarter of an hour on two cores.

    python -m tests.campaigns.above_random [--algorithm dqn] [--environment ALE/RoadRunner-v5]
                                           [--agent-steps 200000] [--seed 0]

Trains with the preset `quarter-hour`. Prints the mean of 30 null-op episodes with epsilon 0.05 at each
evaluated checkpoint, that of the best parameters from new starts, and that of random play.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import torch

from backend.specs.algorithms import ALGORITHMS
from backend.specs.algorithms.replayed import ReplayedQConfig
from backend.specs.events import AnyEvent, EndedEvent, EvaluationEvent
from backend.specs.run import RunSpec, parse_run_spec
from workers.engine.envs import make_env
from workers.engine.methods.base import config_of
from workers.engine.methods.dqn.dqn import network
from workers.engine.nn.devices import prepare_torch
from workers.engine.nn.policies import EpsilonGreedyPolicy
from workers.engine.training.evaluation import evaluate
from workers.engine.training.event_log import read_frames
from workers.engine.training.loop import Training

EPISODES = 30


def main() -> None:
    """Play at random, train, and print the scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--algorithm", default="dqn", choices=["dqn", "gorila_dqn"])
    parser.add_argument("--environment", default="ALE/RoadRunner-v5")
    parser.add_argument("--agent-steps", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    prepare_torch()
    [preset] = [preset for preset in ALGORITHMS[args.algorithm].presets if preset.id == "quarter-hour"]
    every = min(preset.config["evaluation_interval_agent_steps"], args.agent_steps)
    spec = parse_run_spec(
        {
            "algorithm": args.algorithm,
            "environment": args.environment,
            "seed": args.seed,
            "device": "cpu",
            "config": preset.config | {"evaluation_interval_agent_steps": every},
            "stop": {"agent_steps": args.agent_steps},
        }
    )
    print(f"random play: {summary(random_returns(spec))}", flush=True)  # noqa: T201
    with tempfile.TemporaryDirectory() as folder:
        Training(spec, Path(folder)).run()
        log = Path(folder) / "attempts" / "1" / "events.log"
        for event in (event for frame, _ in read_frames(log) for event in frame):
            if line := line_of(event):
                print(line)  # noqa: T201


def random_returns(spec: RunSpec) -> list[float]:
    """Return the returns of episodes with uniformly random actions."""
    env = make_env(spec.environment, spec.environment_config)
    config = config_of(spec, ReplayedQConfig)  # type: ignore[type-abstract]
    unused_network = network(config, env)
    env.close()
    policy = EpsilonGreedyPolicy(unused_network, torch.device("cpu"), spec.seed, 1.0)
    return evaluate(policy, spec, episodes=EPISODES, seed=spec.seed, processes=1).returns


def line_of(event: AnyEvent) -> str | None:
    """Return the line to print for an event, if any."""
    match event:
        case EvaluationEvent():
            minutes = event.wall_time_s / 60
            return f"{event.agent_steps:,} agent steps, {minutes:.1f} min, {event.checkpoint}: " + summary(
                event.returns
            )
        case EndedEvent():
            return f"{event.state} {event.traceback or ''}"
        case _:
            return None


def summary(returns: list[float]) -> str:
    """Mean, standard error, minimum and maximum, as text."""
    error = np.std(returns, ddof=1) / np.sqrt(len(returns))
    return f"{np.mean(returns):.1f} ± {error:.1f} (minimum {min(returns):g}, maximum {max(returns):g})"


if __name__ == "__main__":
    main()
