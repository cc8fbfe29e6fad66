"""`callboard sync`: send data that scripts on this machine have logged but not sent."""

from typing import Annotated

import typer


def sync(
    folder: Annotated[str | None, typer.Option(help="Folder of the spools; default: this user's.")] = None,
    url: Annotated[
        str | None, typer.Option(help="Address of the server; default: the one that each script logged to.")
    ] = None,
    run: Annotated[str | None, typer.Option(help="Only data of the run with this id.")] = None,
    discard: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Instead, delete what the server has refused of this run."),
    ] = None,
) -> None:
    """Send data that scripts have logged but not sent, after a crash or without a reachable server."""
    from callboard.commands import ask_and_discard, sync_and_report

    if discard is not None:
        raise typer.Exit(ask_and_discard(folder, discard))
    raise typer.Exit(sync_and_report(folder, url, run))
