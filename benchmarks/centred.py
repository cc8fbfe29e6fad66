"""Centred observations on Atari: a search from `START`, the time to score 18 on Pong, and other games.

The runs train one after another, and each has a row in the table as soon as it has ended. The search varies
one setting at a time, keeps the value that is the fastest, and goes on from there. In a later call runs with
a result are skipped, failed ones tried again and an unfinished one resumes; what follows from their results
is the same. On another machine the table alone is enough: an unfinished run then starts anew.

Machines differ in speed, so values are compared by agent steps. Those of `n_e`, which changes the cost of an
agent step, are compared by training time, in runs for this comparison alone; so is what A3C and GA3C try.
"""

import csv
import json
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

from backend.specs.events import AnyEvent, EvaluationEvent, ReportEvent
from backend.specs.run import RunSpec
from benchmarks import trial
from workers.engine.files import replacing

START: Mapping[str, Mapping[str, Any]] = {
    "paac": {"learning_rate": 7e-4, "schedule": 10_000_000, "n_e": 16, "max_grad_norm": 0.5},
    "a3c": {"learning_rate": 7e-4, "schedule": 10_000_000, "rmsprop_eps": 0.1},
    "ga3c": {"learning_rate": 7e-4, "schedule": 10_000_000, "n_actors": 16, "min_training_batch": 40},
}
"""The centred presets before the search. Now they have the values that it found."""
TARGET = 18.0
TABLE = "runs.csv"
"""File in the folder, with a row for each run."""
COLUMNS = (
    "part", "algorithm", "environment", "preset", "changes", "seed", "agent_steps", "wall_time_s",
    "training_mean_100", "evaluation", "training_agent_steps_to_18", "training_s_to_18",
    "evaluated_agent_steps_to_18", "evaluated_s_to_18",
)  # fmt: skip
"""The last ones, from `agent_steps` on, are of the result."""
SCHEDULE = "schedule"
"""Key in `changes`: `constant`, or over how many agent steps the learning rate falls to 0."""
SEARCHED: Mapping[str, tuple[Any, ...]] = {
    "learning_rate": (3.5e-4, 1.4e-3),
    SCHEDULE: ("constant", 2_000_000),
    "rmsprop_eps": (1e-5, 1e-3),
    "n_e": (8, 32),
    "value_coefficient": (0.25, 1.0),
    "max_grad_norm": (1.0, 5.0),
}
"""What the search varies, in this order, beside the value of `START` or of the preset."""
TIMED = "n_e"
"""The searched setting that changes the cost of an agent step."""
OTHERS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "a3c": (
        {},
        {"learning_rate": 2.8e-3},
        {"learning_rate": 2.5e-4, SCHEDULE: 2_000_000, "rmsprop_eps": 1e-10},
    ),
    "ga3c": (
        {},
        {"learning_rate": 1.4e-3, SCHEDULE: 2_000_000},
        {"learning_rate": 1.4e-3, SCHEDULE: 2_000_000, "n_actors": 32, "min_training_batch": 160},
    ),
}
"""What A3C and GA3C try. The last of each are PAAC's settings that the search found, with an `n_e` of 32; 5
decisions an update are 1/32 of PAAC's, so that A3C's learning rate is lower by the square root of that."""

_PRESETS = ("full-frame", "full-frame-centred")
_CENTRED = _PRESETS[1]
_PONG = "ALE/Pong-v5"
_GAMES = ("ALE/Breakout-v5", "ALE/Seaquest-v5", "ALE/SpaceInvaders-v5")
_PONG_STOP = {"agent_steps": 1_500_000, "score": TARGET}
_SEARCH_STOP = {"agent_steps": 600_000, "score": TARGET}
"""Long enough for the preset to learn most of the game, so that its mean separates the values."""
_TIMED_STOP = {"wall_time_s": 360.0, "score": TARGET}
_OTHERS_SEARCH_STOP = {"wall_time_s": 400.0, "score": TARGET}
_OTHERS_STOP = {"wall_time_s": 660.0, "score": TARGET}
"""A3C and GA3C should be at the target after ten minutes."""
_GAMES_STOP = {"agent_steps": 1_000_000}
_OFTEN = {"evaluation_interval_agent_steps": 200_000}
"""For the time of the first evaluation that reaches the target."""
_AT_THE_END = {"evaluation_interval_agent_steps": 0}
_NONE = {"evaluation_episodes": 0}
"""The search compares training means."""
_FAILED = "failed"


