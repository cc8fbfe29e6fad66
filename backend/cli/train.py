"""`callboard train` and `callboard evaluate`: the engine in this terminal, with no server."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from ulid import ULID

from backend.cli.asked_run import (
    AgentSteps,
    AlgorithmId,
    Assignments,
    Device,
    EnvironmentAssignments,
    EnvironmentId,
    PresetId,
    Score,
    WallTime,
    asked_run,
)
from backend.cli.terminal import fail
from backend.settings import Settings

if TYPE_CHECKING:
    from backend.specs.events import Ended, Report
    from backend.specs.run import RunSpec


def _spec(request: dict[str, Any]) -> "RunSpec":
    from backend.specs.environments.own import PREFIX, OwnWorldsError, read_own
    from backend.specs.run import InvalidSpec, parse_run_spec

    file = Settings().environments_file
    try:
        if file is not None and request["environment"].startswith(PREFIX):
            entry = read_own(file).get(request["environment"])
            request["own"] = None if entry is None else entry.described().model_dump(mode="json")
        return parse_run_spec(request)
    except (InvalidSpec, OwnWorldsError) as error:
        raise fail(str(error)) from None


def train(
    algorithm: AlgorithmId,
    environment: EnvironmentId,
    agent_steps: AgentSteps = None,
    wall_time_s: WallTime = None,
    score: Score = None,
    preset: PresetId = None,
    setting: Assignments = None,
    environment_setting: EnvironmentAssignments = None,
    seed: Annotated[int, typer.Option(help="Seeds everything that is random.")] = 0,
    device: Device = "auto",
    run_directory: Annotated[
        Path | None, typer.Option(help="Where the run is kept; resumes when it holds one.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object a report, then a summary.")
    ] = False,
) -> None:
    """Train in this terminal, with no server. Ctrl-C stops and keeps a checkpoint."""
    request = asked_run(
        algorithm,
        environment,
        preset=preset,
        stop={"agent_steps": agent_steps, "wall_time_s": wall_time_s, "score": score},
        settings=setting or [],
        environment_settings=environment_setting or [],
    )
    spec = _spec(request | {"seed": seed, "device": device})
    _check_device(spec)
    folder = run_directory or Settings().runs_dir / str(ULID())
    attempt, resume = _prepare(folder, spec)

    from backend.cli.training_terminal import TrainingTerminal
    from workers.engine.control import Control
    from workers.engine.devices import prepare_torch
    from workers.engine.envs.vector import WorldDiedError
    from workers.engine.training import Training

    prepare_torch()
    control = Control()
    control.handle_signals()
    with TrainingTerminal(spec, as_json=as_json) as terminal:
        training = Training(
            spec, folder, attempt=attempt, resume=resume, control=control, on_event=terminal.on_event
        )
        try:
            ended = training.run()
        except WorldDiedError as error:
            typer.echo(f"callboard: {error}; the same command goes on from the last checkpoint", err=True)
            raise typer.Exit(1) from None
    summary = _summary(ended, terminal.last, folder)
    if as_json:
        typer.echo(json.dumps(summary))
    elif ended.state == "failed":
        typer.echo(f"failed: {ended.reason}\n{ended.traceback}", err=True)
    else:
        typer.echo(f"{ended.state}: {ended.reason}; kept in {folder}", err=True)
    if ended.state == "failed":
        raise typer.Exit(1)


def _check_device(spec: "RunSpec") -> None:
    from workers.engine.devices import NoSuchDeviceError, resolve_device

    try:
        resolve_device(spec.device)
    except NoSuchDeviceError as error:
        raise fail(str(error)) from None


def _kept_spec(folder: Path) -> "RunSpec":
    from backend.specs.run import parse_run_spec

    try:
        return parse_run_spec(json.loads((folder / "spec.json").read_text("utf-8")))
    except (OSError, ValueError) as error:
        raise fail(f"run_directory: {folder} holds no readable spec.json: {error}") from None


def _prepare(folder: Path, spec: "RunSpec") -> tuple[int, str | None]:
    """Make or enter a run directory; the number of the next attempt and the checkpoint it goes on from."""
    from workers.engine.checkpoint import newest
    from workers.engine.files import replacing

    kept = folder / "spec.json"
    if kept.exists():
        before = _kept_spec(folder)
        if before.model_dump(exclude={"stop"}) != spec.model_dump(exclude={"stop"}):
            raise fail(f"run_directory: {folder} holds a run with other settings; name another directory")
    try:
        with replacing(kept) as partial:
            partial.write_text(spec.model_dump_json(), "utf-8")
    except OSError as error:
        raise fail(f"run_directory: {error}") from None
    attempts = [int(p.name) for p in (folder / "attempts").glob("*") if p.name.isdigit()]
    return max(attempts, default=0) + 1, newest(folder / "checkpoints")


def _summary(ended: "Ended", last: "Report | None", folder: Path) -> dict[str, Any]:
    summary: dict[str, Any] = {
        "state": ended.state,
        "agent_steps": 0,
        "frames": 0,
        "updates": 0,
        "wall_time_s": 0.0,
        "agent_steps_per_s": None,
        "episodes": 0,
        "mean_return_100": None,
        "best_return": None,
    }
    if last is not None:
        rate = last.agent_steps / last.wall_time_s if last.wall_time_s else None
        summary |= {k: v for k, v in last.model_dump().items() if k in summary}
        summary |= {"agent_steps_per_s": rate}
    return summary | {"run_directory": str(folder)}


def evaluate(
    run_directory: Annotated[Path, typer.Argument(help="Directory of a run.")],
    checkpoint: Annotated[str | None, typer.Option(help="File name; the newest by default.")] = None,
    episodes: Annotated[int, typer.Option(min=1, max=1000, help="Episodes to play.")] = 30,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Seeds the starts.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Score a checkpoint from fresh starts, as the papers do."""
    spec = _kept_spec(run_directory)
    from workers.engine.checkpoint import DamagedCheckpointError, newest
    from workers.engine.evaluation import evaluate as score
    from workers.engine.evaluation import load_policy

    name = checkpoint or newest(run_directory / "checkpoints")
    if name is None or not (run_directory / "checkpoints" / Path(name).name).is_file():
        raise fail(f"checkpoint: {run_directory} holds no checkpoint {name or ''}".rstrip())
    try:
        policy = load_policy(spec, run_directory / "checkpoints" / Path(name).name, seed)
    except (DamagedCheckpointError, ValueError) as error:
        raise fail(f"checkpoint: {error}") from None
    result = score(policy, spec, episodes=episodes, seed=seed, processes=2)
    if as_json:
        report = {
            "checkpoint": name,
            "protocol": result.protocol,
            "mean_return": result.mean_return,
            "returns": result.returns,
        }
        typer.echo(json.dumps(report))
    else:
        sys.stdout.write(
            f"{result.mean_return:.2f} mean return of {episodes} {result.protocol} episodes ({name})\n"
        )
