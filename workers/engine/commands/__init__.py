"""The engine's subcommands: each is the module that is named after it, with "_" for "-".

A subcommand's module has `HELP`, `add_arguments` and `run`, and no others are imported for it. At its top it
imports nothing slow: the engine first ties its life to its worker's.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import IO, Protocol

from backend.specs import machine_faults
from backend.specs.problems import InvalidSpec
from backend.specs.run import RunSpec, parse_run_spec
from workers.engine.processes.child import die_with_parent


class Subcommand(Protocol):
    """What the module of a subcommand declares."""

    HELP: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare its arguments."""

    def run(self, args: argparse.Namespace) -> int:
        """Run it, and return the exit status."""


class BadInputError(Exception):
    """A file that the engine is given cannot be used."""


NAMES = [module.name.replace("_", "-") for module in iter_modules(__path__)]
"""Every subcommand."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one engine.

    Args:
        arguments: those of the command line by default.
    """
    args = parse(sys.argv[1:] if arguments is None else arguments)
    if "parent" in args:
        die_with_parent(args.parent)
    try:
        return int(args.run(args))
    except BadInputError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except Exception as error:
        fault = machine_faults.errno_of(error)
        if fault is None:
            raise
        with suppress(OSError):  # unbuffered: the disk of its output may be the full one
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
        return machine_faults.exit_status(fault)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse a command line; exit if it is wrong, or asks for help. `run` executes what it is for."""
    parser = argparse.ArgumentParser(prog="python -m workers.engine", description="Run one engine.")
    commands = parser.add_subparsers(required=True)
    for name in [name for name in arguments[:1] if name in NAMES] or NAMES:
        subcommand: Subcommand = import_module(f"{__name__}.{name.replace('-', '_')}")
        command = commands.add_parser(name, help=subcommand.HELP)
        subcommand.add_arguments(command)
        command.set_defaults(run=subcommand.run)
    return parser.parse_args(arguments)


def add_parent(parser: argparse.ArgumentParser) -> None:
    """Declare the option for the process that starts the engine."""
    parser.add_argument(
        "--parent", type=int, default=os.getppid(), help="process that this one must not outlive"
    )


def add_run_dir(parser: argparse.ArgumentParser) -> None:
    """Declare the folder that the engine works in, and its parent."""
    parser.add_argument("run_dir", type=Path)
    add_parent(parser)


def add_starts(parser: argparse.ArgumentParser) -> None:
    """Declare the option for the emulator states of a start set."""
    parser.add_argument("--starts", type=Path, help="states of the protocol's start set")


def add_policy(parser: argparse.ArgumentParser) -> None:
    """Declare the options for an episode and the checkpoint of an agent, which may be of another run."""
    parser.add_argument("--replay", type=Path, required=True)
    parser.add_argument("--policy", type=Path, required=True, help="spec.json of the checkpoint's run")
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--states", type=Path, help="emulator states of a long episode")
    add_starts(parser)


def read_spec(run_dir: Path) -> RunSpec:
    """The specification in the engine's folder.

    Raises:
        BadInputError: there is none, or it is invalid.
        OSError: this host's disk cannot be read.
    """
    try:
        return parse_run_spec_file(run_dir / "spec.json")
    except (OSError, ValueError, InvalidSpec) as error:
        if machine_faults.errno_of(error) is not None:
            raise
        raise BadInputError(f"spec.json: {error}") from error


def parse_run_spec_file(file: Path) -> RunSpec:
    """The specification in a file."""
    return parse_run_spec(json.loads(file.read_text("utf-8")))


def separate_answer() -> IO[str]:
    """Standard output, for the one line of an answer; whatever else is printed there from now on, such as by
    a custom environment, goes to standard error."""
    answer = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return answer
