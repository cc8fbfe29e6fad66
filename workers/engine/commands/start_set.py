"""Verifies a start set."""

import argparse
import json
from pathlib import Path

from workers.engine.commands import add_run_dir, separate_answer

HELP = "verify a start set by replay; prints one JSON line"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare its arguments."""
    add_run_dir(parser)
    parser.add_argument("--document", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="where to write the emulator states")


def run(args: argparse.Namespace) -> int:
    """Verify."""
    answer = separate_answer()

    from backend.specs.start_sets import StartSetContent
    from workers.engine.envs import starts
    from workers.engine.training.start_sets import StartSetMismatchError, verify

    try:
        verified, derived = verify(StartSetContent.model_validate_json(args.document.read_text("utf-8")))
    except StartSetMismatchError as error:
        answer.write(json.dumps({"error": str(error)}) + "\n")
        return 0
    starts.save(args.out, derived)
    answer.write(json.dumps({"error": None, "set": verified.model_dump()}) + "\n")
    return 0
