"""Simulates an environment that a person plays."""

import argparse
import sys

from backend.specs.play import PlaySetup
from workers.engine.commands import add_run_dir

HELP = "simulate an environment that a person plays"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare its arguments."""
    add_run_dir(parser)
    parser.add_argument("--control-fd", type=int, required=True, help="socket to the worker")


def run(args: argparse.Namespace) -> int:
    """Simulate."""
    from workers.engine.training.play import play
    from workers.engine.training.restore import ReplayMismatchError

    setup = PlaySetup.model_validate_json((args.run_dir / "spec.json").read_text("utf-8"))
    try:
        play(setup, args.control_fd, args.run_dir)
    except ReplayMismatchError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0
