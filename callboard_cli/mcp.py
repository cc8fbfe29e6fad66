"""`callboard mcp`: assistants read runs, and start them, by the Model Context Protocol."""

from typing import Annotated

import typer


def mcp(
    allow_write: Annotated[
        bool, typer.Option("--allow-write", help="Also let them start and stop runs, and add notes.")
    ] = False,
) -> None:
    """Let an assistant read runs, over standard input and output, with the rights of CALLBOARD_TOKEN."""
    from callboard.commands import serve_mcp

    raise typer.Exit(serve_mcp(allow_write=allow_write))
