"""Exports the agent of a checkpoint."""

import argparse
import sys
from pathlib import Path

from workers.engine.commands import add_run_dir, read_spec, separate_answer

HELP = "export the agent of a checkpoint as an archive; prints one JSON line"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare its arguments."""
    add_run_dir(parser)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--card", type=Path, required=True, help="an `AgentCard`")
    parser.add_argument("--format", choices=("safetensors", "onnx"), required=True)
    parser.add_argument("--out", type=Path, required=True)


def run(args: argparse.Namespace) -> int:
    """Export."""
    answer, spec = separate_answer(), read_spec(args.run_dir)

    from backend.specs.agents import AgentCard
    from workers.engine.nn.devices import prepare_torch
    from workers.engine.training.exported_agents import ExportError, export_agent

    prepare_torch()
    card = AgentCard.model_validate_json(args.card.read_text("utf-8"))
    try:
        exported = export_agent(spec, args.checkpoint, card, args.format, args.out)
    except ExportError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    answer.write(exported.model_dump_json() + "\n")
    return 0
