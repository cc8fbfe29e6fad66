"""What is made of samples of a learner: histograms, also of the returns of episodes, collected between two
events, and how well its values explain the returns."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.specs.events import HistogramEvent
from backend.specs.metrics import EXPLAINED_VARIANCE
from workers.engine.training.journal import Journal

MAX_BINS = 64
"""Bins of a histogram."""
GROWTH = 1 / 50
"""An event comes after this fraction of the training time so far: a run of ten days has some 540 of each
metric, of the 10,000 that are kept of a run."""
MAX_VALUES = 50_000
"""Values of a metric that are collected; of more, every second one is left out."""


class Histograms:
    """Collects values of metrics, and emits their histograms.

    Args:
        journal: where the events go, and what has the counters.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._values: dict[str, list[NDArray[Any]]] = {}
        self._due_s = 0.0
        """Training time at which the next events come."""

    def add(self, samples: Mapping[str, NDArray[Any]]) -> None:
        """Add values of metrics: whole numbers, such as actions, or others. Those not finite are left out."""
        for metric, values in samples.items():
            flat = np.ravel(values)
            finite = flat[np.isfinite(flat)] if flat.dtype.kind == "f" else flat
            parts = self._values.setdefault(metric, [])
            if len(finite):
                parts.append(finite)
            if sum(map(len, parts)) > MAX_VALUES:
                self._values[metric] = [np.concatenate(parts)[::2]]

    def emit(self) -> None:
        """Emit the histograms of what was collected, if it is time for them."""
        counters = self._journal.counters
        if counters.wall_time_s < self._due_s:
            return
        self._due_s = counters.wall_time_s * (1 + GROWTH)
        for metric, parts in self._values.items():
            binned = bins_of(np.concatenate(parts)) if parts else None
            if binned is not None:
                edges, counts = binned
                self._journal.add(
                    HistogramEvent(
                        metric=metric,
                        agent_steps=counters.agent_steps,
                        wall_time_s=round(counters.wall_time_s, 6),
                        edges=edges.tolist(),
                        counts=counts.tolist(),
                    )
                )
        self._values.clear()


def bins_of(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Edges and counts: a bin for each of few whole numbers, else equal ones; None if none are possible."""
    low, high = values.min(), values.max()
    if values.dtype.kind in "iu" and high - low < MAX_BINS:
        edges = np.arange(int(low), int(high) + 2) - 0.5
        return edges, np.bincount((values - low).astype(np.int64)).astype(np.float64)
    low, high = float(low), float(high)
    if not np.isfinite(high - low):
        return None
    least = max(max(abs(low), abs(high)) * 1e-12, 1e-300) * MAX_BINS
    if high - low < least:  # equal values, or as good as that
        middle, half = (low + high) / 2, max(least, 1e-12)
        return np.array([middle - half, middle + half]), np.array([float(len(values))])
    counts, edges = np.histogram(values.astype(np.float64), MAX_BINS, (low, high))
    return edges, counts.astype(np.float64)


def critic_metrics(samples: Mapping[str, NDArray[Any]]) -> dict[str, float]:
    """The mean value of the latest states, and how much of the variance of their returns it explains.

        explained variance = 1 - Var[R - V] / Var[R],   R - V the advantages, before they are normalised

    As in OpenAI's Baselines (Dhariwal et al. 2017), `explained_variance`: 1 is perfect, 0 as good as a
    constant. Empty for what the samples do not state, and where the returns do not vary.
    """
    value_N = np.ravel(samples.get("policy/values", np.empty(0))).astype(float)
    advantage_N = np.ravel(samples.get("policy/advantages", np.empty(0))).astype(float)
    if not len(value_N) or not np.isfinite(value_N).all():
        return {}
    metrics = {"value/mean": float(value_N.mean())}
    if len(advantage_N) == len(value_N) and np.isfinite(advantage_N).all():
        variance = float(np.var(value_N + advantage_N))
        if variance > 0:
            metrics[EXPLAINED_VARIANCE] = 1 - float(np.var(advantage_N)) / variance
    return metrics
