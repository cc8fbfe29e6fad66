"""Encodes a video that a script has uploaded."""

import argparse
from pathlib import Path

from workers.engine.commands import add_run_dir, separate_answer

HELP = "encode an uploaded video; prints one JSON line"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare its arguments."""
    add_run_dir(parser)
    parser.add_argument("--upload", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--form", choices=["file", "frames"], required=True)
    parser.add_argument("--fps", type=float)


def run(args: argparse.Namespace) -> int:
    """Encode."""
    answer = separate_answer()

    from workers.engine.training.uploaded_video import report

    answer.write(report(args.upload, args.out, args.form, args.fps) + "\n")
    return 0