class Variant(NamedTuple):
    """One run."""

    part: str
    cell: trial.Cell
    changes: Mapping[str, Any]
    """Settings that differ from the preset's, and `SCHEDULE`."""
    evaluations: Mapping[str, Any]
    stop: Mapping[str, Any]

    @property
    def key(self) -> tuple[str, ...]:
        """Its row in the table, before the result."""
        algorithm, environment, preset, seed = self.cell
        return self.part, algorithm, environment, preset, json.dumps(self.changes), str(seed)

    @property
    def folder(self) -> Path:
        """Its run directory, below the folder of all."""
        changes = "-".join(f"{name}-{value}" for name, value in self.changes.items())
        return Path(self.part, changes or "preset", self.cell.folder)

    @property
    def spec(self) -> RunSpec:
        """Its specification."""
        start = START[self.cell.algorithm] if self.cell.preset == _CENTRED else {}
        config = {**start, **self.changes, **self.evaluations}
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
    training_agent_steps: int | None
    """Agent steps at which the training mean reached the target."""
    training_s: float | None
    """Training time at which the training mean reached the target."""
    evaluated_agent_steps: int | None
    """Agent steps of the first evaluation that reached the target."""
    evaluated_s: float | None
    """Training time of that evaluation."""


Results = Callable[[Variant], Result | None]
"""The result of a run that has ended; None if it failed."""


def variants(result_of: Results) -> Iterator[Variant]:
    """Every run, in order; each depends on the results of those before."""
    chosen = yield from search(result_of)
    yield from pong("pong", chosen)
    for algorithm, tried in OTHERS.items():
        cell = trial.Cell(algorithm, _PONG, _CENTRED, 0)
        runs = [Variant("search-others", cell, changes, _NONE, _OTHERS_SEARCH_STOP) for changes in tried]
        yield from runs
        missed = 0
        for run in pong("others", _fastest(runs, result_of, timed=True), algorithm, _OTHERS_STOP):
            if missed < 2:  # else the median misses, whatever the third does
                yield run
                result = result_of(run)
                missed += result is None or result.evaluated_s is None
    for seed in (0, 1):
        for environment in _GAMES:
            for preset in _PRESETS:
                changes = chosen if preset == _CENTRED else {}
                cell = trial.Cell("paac", environment, preset, seed)
                yield Variant("games", cell, changes, _AT_THE_END, _GAMES_STOP)


def pong(
    part: str, changes: Mapping[str, Any], algorithm: str = "paac", stop: Mapping[str, Any] = _PONG_STOP
) -> Iterator[Variant]:
    """Three seeds: their median time to the target is the result."""
    for seed in range(3):
        yield Variant(part, trial.Cell(algorithm, _PONG, _CENTRED, seed), changes, _OFTEN, stop)


def search(result_of: Results) -> Generator[Variant, None, dict[str, Any]]:
    """One run of each value of each setting; returns the settings that are the fastest."""
    chosen: dict[str, Any] = {}
    for name, values in SEARCHED.items():
        timed = name == TIMED
        tried = [chosen, *(chosen | {name: value} for value in values)]
        part = f"search-{name}" if timed else "search"
        stop = _TIMED_STOP if timed else _SEARCH_STOP
        cell = trial.Cell("paac", _PONG, _CENTRED, 0)
        runs = [Variant(part, cell, dict(changes), _NONE, stop) for changes in tried]
        yield from runs
        chosen = _fastest(runs, result_of, timed=timed)
    return chosen


