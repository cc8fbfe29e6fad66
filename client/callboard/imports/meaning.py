"""What the metrics of a log mean: which one is the return, and what the steps count."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

import numpy as np

from callboard.imports.log import Column, Log, quoted
from callboard.known_tags import return_candidates, return_metric, run_unit, series_units
from callboard.limits import MAX_STEPS

_ITERATION = "training_iteration"
_TUNE = "ray/tune/"
"""Section of the event files that Ray Tune writes."""
_TUNE_ITERATION = f"{_TUNE}iterations_since_restore"
_TUNE_STEPS = f"{_TUNE}timesteps_total"
_ITERATION_STEPS = (
    "num_env_steps_sampled_lifetime",
    "timesteps_total",
    "num_env_steps_sampled",
    "num_agent_steps_sampled_lifetime",
    "agent_timesteps_total",
)
"""Metrics of RLlib that count agent steps, from the most to the least preferred one."""


def interpret(log: Log, metrics: Sequence[str] = (), step_factor: float | None = None) -> None:
    """Name metrics and steps of a log.

    Args:
        log: what was read.
        metrics: `METRIC`, the return metric, or `METRIC=NAME`, another name for a metric.
        step_factor: agent steps for each step of the log, but for metrics that count agent steps; default:
            what the names of its metrics imply.
    """
    _name_metrics(log, metrics)
    if step_factor is None:
        _count_by_metric(log)
    unit = log.step_unit or run_unit(log.series.keys())
    if step_factor is not None:
        units = series_units(log.series.keys(), unit)
        for metric, column in log.series.items():
            if units[metric] == unit and not column.counts_agent_steps:
                log.not_kept.update(_scale(column, step_factor))
        for medium in log.media.values():
            medium.agent_steps = min(round(medium.agent_steps * step_factor), MAX_STEPS)
        log.step_unit = "agent_steps"


def _name_metrics(log: Log, metrics: Sequence[str]) -> None:
    """Rename metrics and name the return metric; what the log does not allow is counted in `not_kept`."""
    returns = [given for given in metrics if "=" not in given or given in log.series]
    new_names: dict[str, str] = {}
    for given in metrics:
        if given in returns:
            continue
        metric, _, name = given.rpartition("=")
        if metric not in log.series:
            log.not_kept[f"--metric {quoted(given)}, since the log has no such metric"] += 1
        elif name in log.series and name != metric:
            log.not_kept[f"--metric {quoted(given)}, since another metric has this name"] += 1
        else:
            log.series[name] = log.series.pop(metric)
            new_names[metric] = name
    for given in returns:
        metric = new_names.get(given, given)
        if metric in log.series:
            log.return_metric = metric
        else:
            log.not_kept[f"--metric {quoted(given)}, since the log has no such metric"] += 1


def has_score(log: Log) -> bool:
    """Whether one of its metrics is the return."""
    return log.return_metric is not None or return_metric(log.series) is not None


def candidates(log: Log) -> list[str]:
    """Metrics that may be the return."""
    return return_candidates(log.series)


def _count_by_metric(log: Log) -> None:
    """Replace the iterations of RLlib, whose steps are iterations, by the agent steps that it reports."""
    section = _section_of_iterations(log)
    if section is None or log.step_unit is not None:
        return
    counted = next(
        (log.series[section + name] for name in _ITERATION_STEPS if section + name in log.series), None
    )
    if counted is None or not all(map(math.isfinite, counted.value)):
        log.step_unit = "iterations"
        return
    at, steps = np.array(counted.agent_steps), np.maximum.accumulate(np.array(counted.value))
    for column in log.series.values():
        if column.counts_agent_steps:
            continue
        converted = np.interp(np.array(column.agent_steps), at, steps)
        column.agent_steps = array("q", [int(step) for step in converted])
    for medium in log.media.values():
        medium.agent_steps = int(np.interp(medium.agent_steps, at, steps))
    log.step_unit = "agent_steps"


def _section_of_iterations(log: Log) -> str | None:
    """The section of RLlib's counters, with its last slash, if the steps of the log are its iterations."""
    for name, column in log.series.items():
        if name.rpartition("/")[2] == _ITERATION and list(column.value) == list(column.agent_steps):
            return name[: -len(_ITERATION)]
    # In event files, Tune's step is `timesteps_total`, or the iteration if that is unknown or 0.
    total = log.series.get(_TUNE_STEPS)
    knows_total = total is not None and any(value > 0 for value in total.value)
    return _TUNE if _TUNE_ITERATION in log.series and not knows_total else None


def _scale(column: Column, factor: float) -> dict[str, int]:
    """Multiply the steps; return what is not kept because its step becomes too large."""
    scaled = [round(step * factor) for step in column.agent_steps]
    kept = sum(step <= MAX_STEPS for step in scaled)
    n_lost = len(scaled) - kept
    column.agent_steps = array("q", scaled[:kept])
    del column.wall_time_s[kept:], column.value[kept:], column.frames[kept:]
    return {"points with a step below 0 or above 10**15": n_lost} if n_lost else {}
