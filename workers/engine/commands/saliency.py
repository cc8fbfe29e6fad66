"""Computes a saliency map."""

import argparse

from workers.engine.commands import (
    add_policy,
    add_run_dir,
    parse_run_spec_file,
    read_spec,
    separate_answer,
)

HELP = "compute a saliency map; prints one JSON line"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare its arguments."""
    add_run_dir(parser)
    parser.add_argument("--decision", type=int, required=True)
    add_policy(parser)


def run(args: argparse.Namespace) -> int:
    """Compute the map."""
    answer, spec = separate_answer(), read_spec(args.run_dir)

    from workers.engine.nn.devices import prepare_torch
    from workers.engine.training.evaluation import load_policy
    from workers.engine.training.saliency import saliency_of_decision

    prepare_torch()
    policy = load_policy(parse_run_spec_file(args.policy), args.checkpoint, 0)
    saliency = saliency_of_decision(
        spec, args.replay, policy, args.decision, starts=args.starts, states=args.states
    )
    answer.write(saliency.model_dump_json() + "\n")
    return 0