def _fastest(runs: Sequence[Variant], result_of: Results, *, timed: bool) -> dict[str, Any]:
    """The changes of the run with the lowest rank."""
    return dict(min(runs, key=lambda run: rank(result_of(run), timed=timed)).changes)


def rank(result: Result | None, *, timed: bool = False) -> tuple[float, float]:
    """The lowest is the best: the fewest agent steps to the target, or the least time if `timed`, then the
    highest training mean."""
    if result is None:
        return inf, inf
    cost = result.training_s if timed else result.training_agent_steps
    mean = -inf if result.training_mean is None else result.training_mean
    return inf if cost is None else cost, -mean


def run(
    folder: Path,
    report: Callable[[str], None],
    *,
    hours: float,
    table: Path | None = None,
    plan: Callable[[Results], Iterator[Variant]] = variants,
) -> list[Variant]:
    """Train what has no result yet, and write the table after each run. Return the runs that failed.

    Args:
        folder: folder of all runs.
        report: called with lines for people.
        hours: time after which no further run starts.
        table: the table, by default `TABLE` in the folder.
        plan: the runs, given the results of those before.
    """
    started = monotonic()
    table = table or folder / TABLE
    known = _read(table)
    results: dict[tuple[str, ...], Result | None] = {}
    failed = []
    for variant in plan(lambda variant: results[variant.key]):
        key, run_folder = variant.key, folder / variant.folder
        if key in results:
            continue
        if key in known:
            results[key] = known[key]
            continue
        result = None
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
        results[key] = result
        _write(table, results | {later: known[later] for later in known if later not in results})
    return failed


def result_of_events(events: Sequence[AnyEvent]) -> Result:
    """What a run has reached, by the events of its log."""
    reports = [event for event in events if isinstance(event, ReportEvent)]
    trained = [event for event in reports if event.mean_return_100 is not None]
    evaluated = [event for event in events if isinstance(event, EvaluationEvent)]
    first_trained = next((event for event in trained if (event.mean_return_100 or 0.0) >= TARGET), None)
    first = next((event for event in evaluated if event.mean_return >= TARGET), None)
    return Result(
        agent_steps=reports[-1].agent_steps if reports else 0,
        wall_time_s=round(reports[-1].wall_time_s, 2) if reports else 0.0,
        training_mean=_rounded(trained[-1].mean_return_100) if trained else None,
        evaluation=_rounded(evaluated[-1].mean_return) if evaluated else None,
        training_agent_steps=None if first_trained is None else first_trained.agent_steps,
        training_s=None if first_trained is None else _rounded(first_trained.wall_time_s),
        evaluated_agent_steps=None if first is None else first.agent_steps,
        evaluated_s=None if first is None else _rounded(first.wall_time_s),
    )


def _rounded(value: float | None) -> float | None:
    """As in the table: what follows from a result is the same if it is read from there."""
    return None if value is None else round(value, 2)


def _read(table: Path) -> dict[tuple[str, ...], Result]:
    """The results in a table, by `Variant.key`; without those of failed runs, which are tried again."""
    if not table.exists():
        return {}
    with table.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    if tuple(header) != COLUMNS:
        raise trial.TrialError(f"{table} has other columns: choose another file")
    n_key = len(COLUMNS) - len(Result._fields)
    return {tuple(row[:n_key]): _result(row[n_key:]) for row in rows if row[n_key : n_key + 1] != [_FAILED]}


def _result(cells: Sequence[str]) -> Result:
    numbers: list[Any] = [None if cell == "" else json.loads(cell) for cell in cells]
    return Result._make(numbers)


def _write(table: Path, results: Mapping[tuple[str, ...], Result | None]) -> None:
    with replacing(table) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for key, result in results.items():
            values = (_FAILED,) if result is None else ("" if value is None else value for value in result)
            writer.writerow((*key, *values))
