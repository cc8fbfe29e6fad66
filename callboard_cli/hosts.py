"""`callboard hosts`: the hosts that train, over REST."""

import json

import typer
from rich.console import Console
from rich.table import Table

from callboard_cli import Json, printable
from callboard_cli.connection import connect


def hosts(as_json: Json = False) -> None:
    """List the hosts that train, what they have, and why packages of theirs are off."""
    from callboard.display import HOST_COLUMNS, host_cells, host_problems

    with connect() as remote:
        items = remote.request("GET", "/hosts")["items"]
    if as_json:
        typer.echo(json.dumps(items))
        return
    table = Table(*HOST_COLUMNS, box=None, pad_edge=False)
    for host in items:
        table.add_row(*map(printable, host_cells(host)))
    Console(markup=False, emoji=False).print(table)
    for problem in host_problems(items):
        typer.echo(printable(problem))
