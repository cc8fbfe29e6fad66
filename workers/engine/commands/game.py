"""Renders the video of a game that a person has played."""

import argparse
from pathlib import Path

from backend.specs.play import PlaySetup
from workers.engine.commands import add_run_dir

HELP = "render a game that a person has played as MP4"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare its arguments."""
    add_run_dir(parser)
    parser.add_argument("--replay", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--states", type=Path, help="where to write emulator states of a long episode")


def run(args: argparse.Namespace) -> int:
    """Render."""
    from workers.engine.training.video import render_game

    setup = PlaySetup.model_validate_json((args.run_dir / "spec.json").read_text("utf-8"))
    render_game(setup, args.replay, args.out, args.states)
    return 0
