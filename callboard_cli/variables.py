"""Environment variables that look like settings and are none.

Every command warns of them, and `callboard doctor` checks them.
"""

import os
from difflib import get_close_matches

import typer

from backend.platform.settings import Settings

MIN_SIMILARITY = 0.9
"""Ratio of difflib from which a name is a misspelt setting; others may belong to other programs."""


def read_names() -> list[str]:
    """The names of the `CALLBOARD_*` variables that are set."""
    return [name for name in os.environ if name.upper().startswith("CALLBOARD_")]


def find_misspelt() -> list[str]:
    """A sentence for each misspelt setting."""
    known = [f"CALLBOARD_{name}".upper() for name in Settings.model_fields]
    problems = []
    for name in read_names():
        similar = get_close_matches(name.upper(), known, n=1, cutoff=MIN_SIMILARITY)
        if name.upper() not in known and similar:
            problems.append(f"{name} is not a setting; did you mean {similar[0]}?")
    return problems


def warn() -> None:
    """Print a line for each misspelt setting."""
    for warning in find_misspelt():
        typer.echo(f"callboard: {warning}", err=True)
