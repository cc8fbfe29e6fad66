"""Plays continuations of an episode."""

import argparse
from pathlib import Path

from workers.engine.commands import (
    add_policy,
    add_run_dir,
    parse_run_spec_file,
    read_spec,
    separate_answer,
)

HELP = "play continuations of a replay; prints one JSON line"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare its arguments."""
    add_run_dir(parser)
    parser.add_argument("--plan", type=Path, required=True, help="a `BranchPlan`")
    add_policy(parser)


def run(args: argparse.Namespace) -> int:
    """Play."""
    answer, spec = separate_answer(), read_spec(args.run_dir)

    from backend.specs.algorithms import ALGORITHMS
    from backend.specs.branches import BranchPlan
    from workers.engine.nn.devices import prepare_torch
    from workers.engine.training.branches import play_continuations
    from workers.engine.training.evaluation import load_policies

    prepare_torch()
    plan = BranchPlan.model_validate_json(args.plan.read_text("utf-8"))
    policy_spec = parse_run_spec_file(args.policy)
    reader, actor = load_policies(policy_spec, args.checkpoint, [plan.seed, plan.seed])
    outcome = play_continuations(
        spec,
        args.replay,
        (reader, actor),
        plan,
        action_values=ALGORITHMS[policy_spec.algorithm].action_values,
        value_is_per_life=bool(getattr(policy_spec.environment_config, "life_loss_terminal", False)),
        starts=args.starts,
        states=args.states,
    )
    answer.write(outcome.model_dump_json() + "\n")
    return 0
