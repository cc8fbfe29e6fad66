"""`callboard agents`: trained agents for other programs, and back from them."""

import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

import typer

from callboard_cli import CommandGroup, fail
from callboard_cli.connection import connect, save
from callboard_cli.import_run import record
from callboard_cli.runs import RunId

app = typer.Typer(
    cls=CommandGroup,
    help="Trained agents on this machine's server, or on CALLBOARD_URL's.",
    no_args_is_help=True,
)


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
    """Export an agent as a folder: weights, model card, settings, scores and a video; over REST."""
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


@app.command("import")
def import_agent(
    folder: Annotated[Path, typer.Argument(help="Folder with model.safetensors, as exported.")],
    name: Annotated[str | None, typer.Option(help="Name of the run.")] = None,
) -> None:
    """Record an exported agent as a run of this machine's server, and print its id.

    The run has one checkpoint, to evaluate, compare, fork or resume. Needs callboard[worker].
    """
    from backend.specs.agents import WEIGHTS
    from backend.specs.problems import InvalidSpec
    from backend.specs.run import parse_run_spec
    from workers.engine.nn.devices import prepare_torch
    from workers.engine.nn.optimizers import FlatParameters
    from workers.engine.training.exported_agents import UnusableWeightsError, read_card, read_safetensors
    from workers.engine.training.journal import Counters
    from workers.engine.training.loop import Training

    weights = folder / WEIGHTS["safetensors"]
    prepare_torch()
    try:
        described, network = read_safetensors(weights)
        card = read_card(weights)
    except UnusableWeightsError as error:
        raise fail(f"folder: {error}") from None
    changes: dict[str, Any] = {
        "name": name or f"{card.name[:180]} (imported)",
        "seed": card.seed,
        "stop": {"agent_steps": max(1, card.agent_steps)},
        "tags": ["imported"],
        "notes": f"Imported from a folder: checkpoint {card.checkpoint} of run {card.run}.",
    }
    try:
        spec = parse_run_spec(described.model_dump(mode="json") | changes)
    except InvalidSpec as error:
        raise fail(f"folder: {weights.name}: {error}") from None
    counters = Counters(card.agent_steps, card.frames, wall_time_s=card.wall_time_s)
    with TemporaryDirectory() as temporary:
        run_directory = Path(temporary)
        (run_directory / "spec.json").write_text(spec.model_dump_json(indent=2), "utf-8")
        on_cpu = spec.model_copy(update={"device": "cpu"})
        Training(on_cpu, run_directory).adopt(FlatParameters(network).theta, counters)
        typer.echo(record(run_directory, spec))
