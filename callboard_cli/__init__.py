"""The `callboard` command. Commands import slow packages inside functions, to start quickly."""

import shlex
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

BAD_INPUT = 2
"""Exit code for invalid input."""

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
"""Option of commands that print a resource of the REST API."""


class CommandGroup(TyperGroup):
    """Commands that are listed with the first sentence of their help, however long it is."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [
            (name, command.get_short_help_str(limit=1_000))
            for name, command in commands
            if command is not None and not command.hidden
        ]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)


def printable(text: object) -> str:
    """Text of other users, such as a run's name, with its control characters escaped: terminals obey them."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in str(text))


def score_text(score: float | None) -> str:
    """A score for tables, as the client and pages show it."""
    from callboard.display import score_text

    return score_text(score)


def log_text(line: dict[str, Any]) -> str:
    """A line of a run's log, as the client shows it."""
    from callboard.display import log_text

    return log_text(line)


def estimate_text(estimate: dict[str, Any] | None) -> str:
    """An estimate of the REST API with its interval, if it has one."""
    if estimate is None:
        return "–"
    if estimate["low"] is None:
        return score_text(estimate["value"])
    return f"{score_text(estimate['value'])} [{score_text(estimate['low'])}, {score_text(estimate['high'])}]"


def fail(message: str, code: int = BAD_INPUT) -> typer.Exit:
    """Print an error in one line; the caller raises the returned exit."""
    typer.echo(f"callboard: {printable(message)}", err=True)
    return typer.Exit(code)


def called_as() -> str:
    """The command to type for this program: where it is, if a shell finds none or another `callboard`."""
    program, on_path = Path(sys.argv[0]), shutil.which("callboard")
    if program.name != "callboard" or not program.exists():
        return "callboard"
    return "callboard" if on_path and program.samefile(on_path) else shlex.quote(str(program))


def require_engine() -> None:
    """Check that the packages that train are installed.

    Raises:
        typer.Exit: they are not; the package alone serves and shows runs.
    """
    if find_spec("torch") is None:
        raise fail("this installation cannot train: install Callboard with [worker]", 1)
