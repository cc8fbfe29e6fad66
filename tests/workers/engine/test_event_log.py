"""The event log: what was written comes back, and a torn tail is seen."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.specs.events import AnyEvent, Log, Points
from workers.engine.event_log import EventLog, read_frames


def note(text: str) -> Log:
    return Log(time=1.0, message=text)


def write(path: Path, *batches: list[AnyEvent]) -> list[int]:
    log = EventLog(path)
    ends = []
    for batch in batches:
        log.add(*batch)
        log.flush()
        ends.append(path.stat().st_size)
    log.close()
    return ends


def test_frames_come_back_with_their_offsets(tmp_path: Path) -> None:
    path = tmp_path / "attempts" / "1" / "events.log"
    ends = write(path, [note("a"), note("b")], [], [note("c")])
    read = list(read_frames(path))
    assert read == [([note("a"), note("b")], ends[0]), ([note("c")], ends[2])]
    assert list(read_frames(path, ends[0])) == read[1:]
    assert list(read_frames(tmp_path / "absent")) == []


@given(st.data())
def test_any_cut_leaves_whole_frames_only(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("log") / "events.log"
    texts = data.draw(st.lists(st.text(max_size=30), min_size=1, max_size=5))
    ends = write(path, *[[note(text)] for text in texts])
    cut = data.draw(st.integers(0, ends[-1]))
    path.write_bytes(path.read_bytes()[:cut])
    read = [events[0].message for events, _ in read_frames(path) if isinstance(events[0], Log)]
    assert read == texts[: sum(end <= cut for end in ends)]


@given(st.data())
def test_damage_is_never_read(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("log") / "events.log"
    ends = write(path, [note("first")], [note("second")], [note("third")])
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(ends[0], ends[1] - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    assert [events for events, _ in read_frames(path)] == [[note("first")]]


def test_divergence_passes_through(tmp_path: Path) -> None:
    path = tmp_path / "events.log"
    points = Points(
        metric="loss/value",
        agent_steps=[1, 2],
        frames=[4, 8],
        wall_time_s=[0.1, 0.2],
        episodes=[0, 0],
        value=[float("nan"), float("inf")],
    )
    write(path, [points])
    [([back], _)] = list(read_frames(path))
    assert isinstance(back, Points)
    assert str(back.value) == "[nan, inf]"
