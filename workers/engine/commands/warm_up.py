"""Compiles the kernels."""

import argparse

from workers.engine.commands import add_parent

HELP = "compile the kernels"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare its arguments."""
    add_parent(parser)


def run(args: argparse.Namespace) -> int:
    """Load what a run needs, and compile the kernels: an installation's first run would wait for both."""
    import workers.engine.nn.kernels
    import workers.engine.training.loop  # noqa: F401

    return 0
