"""Centred observations on Atari: the time to 18 on Pong, a search around the preset, and three other games.

The runs train one after another, and each has a row in the table as soon as it has ended. The search varies
one setting at a time, keeps the value that is the fastest, and goes on from there. In a later call with the
same folder finished runs are skipped and an unfinished one resumes; what follows from their results is the
same.
"""

import csv
import json
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

from backend.specs.events import AnyEvent, EvaluationEvent, ReportEvent
from backend.specs.run import RunSpec
from benchmarks import trial
from workers.engine.files import replacing

TARGET = 18.0
TABLE = "runs.csv"
"""File in the folder, with a row for each run."""
COLUMNS = (
    "part", "algorithm", "environment", "preset", "changes", "seed", "agent_steps", "wall_time_s",
    "training_mean_100", "evaluation", "training_s_to_18", "evaluated_agent_steps_to_18", "evaluated_s_to_18",
)  # fmt: skip
SCHEDULE = "schedule"
"""Among the settings: `constant`, or over how many agent steps the learning rate falls to 0."""
SEARCHED: Mapping[str, tuple[Any, ...]] = {
    "learning_rate": (3.5e-4, 1.4e-3),
    SCHEDULE: ("constant", 2_000_000),
    "rmsprop_eps": (1e-5, 1e-3),
    "n_e": (8, 32),
    "value_coefficient": (0.25, 1.0),
    "max_grad_norm": (1.0, 5.0),
}
"""What the search varies, in this order, beside the preset's value."""

_PRESETS = ("full-frame", "full-frame-centred")
_CENTRED = _PRESETS[1]
_PONG = "ALE/Pong-v5"
_GAMES = ("ALE/Breakout-v5", "ALE/Seaquest-v5", "ALE/SpaceInvaders-v5")
_PONG_STOP = {"agent_steps": 1_500_000, "score": TARGET}
_SEARCH_STOP = {"agent_steps": 1_000_000, "score": TARGET}
_GAMES_STOP = {"agent_steps": 1_000_000}
_OFTEN = {"evaluation_interval_agent_steps": 100_000}
"""For the time of the first evaluation that reaches the target."""
_AT_THE_END = {"evaluation_interval_agent_steps": 0}


class Variant(NamedTuple):
    """One run."""

    part: str
    cell: trial.Cell
    changes: Mapping[str, Any]
    """Settings that differ from the preset's, and `SCHEDULE`."""
    evaluations: Mapping[str, Any]
    stop: Mapping[str, Any]

    @property
    def folder(self) -> Path:
        """Its run directory, below the folder of all."""
        changes = "-".join(f"{name}-{value}" for name, value in self.changes.items())
        return Path(self.part, changes or "preset", self.cell.folder)

    @property
    def spec(self) -> RunSpec:
        """Its specification."""
        config = dict(self.changes) | dict(self.evaluations)
        schedule = config.pop(SCHEDULE, None)
        if schedule == "constant":
            config["learning_rate_schedule"] = schedule
        spec = trial.spec_of(self.cell, config, self.stop)
        if isinstance(schedule, int):
            spec = spec.model_copy(update={"annealing_agent_steps": schedule})
        return spec


class Result(NamedTuple):
    """What a run has reached."""

    agent_steps: int
    wall_time_s: float
    training_mean: float | None
    """Mean return of the last 100 training episodes."""
    evaluation: float | None
    """Mean return of the last evaluation."""
    training_s: float | None
    """Training time at which the training mean reached the target."""
    evaluated_agent_steps: int | None
    """Agent steps of the first evaluation that reached the target."""
    evaluated_s: float | None
    """Training time of that evaluation."""


Results = Callable[[Variant], Result | None]
"""The result of a run that has ended; None if it failed."""


def variants(result_of: Results) -> Iterator[Variant]:
    """Every run, in order. Those after the search depend on the results of those before."""
    yield from pong("pong", {})
    chosen = yield from search(result_of)
    if chosen:
        yield from pong("best", chosen)
    for seed in (0, 1):
        for environment in _GAMES:
            for preset in _PRESETS:
                changes = chosen if preset == _CENTRED else {}
                cell = trial.Cell("paac", environment, preset, seed)
                yield Variant("games", cell, changes, _AT_THE_END, _GAMES_STOP)
    for algorithm in ("a3c", "ga3c"):
        yield from pong("others", {}, algorithm)


