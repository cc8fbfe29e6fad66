"""Evaluates a checkpoint."""

import argparse
import json
from pathlib import Path

from workers.engine.commands import add_run_dir, add_starts, read_spec, separate_answer

HELP = "evaluate a checkpoint; prints one JSON line"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare its arguments."""
    add_run_dir(parser)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--protocol", help="the run's by default")
    parser.add_argument("--episodes", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    add_starts(parser)


def run(args: argparse.Namespace) -> int:
    """Evaluate."""
    answer, spec = separate_answer(), read_spec(args.run_dir)

    from workers.engine.nn.devices import prepare_torch
    from workers.engine.training.evaluation import evaluate, load_policy

    prepare_torch()
    policy = load_policy(spec, args.checkpoint, args.seed)
    result = evaluate(
        policy,
        spec,
        episodes=args.episodes,
        seed=args.seed,
        processes=args.processes,
        protocol=args.protocol,
        starts=args.starts,
    )
    report = {
        "protocol": result.protocol,
        "seed": args.seed,
        "returns": result.returns,
        "lengths_frames": result.lengths_frames,
        "mean_return": result.mean_return,
    }
    answer.write(json.dumps(report) + "\n")
    return 0
