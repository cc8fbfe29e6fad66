"""`callboard agents`: trained agents for other programs, over REST."""

import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

import typer

from callboard_cli import CommandGroup, fail
from callboard_cli.connection import connect, save
from callboard_cli.runs import RunId

app = typer.Typer(
    cls=CommandGroup,
    help="Trained agents on this machine's server, or on CALLBOARD_URL's.",
    no_args_is_help=True,
)


@app.callback()
def _agents() -> None:
    """Keep `export` a subcommand."""


@app.command()
def export(
    run_id: RunId,
    checkpoint: Annotated[
        str, typer.Option(help="best, by the scores of its evaluations; latest; or the id of a checkpoint.")
    ] = "best",
    file_format: Annotated[
        Literal["safetensors", "onnx"],
        typer.Option("--format", help="Format of the weights: onnx runs without Callboard."),
    ] = "safetensors",
    licence: Annotated[
        str | None, typer.Option(help="Licence on the model card, such as mit; none by default.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Folder to write; named after the run by default.")
    ] = None,
    again: Annotated[bool, typer.Option(help="Export again if that has failed.")] = False,
) -> None:
    """Export an agent as a folder: weights, model card, settings, scores and a video."""
    folder = output or Path(f"{run_id}-agent")
    params: dict[str, Any] = {"checkpoint": checkpoint, "format": file_format}
    params |= {"licence": licence} if licence else {}
    params |= {"again": True} if again else {}
    try:
        with connect() as remote, TemporaryDirectory() as temporary:
            archive = Path(temporary) / "agent.zip"
            with remote.download(f"/runs/{run_id}/agent", params) as parts:
                save(parts, archive)
            folder.mkdir(parents=True, exist_ok=True)
            with zipfile.ZipFile(archive) as files:
                for name in files.namelist():
                    save([files.read(name)], folder / Path(name).name)
    except OSError as error:
        raise fail(f"output: {folder}: {error.strerror}; name another folder with --output") from None
    typer.echo(str(folder))
