from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from sqlalchemy import Engine

from backend.analysis.metrics import repository as metrics
from backend.db.engine import writing
from backend.specs.events import MAX_TEXT, EndedEvent, LogEvent, PointsEvent
from tests.support.rows import make_run
from workers import bounds
from workers.bounds import MAX_LINES_PER_MINUTE, Bounds, Line
from workers.engine.training.event_log import MAX_WRITTEN_BYTES, EventLog, read_frames

START = datetime(2026, 1, 1, tzinfo=UTC)


def _line(second: float, message: str = "a line") -> Line:
    return {"time": START + timedelta(seconds=second), "level": "info", "message": message}


def _points(metric: str, n: int = 1) -> PointsEvent:
    at = list(range(n))
    return PointsEvent(
        metric=metric, agent_steps=at, frames=at, wall_time_s=[0.0] * n, episodes=at, value=[1.0] * n
    )


def test_log_of_ordinary_length_is_kept_whole() -> None:
    lines = [_line(second) for second in range(300)]
    assert Bounds().lines(lines) == lines


def test_lines_beyond_the_maximum_per_minute_are_dropped_and_counted() -> None:
    attempt = Bounds()
    first = attempt.lines([_line(0.01 * n) for n in range(1000)])
    assert len(first) == MAX_LINES_PER_MINUTE + 1
    assert first[-1]["message"].startswith(f"{1000 - MAX_LINES_PER_MINUTE} log lines were dropped")
    (second,) = attempt.lines([_line(20), _line(21)])
    assert second["message"].startswith("2 log lines were dropped")
    next_minute = [_line(60)]
    assert attempt.lines(next_minute) == next_minute


def test_series_beyond_the_maximum_are_dropped_and_counted(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "MAX_SERIES", 3)
    run = make_run(engine)
    attempt = Bounds()
    with writing(engine) as session:
        kept = attempt.points(session, run.id, [_points("a"), _points("b")])
        metrics.append(session, run.id, 1, 1, kept)
    assert attempt.dropped_points(START) == []
    later = Bounds()  # a resumed run's attempt
    with writing(engine) as session:
        kept = later.points(session, run.id, [_points(name, 4) for name in "abcde"])
    assert [event.metric for event in kept] == ["a", "b", "c"]
    (line,) = later.dropped_points(START)
    assert line["message"].startswith("8 points of 2 metrics have been dropped: a run may have 3 series")
    assert "d, e" in line["message"]
    with writing(engine) as session:
        assert later.points(session, run.id, [_points("d", 4)]) == []
    assert later.dropped_points(START) == []  # until there are ten times as many


def test_long_texts_of_an_engine_lose_their_middle() -> None:
    text = "begin" + "x" * 10 * MAX_TEXT + "end"
    for shortened in (
        LogEvent(time=0.0, message=text).message,
        EndedEvent(time=0.0, state="failed", reason="", traceback=text).traceback or "",
    ):
        assert len(shortened) <= MAX_TEXT
        assert shortened.startswith("begin")
        assert shortened.endswith("end")
        assert "characters were dropped" in shortened
        assert LogEvent(time=0.0, message=shortened).message == shortened


def test_many_events_are_written_as_several_frames(tmp_path: Path) -> None:
    logged = [LogEvent(time=float(n), message="x" * 5000) for n in range(1000)]
    log = EventLog(tmp_path / "events.log")
    log.add(*logged)
    log.flush()
    log.close()
    frames = list(read_frames(tmp_path / "events.log"))
    assert [event for frame, _ in frames for event in frame] == logged
    offsets = [0, *(offset for _, offset in frames)]
    assert len(frames) > 1
    assert max(after - before for before, after in pairwise(offsets)) <= MAX_WRITTEN_BYTES + 8
