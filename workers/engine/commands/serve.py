"""Forks engines."""

import argparse
import socket

from workers.engine.commands import main
from workers.engine.processes.child import exit_fork

HELP = "fork engines, for a worker"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare its arguments."""
    parser.add_argument("--requests", type=int, required=True, help="socket to the worker")
    parser.add_argument("padding", nargs="?", help="room for the command lines of engines")


def run(args: argparse.Namespace) -> int:
    """Serve; in an engine, run that, and exit."""
    from workers.engine.server import serve

    arguments = serve(socket.socket(fileno=args.requests))
    if arguments is not None:
        exit_fork(main(arguments))
    return 0
