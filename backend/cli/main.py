"""The `callboard` command: the one place that composes web and workers."""

import typer
from pydantic import ValidationError

from backend.cli import bench, database, doctor, keys, password, runs, serve, train
from backend.cli.terminal import fail
from backend.settings import Settings

app = typer.Typer(
    name="callboard",
    help="Launch, watch, compare and replay parallel deep reinforcement learning.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("up")(serve.up)
app.command("web")(serve.web)
app.command("worker")(serve.worker)
app.command("login-link")(serve.login_link)
app.command("password")(password.password)
app.command("doctor")(doctor.doctor)
app.command("train")(train.train)
app.command("evaluate")(train.evaluate)
app.add_typer(database.app, name="db")
app.add_typer(bench.app, name="bench")
app.add_typer(runs.app, name="runs")
app.add_typer(keys.app, name="token")


@app.callback()
def _check_settings() -> None:
    """Tell of wrong settings in one line, whatever the command."""
    try:
        Settings()
    except ValidationError as error:
        told = [
            f"CALLBOARD_{fault['loc'][0]}".upper() + ": " + fault["msg"].removeprefix("Value error, ")
            for fault in error.errors()
        ]
        raise fail("; ".join(told)) from None


if __name__ == "__main__":
    app()
