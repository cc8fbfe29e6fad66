"""Points are kept in columns, a column a series, and means a report."""

import math

from workers.engine.points import Counters, PointBuffer


def test_each_point_says_where_it_stands() -> None:
    buffer = PointBuffer()
    at = Counters(agent_steps=20, frames=80, updates=1, episodes=3, wall_time_s=1.23456789)
    buffer.add("rollout/episode_return", at, 7)
    buffer.add("rollout/episode_return", at, 8, source="actor 1")
    own, other = buffer.take()
    assert (own.metric, own.source, own.value) == ("rollout/episode_return", "", [7.0])
    assert (other.source, other.value) == ("actor 1", [8.0])
    assert (own.agent_steps, own.frames, own.episodes, own.wall_time_s) == ([20], [80], [3], [1.234568])
    assert buffer.take() == []


def test_what_is_gathered_becomes_one_mean() -> None:
    buffer = PointBuffer()
    for value in (1.0, 2.0, 6.0):
        buffer.gather("loss/value", value)
    buffer.gather("loss/policy", -1.0)
    buffer.gather("loss/policy", -2.0, "actor 1")
    buffer.settle(Counters(agent_steps=5))
    assert {(p.metric, p.source): (p.agent_steps, p.value) for p in buffer.take()} == {
        ("loss/value", ""): ([5], [3.0]),
        ("loss/policy", ""): ([5], [-1.0]),
        ("loss/policy", "actor 1"): ([5], [-2.0]),
    }
    buffer.settle(Counters(agent_steps=6))
    assert buffer.take() == []


def test_of_maxima_the_largest_is_told() -> None:
    buffer = PointBuffer()
    for value in (-3.0, 7.0, 2.0):
        buffer.gather("ga3c/policy_lag_max", value)
    buffer.settle(Counters())
    buffer.gather("ga3c/policy_lag_max", 1.0)
    buffer.settle(Counters())
    [points] = buffer.take()
    assert points.value == [7.0, 1.0]


def test_a_value_that_is_no_number_is_not_averaged_away() -> None:
    buffer = PointBuffer()
    for value in (1.0, math.nan, 2.0):
        buffer.gather("loss/value", value)
    buffer.settle(Counters())
    [points] = buffer.take()
    [value] = points.value
    assert value is None or math.isnan(value)


def test_counters_come_back_from_a_checkpoint() -> None:
    counters = Counters(agent_steps=1, frames=2, updates=3, episodes=4, wall_time_s=5.5)
    assert Counters(**counters.as_dict()) == counters  # type: ignore[arg-type]
