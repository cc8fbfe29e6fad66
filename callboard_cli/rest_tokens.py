"""`callboard token list` and `callboard token revoke`, over REST."""

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Column, Table

from callboard_cli import Json, printable
from callboard_cli.connection import connect, id_check

MAX_LISTED = 10_000


def list_tokens(
    everyone: Annotated[
        bool, typer.Option("--everyone", help="Of all users; needs a token with the role admin.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List your tokens on this machine's server, or on CALLBOARD_URL's: those of the token's user."""
    from callboard.display import TOKEN_COLUMNS, token_cells

    with connect() as remote:
        tokens = list(remote.items("/tokens", {"everyone": everyone}, MAX_LISTED))
    if as_json:
        typer.echo(json.dumps(tokens))
        return
    whole_id = Column("id", min_width=26, no_wrap=True)  # as `revoke` needs it
    table = Table(whole_id, *TOKEN_COLUMNS[1:], box=None, pad_edge=False)
    for token in tokens:
        table.add_row(*map(printable, token_cells(token)))
    Console(markup=False, emoji=False).print(table)


def revoke(
    token_ids: Annotated[
        list[str],
        typer.Argument(
            help="Ids of tokens, which `callboard token list` shows.", callback=id_check("token", "token")
        ),
    ],
) -> None:
    """Revoke tokens, and those that were created with them."""
    with connect() as remote:
        for token_id in token_ids:
            remote.request("DELETE", f"/tokens/{token_id}")
            typer.echo(token_id)
