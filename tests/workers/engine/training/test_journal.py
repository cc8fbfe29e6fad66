"""The journal keeps points in columns, one series each, and means between reports."""

import math
from pathlib import Path

import pytest

from backend.specs.events import PointsEvent
from workers.engine.methods.base import DivergedError
from workers.engine.training.event_log import read_frames
from workers.engine.training.journal import Counters, Journal


class JournalFile:
    """A journal, and what it has written."""

    def __init__(self, folder: Path) -> None:
        self.journal = Journal(folder / "events.log")
        self._offset = 0
        self._path = folder / "events.log"

    def points(self, *, include_means: bool = False) -> list[PointsEvent]:
        """Emit the points and read back those written since the last call."""
        self.journal.emit_points(include_means=include_means)
        self.journal.flush()
        recorded = []
        for events, offset in read_frames(self._path, self._offset):
            recorded += [event for event in events if isinstance(event, PointsEvent)]
            self._offset = offset
        return recorded


@pytest.fixture
def file(tmp_path: Path) -> JournalFile:
    return JournalFile(tmp_path)


def test_add_point_stores_value_with_counters(file: JournalFile) -> None:
    journal = file.journal
    journal.counters = Counters(agent_steps=20, frames=80, updates=1, episodes=3, wall_time_s=1.23456789)
    journal.add_point("rollout/episode_return", 7)
    journal.add_point("rollout/episode_return", 8, source="actor 1")
    own, other = file.points()
    assert (own.metric, own.source, own.value) == ("rollout/episode_return", "", [7.0])
    assert (other.source, other.value) == ("actor 1", [8.0])
    assert (own.agent_steps, own.frames, own.episodes, own.wall_time_s) == ([20], [80], [3], [1.234568])
    assert file.points() == []


def test_record_emits_one_mean_per_metric_and_source(file: JournalFile) -> None:
    journal = file.journal
    for value in (1.0, 2.0, 6.0):
        journal.record({"loss/value": value})
    journal.record({"loss/policy": -1.0})
    journal.record({"loss/policy": -2.0}, "actor 1")
    journal.counters.agent_steps = 5
    assert file.points() == []
    assert {(p.metric, p.source): (p.agent_steps, p.value) for p in file.points(include_means=True)} == {
        ("loss/value", ""): ([5], [3.0]),
        ("loss/policy", ""): ([5], [-1.0]),
        ("loss/policy", "actor 1"): ([5], [-2.0]),
    }
    assert file.points(include_means=True) == []


def test_record_keeps_maximum_of_max_metrics(file: JournalFile) -> None:
    for value in (-3.0, 7.0, 2.0):
        file.journal.record({"ga3c/policy_lag_max": value})
    [first] = file.points(include_means=True)
    file.journal.record({"ga3c/policy_lag_max": 1.0})
    [second] = file.points(include_means=True)
    assert (first.value, second.value) == ([7.0], [1.0])


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_record_raises_for_a_value_that_is_not_finite(file: JournalFile, value: float) -> None:
    file.journal.record({"loss/value": 1.0})
    with pytest.raises(DivergedError, match="loss/value became"):
        file.journal.record({"loss/value": value})


def test_returns_that_are_not_finite_do_not_blame_the_optimizer(file: JournalFile) -> None:
    with pytest.raises(DivergedError, match="the environment's rewards") as caught:
        file.journal.add_point("rollout/episode_return", math.inf)
    assert "learning rate" not in str(caught.value)


def test_counters_round_trip_through_a_checkpoint() -> None:
    counters = Counters(agent_steps=1, frames=2, updates=3, episodes=4, wall_time_s=5.5)
    assert Counters(**counters.as_dict()) == counters  # type: ignore[arg-type]
