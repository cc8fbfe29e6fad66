"""The `callboard` command. Commands import slow packages inside functions, to start quickly."""

import typer

BAD_INPUT = 2
"""Exit code for invalid input."""


def fail(message: str, code: int = BAD_INPUT) -> typer.Exit:
    """Print an error in one line; the caller raises the returned exit."""
    typer.echo(f"callboard: {message}", err=True)
    return typer.Exit(code)
