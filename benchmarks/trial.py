"""A trial of presets: environments x presets x seeds, one run after the other, and their scores as CSV.

Each run is an ordinary run directory in the trial's folder. A trial that was stopped, by Ctrl-C or by a kill,
goes on: finished runs are skipped, an unfinished one resumes from its newest checkpoint. Learning rates are
annealed over the preset's own limit, so that a shorter trial is the beginning of a whole run.
"""

import csv
import itertools
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from backend.specs.algorithms import ALGORITHMS
from backend.specs.events import AnyEvent, EndedEvent, EvaluationEvent, ReportEvent, StartedEvent
from backend.specs.problems import quoted
from backend.specs.run import RunSpec, parse_run_spec
from workers.engine.files import replacing
from workers.engine.training.checkpoint import newest
from workers.engine.training.event_log import read_frames

COLUMNS = (
    "algorithm",
    "environment",
    "preset",
    "seed",
    "kind",
    "agent_steps",
    "frames",
    "wall_time_s",
    "mean_return",
    "episodes",
)
"""Of the CSV. `kind` is `training`, with the mean of the last 100 episodes, or an evaluation's protocol."""
TABLE = "scores.csv"
"""File in the trial's folder."""


class Cell(NamedTuple):
    """One run of a trial."""

    algorithm: str
    environment: str
    preset: str
    seed: int

    @property
    def folder(self) -> str:
        """Name of its run directory."""
        return f"{self.algorithm}-{self.environment.replace('/', '-')}-{self.preset}-{self.seed}"


class TrialError(ValueError):
    """A run that the trial needs is not possible, or failed."""


def cells(
    algorithm: str, environments: Sequence[str], presets: Sequence[str], seeds: Sequence[int]
) -> list[Cell]:
    """The runs, seed after seed, so that a trial that was stopped compares what it has."""
    return [
        Cell(algorithm, environment, preset, seed)
        for seed, environment, preset in itertools.product(seeds, environments, presets)
    ]


def spec_of(cell: Cell, config: Mapping[str, Any], stop: Mapping[str, Any]) -> RunSpec:
    """The run of a cell: its preset with this config and these limits.

    Raises:
        TrialError: there is no such preset.
        InvalidSpec: a setting or a limit is not valid.
    """
    presets = {preset.id: preset for preset in ALGORITHMS[cell.algorithm].presets}
    if cell.preset not in presets:
        raise TrialError(
            f"preset: {cell.algorithm} has no preset {quoted(cell.preset)}; use one of {', '.join(presets)}"
        )
    preset = presets[cell.preset]
    return parse_run_spec(
        {
            "algorithm": cell.algorithm,
            "environment": cell.environment,
            "seed": cell.seed,
            "config": preset.config | dict(config),
            "environment_config": preset.environment_config,
            "stop": dict(stop),
            "annealing_agent_steps": preset.stop.get("agent_steps"),
        }
    )


def run(folder: Path, specs: Mapping[Cell, RunSpec], report: Any) -> None:
    """Train what is not finished, and write the table after each run.

    Args:
        folder: folder of the trial.
        specs: specifications of the trial's runs.
        report: called with a line when a run begins and when it has ended, or with one of a finished run.

    Raises:
        TrialError: a run failed, or its directory holds another run.
    """
    for n, (cell, spec) in enumerate(specs.items()):
        where = f"{n + 1} of {len(specs)}: {cell.folder}"
        _refuse_other(folder / cell.folder, spec)
        if is_finished(folder / cell.folder):
            report(f"{where}: finished before")
            continue
        report(f"{where}: load {os.getloadavg()[0]:.1f}")
        try:
            train(folder / cell.folder, spec)
        finally:
            write_table(folder, specs)
        report(f"{where}: {_last_score(folder / cell.folder)}")


def events_of(run_folder: Path) -> list[AnyEvent]:
    """The events of all attempts; of one that another resumed, those up to its checkpoint."""
    attempts = sorted((run_folder / "attempts").glob("*"), key=lambda path: int(path.name))
    events: list[AnyEvent] = []
    for attempt in attempts:
        logged = [event for frame, _ in read_frames(attempt / "events.log") for event in frame]
        for started in (event for event in logged if isinstance(event, StartedEvent)):
            events = [event for event in events if _agent_steps(event) <= started.agent_steps]
        events += logged
    return events


def is_finished(run_folder: Path) -> bool:
    """Whether a run has reached its limit."""
    return any(isinstance(e, EndedEvent) and e.state == "finished" for e in events_of(run_folder)[-1:])


def write_table(folder: Path, specs: Mapping[Cell, RunSpec]) -> None:
    """Write the scores of all runs so far."""
    with replacing(folder / TABLE) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(COLUMNS)
        for cell in specs:
            table.writerows((*cell, *row) for row in _rows(events_of(folder / cell.folder)))


def _rows(events: Sequence[AnyEvent]) -> Iterator[tuple[Any, ...]]:
    """Each evaluation, and the training score of each report once the first episode has ended."""
    for event in events:
        if isinstance(event, EvaluationEvent):
            kind, mean, episodes = event.protocol, event.mean_return, len(event.returns)
        elif isinstance(event, ReportEvent) and event.mean_return_100 is not None:
            kind, mean, episodes = "training", event.mean_return_100, min(event.episodes, 100)
        else:
            continue
        yield kind, event.agent_steps, event.frames, round(event.wall_time_s, 1), round(mean, 3), episodes


def train(run_folder: Path, spec: RunSpec) -> None:
    """Start an engine, or resume one, and wait for its end.

    Raises:
        TrialError: it failed, or the directory holds another run.
    """
    _refuse_other(run_folder, spec)
    run_folder.mkdir(parents=True, exist_ok=True)
    with replacing(run_folder / "spec.json") as partial:
        partial.write_text(spec.model_dump_json(), "utf-8")
    attempt = 1 + max((int(path.name) for path in (run_folder / "attempts").glob("*")), default=0)
    command = [sys.executable, "-m", "workers.engine", "train", str(run_folder), "--attempt", str(attempt)]
    if (checkpoint := newest(run_folder / "checkpoints")) is not None:
        command += ["--resume", checkpoint]
    with subprocess.Popen([*command, "--parent", str(os.getpid())]) as engine:
        try:
            status = engine.wait()
        except KeyboardInterrupt:
            engine.wait()  # it has the signal too, and saves a checkpoint
            raise
    if status:
        raise TrialError(f"{run_folder.name}: the engine ended with exit status {status}; see its log there")


def _refuse_other(run_folder: Path, spec: RunSpec) -> None:
    file = run_folder / "spec.json"
    if file.exists() and file.read_text("utf-8") != spec.model_dump_json():
        raise TrialError(f"{run_folder} holds a run with other settings: choose another folder")


def _agent_steps(event: AnyEvent) -> int:
    """Agent steps of an event, the latest ones of a batch of points; 0 of one that has none."""
    steps = getattr(event, "agent_steps", 0) or 0
    return max(steps) if isinstance(steps, list) else steps


def _last_score(run_folder: Path) -> str:
    rows = list(_rows(events_of(run_folder)))
    evaluated = [row for row in rows if row[0] != "training"] or rows
    if not evaluated:
        return "no episode has ended"
    kind, agent_steps, _, wall_time_s, mean, _ = evaluated[-1]
    return f"{kind} {mean:.1f} at {agent_steps:,} agent steps, {wall_time_s:.0f} s"
