"""Renders the video of an episode."""

import argparse
from pathlib import Path

from workers.engine.commands import add_run_dir, add_starts, read_spec

HELP = "render a replay as MP4"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare its arguments."""
    add_run_dir(parser)
    parser.add_argument("--replay", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--observed", type=Path, help="where to write a video of the network's input")
    parser.add_argument("--states", type=Path, help="where to write emulator states of a long episode")
    add_starts(parser)


def run(args: argparse.Namespace) -> int:
    """Render."""
    spec = read_spec(args.run_dir)

    from workers.engine.training.video import render

    render(spec, args.replay, args.out, args.observed, args.starts, args.states)
    return 0
