"""Histograms of an attempt: what is collected, binned and emitted, and when."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backend.specs.events import HistogramEvent
from workers.engine.training.event_log import read_frames
from workers.engine.training.histograms import MAX_VALUES, Histograms, bins_of, critic_metrics
from workers.engine.training.journal import Journal


def emitted(journal: Journal, path: Path) -> list[HistogramEvent]:
    """The histograms of an event log."""
    journal.flush()
    events = [event for frame, _ in read_frames(path, 0) for event in frame]
    return [event for event in events if isinstance(event, HistogramEvent)]


def test_histograms_are_emitted_ever_more_rarely(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "events.log")
    histograms = Histograms(journal)
    for second in range(1, 3_601):
        journal.counters.wall_time_s = float(second)
        journal.counters.agent_steps = 10 * second
        histograms.add({"policy/actions": np.array([0, 2]), "empty": np.array([np.nan])})
        histograms.emit()
    events = emitted(journal, tmp_path / "events.log")
    assert 200 < len(events) < 300
    assert {event.metric for event in events} == {"policy/actions"}
    first, last = events[0], events[-1]
    assert (first.agent_steps, first.edges, first.counts) == (10, [-0.5, 0.5, 1.5, 2.5], [1, 0, 1])
    assert last.counts[0] > 60  # of all seconds since the one before
    assert sum(sum(event.counts) for event in events) > 7_000


def test_what_is_collected_has_a_bound(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "events.log")
    histograms = Histograms(journal)
    for _ in range(20):
        histograms.add({"a": np.arange(10_000.0)})
    histograms.emit()
    [event] = emitted(journal, tmp_path / "events.log")
    assert MAX_VALUES / 3 < sum(event.counts) <= MAX_VALUES


@pytest.mark.parametrize(
    ("values", "n_bins"),
    [
        (np.array([3, 5]), 3),
        (np.array([0, 64]), 64),
        (np.array([1.5, 1.5]), 1),
        (np.array([0.0, 1e-320]), 1),
        (np.linspace(-1, 1, 100, dtype=np.float32), 64),
        (np.array([-1.7e308, 1.7e308]), None),
    ],
)
def test_bins(values: Any, n_bins: int | None) -> None:
    binned = bins_of(values)
    if n_bins is None:
        assert binned is None
        return
    assert binned is not None
    edges, counts = binned
    assert (len(edges), len(counts), counts.sum()) == (n_bins + 1, n_bins, len(values))
    assert (np.diff(edges) > 0).all()
    assert edges[0] <= values.min() <= values.max() <= edges[-1]


def test_explained_variance_is_of_returns_by_values() -> None:
    values, returns = np.array([[0.0, 1.0], [2.0, 4.0]]), np.array([[0.5, 1.0], [2.0, 3.0]])
    metrics = critic_metrics({"policy/values": values, "policy/advantages": returns - values})
    assert metrics["value/mean"] == pytest.approx(1.75)
    residual = np.mean((returns - values - np.mean(returns - values)) ** 2)
    expected = 1 - residual / np.mean((returns - returns.mean()) ** 2)
    assert metrics["value/explained_variance"] == pytest.approx(expected)
    assert critic_metrics({"policy/values": values}) == {"value/mean": 1.75}
    assert critic_metrics({"policy/values": values, "policy/advantages": -values}) == {"value/mean": 1.75}
    assert critic_metrics({"policy/values": np.array([np.nan])}) == {}
    assert critic_metrics({}) == {}
