"""`callboard train` and `callboard evaluate`: the engine in this terminal, without a server."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from ulid import ULID

from backend.platform.settings import Settings
from backend.specs import machine_faults
from backend.specs.algorithms import ALGORITHMS
from backend.specs.extras import PACKAGES, install_command, installed
from backend.specs.problems import quoted
from backend.specs.protocols import UnsupportedProtocolError, starts_protocol
from backend.specs.start_sets import STARTS_FILE
from callboard_cli import fail, require_engine, score_text
from callboard_cli.run_directory import load_spec, occupying
from callboard_cli.run_request import (
    AgentSteps,
    AlgorithmId,
    AnnealingChoice,
    Assignments,
    Device,
    EnvironmentAssignments,
    EnvironmentId,
    PresetId,
    Score,
    WallTime,
    run_request,
)

if TYPE_CHECKING:
    from backend.specs.annealing import Annealing
    from backend.specs.events import EndedEvent, EvaluationEvent, ReportEvent
    from backend.specs.run import RunSpec

_REPEATABLE = ", ".join(a.id for a in ALGORITHMS.values() if a.reproducibility != "none")
SEED_HELP = (
    f"Seed of all random numbers. On the same processor, {_REPEATABLE} reproduce a run exactly; for "
    "other algorithms, results also depend on the timing of processes."
)


def _spec(request: dict[str, Any]) -> "RunSpec":
    from backend.specs.environments.custom import CustomEnvironmentsError
    from backend.specs.fields import ENVIRONMENT_PREFIX
    from backend.specs.problems import InvalidSpec
    from backend.specs.run import parse_run_spec

    try:
        if request["environment"].startswith(ENVIRONMENT_PREFIX):
            request["custom"] = _description(request["environment"])
        spec = parse_run_spec(request)
        _require_package(spec)
        return spec
    except (InvalidSpec, CustomEnvironmentsError) as error:
        raise fail(str(error)) from None


def _require_package(spec: "RunSpec") -> None:
    """Check that the distribution of the algorithm can be loaded, if it is one's own.

    Raises:
        typer.Exit: it cannot.
    """
    if spec.package is not None:
        from workers.host_facts import refused_packages

        if (reason := refused_packages().get(spec.package)) is not None:
            raise fail(f"algorithm: {spec.package}: {reason}", 1)


def _description(environment: str) -> dict[str, Any]:
    """The public description of a custom environment of this machine."""
    from backend.specs.environments.installed import absence, installed_environments
    from workers.host_facts import refused_environments

    file = Settings().environments_file
    installed = installed_environments(file)
    if environment not in installed.values:
        raise fail(f"environment: {absence(environment, file, installed)}")
    if (reason := refused_environments(file, [environment]).get(environment)) is not None:
        raise fail(f"environment: {environment}: {reason.removeprefix(f'{environment}: ')}")
    return installed.values[environment].describe().model_dump(mode="json")


def train(
    command: typer.Context,
    algorithm: AlgorithmId,
    environment: EnvironmentId,
    agent_steps: AgentSteps = None,
    wall_time_s: WallTime = None,
    score: Score = None,
    preset: PresetId = None,
    setting: Assignments = None,
    environment_setting: EnvironmentAssignments = None,
    seed: Annotated[int, typer.Option(help=SEED_HELP)] = 0,
    device: Device = "auto",
    run_directory: Annotated[
        Path | None, typer.Option(help="Directory of the run; an existing run there is resumed.")
    ] = None,
    annealing: AnnealingChoice = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per report and evaluation, then a summary.")
    ] = False,
) -> None:
    """Train in this terminal, without a server. Ctrl-C saves a checkpoint and stops."""
    require_engine()
    request = run_request(
        algorithm,
        environment,
        preset=preset,
        stop={"agent_steps": agent_steps, "wall_time_s": wall_time_s, "score": score},
        settings=setting or [],
        environment_settings=environment_setting or [],
    )
    spec = _spec(request | {"seed": seed, "device": device})
    if starts_protocol(spec.evaluation_protocol) is not None:
        raise fail(
            "config.evaluation_protocol: start sets belong to a server: train there, with `callboard runs "
            "start`, or choose another protocol"
        )
    _check_extras(spec)
    _check_device(spec)
    _check_memory(spec)
    folder = run_directory or Settings().runs_dir / str(ULID())
    command.with_resource(occupying(folder))
    attempt, resume, spec = _prepare(folder, spec, annealing)

    from callboard_cli.training_terminal import TrainingTerminal
    from workers.engine.nn.devices import prepare_torch
    from workers.engine.processes.child import ChildDiedError
    from workers.engine.training.checkpoint import DamagedCheckpointError
    from workers.engine.training.control import Control
    from workers.engine.training.loop import Training

    prepare_torch()
    control = Control()
    control.handle_signals()
    with TrainingTerminal(spec, as_json=as_json) as terminal:
        training = Training(
            spec, folder, attempt=attempt, resume=resume, control=control, on_event=terminal.on_event
        )
        try:
            ended = training.run()
        except ChildDiedError as error:
            typer.echo(
                f"callboard: {error}; resume from the last checkpoint with --run-directory {folder}", err=True
            )
            raise typer.Exit(1) from None
        except DamagedCheckpointError as error:
            raise fail(f"checkpoint: {error}; start again to resume from an older one", 1) from None
        except Exception as error:
            if (fault := machine_faults.errno_of(error)) is None:
                raise
            problem = machine_faults.describe(fault)
            raise fail(
                f"run_directory: {problem}; once that is repaired, resume with --run-directory {folder}", 1
            ) from None
    summary = _summary(ended, terminal.last, terminal.evaluation, folder)
    if as_json:
        typer.echo(json.dumps(summary))
        if ended.state == "failed":
            typer.echo(ended.traceback or ended.reason, err=True)
    elif ended.state == "failed":
        typer.echo(f"failed: {ended.reason}\n{ended.traceback}", err=True)
    else:
        mean = summary["mean_return_100"]
        scored = "" if mean is None else f"; mean return of the last 100 episodes {score_text(mean)}"
        typer.echo(f"{ended.state}: {ended.reason}{scored}; saved in {folder}", err=True)
    if ended.state == "failed":
        raise typer.Exit(1)


def _check_extras(spec: "RunSpec") -> None:
    needed = {"algorithm": ALGORITHMS[spec.algorithm].extra, "environment": spec.catalogue_environment.extra}
    for field, extra in needed.items():
        if extra is not None and not installed(extra):
            raise fail(f"{field}: {getattr(spec, field)} needs {PACKAGES[extra]}: {install_command(extra)}")


def _check_device(spec: "RunSpec") -> None:
    from workers.engine.nn.devices import NoSuchDeviceError, resolve_device

    try:
        resolve_device(spec.device)
    except NoSuchDeviceError as error:
        raise fail(str(error)) from None


def _check_memory(spec: "RunSpec") -> None:
    from backend.specs.fit import memory_problem
    from workers.host_facts import memory_bytes

    if (problem := memory_problem(spec, memory_bytes())) is not None:
        raise fail(f"config: {problem}")


def _prepare(
    folder: Path, spec: "RunSpec", annealing: "Annealing | None"
) -> "tuple[int, str | None, RunSpec]":
    """Create or reuse a run directory.

    Returns:
        The next attempt's number, the checkpoint to resume from, and the spec.
    """
    from workers.engine.files import replacing
    from workers.engine.training.checkpoint import newest

    spec_file = folder / "spec.json"
    checkpoint = newest(folder / "checkpoints")
    if spec_file.exists():
        existing = load_spec(folder)
        limits = {"stop", "annealing_agent_steps"}
        if differing := _differing(existing.model_dump(exclude=limits), spec.model_dump(exclude=limits)):
            raise fail(
                f"run_directory: {folder} contains another run: {'; '.join(differing)}: choose another "
                "directory"
            )
        spec = _resume(existing, spec, annealing, checkpoint)
    elif annealing is not None:
        raise fail("annealing: applies only when a run is resumed; this run is new")
    try:
        with replacing(spec_file) as partial:
            partial.write_text(spec.model_dump_json(), "utf-8")
    except OSError as error:
        raise fail(f"run_directory: {folder} cannot be written: {error.strerror}") from None
    attempts = [int(p.name) for p in (folder / "attempts").glob("*") if p.name.isdigit()]
    return max(attempts, default=0) + 1, checkpoint, spec


def _differing(previous: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """What differs between two specs, with both values; only algorithm or environment, if that differs."""
    for name in ("algorithm", "environment"):
        if previous[name] != other[name]:
            return [_difference(name, previous[name], other[name])]
    differences = []
    for name, was in previous.items():
        now = other[name]
        if isinstance(was, dict) and isinstance(now, dict):
            differences += [
                _difference(f"{name}.{key}", was[key], now.get(key))
                for key in was
                if was[key] != now.get(key)
            ]
        elif was != now:
            differences.append(_difference(name, was, now))
    return differences


def _difference(path: str, was: Any, now: Any) -> str:
    return f"{path} is {quoted(was)}, not {quoted(now)}"


def _resume(
    existing: "RunSpec", spec: "RunSpec", annealing: "Annealing | None", checkpoint: str | None
) -> "RunSpec":
    """The spec with the limits of the resume; prints what they do to an annealed learning rate."""
    from backend.specs.annealing import annealing_notice, with_annealing
    from backend.specs.problems import InvalidSpec
    from workers.engine.training.checkpoint import agent_steps_of

    try:
        resumed = with_annealing(existing, spec, annealing)
    except InvalidSpec as error:
        raise fail(str(error)) from None
    if checkpoint is not None:
        done, before, limit = agent_steps_of(checkpoint), existing.stop.agent_steps, spec.stop.agent_steps
        if limit is not None and limit <= done and limit != before:
            raise fail(f"stop.agent_steps: the run has completed {done:,} already: set a higher limit")
        notice = annealing_notice(existing, resumed, agent_steps_of(checkpoint))
        if notice is not None:
            typer.echo(f"callboard: {notice}; see --annealing", err=True)
    return resumed


def _summary(
    ended: "EndedEvent", last: "ReportEvent | None", evaluation: "EvaluationEvent | None", folder: Path
) -> dict[str, Any]:
    """The last line of JSON; null for what does not exist."""
    summary: dict[str, Any] = {
        "type": "summary",
        "state": ended.state,
        "reason": ended.reason,
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
        summary |= {k: v for k, v in last.model_dump(exclude={"type"}).items() if k in summary}
        summary |= {"agent_steps_per_s": rate}
    scored = None if evaluation is None else evaluation.model_dump(exclude={"type"})
    return summary | {"evaluation": scored, "run_directory": str(folder)}


def evaluate(
    run_directory: Annotated[Path, typer.Argument(help="Directory of a run.")],
    checkpoint: Annotated[
        str | None, typer.Option(help="File name; the latest checkpoint by default.")
    ] = None,
    protocol: Annotated[
        str | None,
        typer.Option(help="How episodes start and end, such as noop_starts; the run's by default."),
    ] = None,
    episodes: Annotated[int, typer.Option(min=1, max=1000, help="Number of episodes.")] = 30,
    seed: Annotated[
        int, typer.Option(min=0, max=2**31 - 1, help="Seed of the starts and of the agent's actions.")
    ] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Evaluate a checkpoint from fresh starts, as the papers do."""
    require_engine()
    spec = load_spec(run_directory)
    protocol = protocol or spec.evaluation_protocol
    try:
        config = spec.evaluation_config(protocol).model_dump(mode="json")
    except UnsupportedProtocolError as error:
        raise fail(f"protocol: {error}") from None
    _check_extras(spec)
    starts = None if starts_protocol(protocol) is None else run_directory / STARTS_FILE
    if starts is not None and (protocol != spec.evaluation_protocol or not starts.is_file()):
        raise fail(
            f"protocol: {run_directory} does not have the states of {protocol}: evaluate on the server that "
            "has the start set"
        )
    from backend.specs.environments.custom import CustomEnvironmentsError
    from workers.engine.training.checkpoint import DamagedCheckpointError, newest
    from workers.engine.training.evaluation import evaluate as score
    from workers.engine.training.evaluation import load_policy

    name = checkpoint or newest(run_directory / "checkpoints")
    if name is None or not (run_directory / "checkpoints" / Path(name).name).is_file():
        stored = ", ".join(sorted(path.name for path in (run_directory / "checkpoints").glob("*.pt")))
        asked = f" {quoted(checkpoint)}" if checkpoint else ""
        raise fail(f"checkpoint: {run_directory} contains no checkpoint{asked}; it has {stored or 'none'}")
    try:
        policy = load_policy(spec, run_directory / "checkpoints" / Path(name).name, seed)
    except CustomEnvironmentsError as error:
        raise fail(f"environment: {error}") from None
    except (DamagedCheckpointError, ValueError) as error:
        raise fail(f"checkpoint: {error}") from None
    result = score(policy, spec, episodes=episodes, seed=seed, processes=2, protocol=protocol, starts=starts)
    if as_json:
        report = {
            "checkpoint": name,
            "protocol": result.protocol,
            "max_frames": config.get("max_frames"),
            "environment_config": config,
            "seed": seed,
            "mean_return": result.mean_return,
            "returns": result.returns,
            "lengths_frames": result.lengths_frames,
            "n_cut": result.n_cut,
            "seeds": result.seeds,
        }
        typer.echo(json.dumps(report))
    else:
        played = f"{episodes} {result.protocol} episode{'' if episodes == 1 else 's'}"
        sys.stdout.write(
            f"{score_text(result.mean_return)} mean return of {played} ({name}){result.cut_note}\n"
        )
