"""How commands speak."""

import typer

BAD_INPUT = 2
"""Exit code for what the caller can mend."""


def fail(message: str, code: int = BAD_INPUT) -> typer.Exit:
    """Say what is wrong in one line; raise what this returns."""
    typer.echo(f"callboard: {message}", err=True)
    return typer.Exit(code)
