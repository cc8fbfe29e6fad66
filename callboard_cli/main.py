"""The `callboard` command: the one place that composes web and workers."""

from typing import Annotated

import typer
from pydantic import ValidationError
from pydantic_settings import SettingsError

from backend import __version__
from backend.platform.settings import Settings
from backend.specs.problems import message_of
from callboard_cli import (
    CommandGroup,
    agents,
    backup,
    database,
    doctor,
    experiments,
    fail,
    figure,
    hosts,
    imports,
    mcp,
    rest_tokens,
    runs,
    serve,
    start_sets,
    studies,
    sweeps,
    sync,
    tokens,
    train,
    variables,
)
from callboard_cli.home import make_private

app = typer.Typer(
    cls=CommandGroup,
    name="callboard",
    help="Launch, watch, compare and replay parallel deep reinforcement learning.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("up")(serve.up)
app.command("web")(serve.web)
app.command("worker")(serve.worker)
app.command("login-link")(serve.login_link)
app.command("password")(tokens.password)
app.command("doctor")(doctor.doctor)
app.command("backup")(backup.backup)
app.command("restore")(backup.restore)
app.command("train")(train.train)
app.command("evaluate")(train.evaluate)
app.command("sync")(sync.sync)
app.command("mcp")(mcp.mcp)
app.command("figure")(figure.figure)
app.command("hosts")(hosts.hosts)
app.add_typer(database.app, name="db")
app.add_typer(runs.app, name="runs")
app.add_typer(agents.app, name="agents")
app.add_typer(experiments.app, name="experiments")
app.add_typer(sweeps.app, name="sweeps")
app.add_typer(studies.app, name="studies")
app.add_typer(start_sets.app, name="start-sets")
app.add_typer(imports.app, name="import")
app.add_typer(tokens.app, name="token")
tokens.app.command("list")(rest_tokens.list_tokens)
tokens.app.command("revoke")(rest_tokens.revoke)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"callboard {__version__}")
        raise typer.Exit


@app.callback()
def _prepare(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """Before any command: report invalid settings in one line, and keep the installation's files private."""
    try:
        settings = Settings()
    except ValidationError as error:
        # Values are not quoted: some hold passwords.
        errors = [
            f"CALLBOARD_{fault['loc'][0]}".upper() + ": " + message_of(fault, secret=True)
            for fault in error.errors()
        ]
        raise fail("; ".join(errors)) from None
    except SettingsError as error:
        # Its text names the field in quotes, and nothing else that a user knows.
        name = "CALLBOARD_" + str(error).split('"')[1].upper()
        raise fail(f'{name}: is not JSON; write a list as ["a", "b"] and a mapping as {{"a": "b"}}') from None
    if context.invoked_subcommand != "doctor":  # one of its checks
        variables.warn()
    make_private(settings.home_dir)


if __name__ == "__main__":
    app()