def pong(part: str, changes: Mapping[str, Any], algorithm: str = "paac") -> Iterator[Variant]:
    """The three runs whose median time is the aim."""
    for seed in range(3):
        yield Variant(part, trial.Cell(algorithm, _PONG, _CENTRED, seed), changes, _OFTEN, _PONG_STOP)


def search(result_of: Results) -> Generator[Variant, None, dict[str, Any]]:
    """Two runs of each value of each setting; returns the settings that are the fastest."""
    chosen: dict[str, Any] = {}
    for name, values in SEARCHED.items():
        tried = [chosen, *(chosen | {name: value} for value in values)]
        runs = {at: list(_searched(changes)) for at, changes in enumerate(tried)}
        for variants_of_value in runs.values():
            yield from variants_of_value
        chosen = tried[min(runs, key=lambda at: rank([result_of(variant) for variant in runs[at]]))]
    return chosen


def _searched(changes: Mapping[str, Any]) -> Iterator[Variant]:
    for seed in (0, 1):
        cell = trial.Cell("paac", _PONG, _CENTRED, seed)
        yield Variant("search", cell, dict(changes), _AT_THE_END, _SEARCH_STOP)


def rank(results: Sequence[Result | None]) -> tuple[float, ...]:
    """The lowest is the best: the most runs that reach the target, then the least time to it, then the
    highest training mean."""
    n_missed = sum(result is None or result.training_s is None for result in results)
    times = [result.training_s for result in results if result is not None and result.training_s is not None]
    means = [
        result.training_mean for result in results if result is not None and result.training_mean is not None
    ]
    return n_missed, sum(times), -sum(means)


def run(
    folder: Path,
    report: Callable[[str], None],
    *,
    hours: float,
    plan: Callable[[Results], Iterator[Variant]] = variants,
) -> list[Variant]:
    """Train what has not finished, and write the table after each run. Return the runs that failed.

    Args:
        folder: folder of all runs.
        report: called with lines for people.
        hours: time after which no further run starts.
        plan: the runs, given the results of those before.
    """
    started = monotonic()
    results: dict[Path, tuple[Variant, Result | None]] = {}
    failed = []
    for variant in plan(lambda variant: results[variant.folder][1]):
        if variant.folder in results:
            continue
        run_folder, result = folder / variant.folder, None
        if trial.is_finished(run_folder):
            result = result_of_events(trial.events_of(run_folder))
        elif monotonic() - started > 3600 * hours:
            report(f"{hours:g} hours have passed: the same command trains the rest")
            break
        else:
            report(f"{variant.folder}: load {os.getloadavg()[0]:.1f}")
            try:
                trial.train(run_folder, variant.spec)
                result = result_of_events(trial.events_of(run_folder))
                report(f"{variant.folder}: {result}")
            except trial.TrialError as error:
                report(str(error))
                failed.append(variant)
        results[variant.folder] = variant, result
        _write(folder, results.values())
    return failed


def result_of_events(events: Sequence[AnyEvent]) -> Result:
    """What a run has reached, by the events of its log."""
    reports = [event for event in events if isinstance(event, ReportEvent)]
    trained = [event for event in reports if event.mean_return_100 is not None]
    evaluated = [event for event in events if isinstance(event, EvaluationEvent)]
    first = next((event for event in evaluated if event.mean_return >= TARGET), None)
    return Result(
        agent_steps=reports[-1].agent_steps if reports else 0,
        wall_time_s=reports[-1].wall_time_s if reports else 0.0,
        training_mean=trained[-1].mean_return_100 if trained else None,
        evaluation=evaluated[-1].mean_return if evaluated else None,
        training_s=next(
            (event.wall_time_s for event in trained if (event.mean_return_100 or 0.0) >= TARGET), None
        ),
        evaluated_agent_steps=None if first is None else first.agent_steps,
        evaluated_s=None if first is None else first.wall_time_s,
    )


def _write(folder: Path, results: Iterable[tuple[Variant, Result | None]]) -> None:
    with replacing(folder / TABLE) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(COLUMNS)
        for variant, result in results:
            algorithm, environment, preset, seed = variant.cell
            values = ("failed",) if result is None else (_rounded(value) for value in result)
            table.writerow(
                (
                    variant.part, algorithm, environment, preset, json.dumps(variant.changes), seed, *values
                )
            )  # fmt: skip


def _rounded(value: float | None) -> float | str:
    return "" if value is None else round(value, 2)
