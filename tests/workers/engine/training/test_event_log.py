"""The event log: what was written comes back, and a torn tail is seen."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.specs.events import AnyEvent, LogEvent, PointsEvent
from workers.engine.training.event_log import EventLog, is_damaged, read_frames, tail_is_damaged


def note(text: str) -> LogEvent:
    return LogEvent(time=1.0, message=text)


def write(path: Path, *batches: Sequence[AnyEvent]) -> list[int]:
    log = EventLog(path)
    ends = []
    for batch in batches:
        log.add(*batch)
        log.flush()
        ends.append(path.stat().st_size)
    log.close()
    return ends


def test_read_returns_batches_with_offsets(tmp_path: Path) -> None:
    path = tmp_path / "attempts" / "1" / "events.log"
    ends = write(path, [note("a"), note("b")], [], [note("c")])
    read = list(read_frames(path))
    assert read == [([note("a"), note("b")], ends[0]), ([note("c")], ends[2])]
    assert list(read_frames(path, ends[0])) == read[1:]
    assert list(read_frames(tmp_path / "absent")) == []


@given(st.data())
def test_read_of_a_truncated_log_returns_whole_batches_only(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("log") / "events.log"
    texts = data.draw(st.lists(st.text(max_size=30), min_size=1, max_size=5))
    ends = write(path, *[[note(text)] for text in texts])
    cut = data.draw(st.integers(0, ends[-1]))
    path.write_bytes(path.read_bytes()[:cut])
    read = [events[0].message for events, _ in read_frames(path) if isinstance(events[0], LogEvent)]
    assert read == texts[: sum(end <= cut for end in ends)]


@given(st.data())
def test_read_skips_a_damaged_batch_once_another_follows(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("log") / "events.log"
    ends = write(path, [note("first")], [note("second")], [note("third")])
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(ends[0], ends[1] - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content[: ends[1]])
    assert [events for events, _ in read_frames(path)] == [[note("first")]]
    path.write_bytes(content)
    first, (gap, after), third = read_frames(path)
    assert first == ([note("first")], ends[0])
    assert isinstance(gap[0], LogEvent)
    assert (gap[0].level, after) == ("error", ends[1])
    assert f"{ends[1] - ends[0]} bytes from byte {ends[0]} on were skipped" in gap[0].message
    assert third == ([note("third")], ends[2])


class FileThatGrows(io.FileIO):
    """A file to which another process appends just after a read of the file ended."""

    def __init__(self, path: "LivePath") -> None:
        super().__init__(path)
        self._path = path

    def readinto(self, buffer: Any) -> int | None:
        n = super().readinto(buffer)
        self._path.count_read()
        return n

    def readall(self) -> bytes:
        content = super().readall()
        self._path.count_read()
        return content


class LivePath(type(Path())):  # type: ignore[misc]
    """A log of which the rest is written right after its n-th read, a system call."""

    rest = b""
    reads_left = 0

    def count_read(self) -> None:
        self.reads_left -= 1
        if self.reads_left == 0:
            with Path(self).open("ab") as file:
                file.write(self.rest)

    def open(self, *_: Any, **__: Any) -> Any:
        return io.BufferedReader(FileThatGrows(self))


@pytest.mark.parametrize("n_reads", range(1, 7))
def test_no_frame_is_lost_that_is_written_between_two_reads(tmp_path: Path, n_reads: int) -> None:
    written = tmp_path / "written.log"
    ends = write(written, [note("first")], [note("second")], [note("third")])
    content = written.read_bytes()
    for n_bytes in range(ends[0], ends[1]):
        path = LivePath(tmp_path / f"{n_bytes}.log")
        Path(path).write_bytes(content[:n_bytes])
        path.rest, path.reads_left = content[n_bytes:], n_reads
        read: list[AnyEvent] = []
        offset = 0
        for _ in range(n_reads + 1):  # each round has a read: the last one comes after the rest
            for frame, end in read_frames(path, offset):
                read += frame
                offset = end
        assert read == [note("first"), note("second"), note("third")]


def test_zeros_after_a_power_failure_are_a_damaged_tail(tmp_path: Path) -> None:
    path = tmp_path / "events.log"
    (end,) = write(path, [note("only")])
    path.write_bytes(path.read_bytes() + bytes(100))
    assert [events for events, _ in read_frames(path)] == [[note("only")]]
    assert tail_is_damaged(path, end)


def test_complete_damaged_tail_is_distinguished_from_a_torn_one(tmp_path: Path) -> None:
    path = tmp_path / "events.log"
    (end,) = write(path, [note("only")])
    content = path.read_bytes()
    path.write_bytes(content[: end - 1])
    assert not tail_is_damaged(path, 0)
    path.write_bytes(content[: end - 1] + bytes([content[-1] ^ 1]))
    assert tail_is_damaged(path, 0)
    path.write_bytes(b"\xff" * 4 + content[4:])
    assert tail_is_damaged(path, 0), "no frame is as long"


@pytest.mark.parametrize("frame", [0, 1])
def test_log_is_damaged_by_a_flipped_bit_in_any_frame_but_not_by_a_torn_tail(
    tmp_path: Path, frame: int
) -> None:
    path = tmp_path / "events.log"
    ends = write(path, [note("first")], [note("last")])
    content = path.read_bytes()
    assert not is_damaged(path)
    path.write_bytes(content[:-1])
    assert not is_damaged(path)
    path.write_bytes(content[: ends[frame] - 3] + b"#" + content[ends[frame] - 2 :])
    assert is_damaged(path)
    assert not is_damaged(tmp_path / "absent")


def test_event_log_keeps_nan_and_infinity(tmp_path: Path) -> None:
    path = tmp_path / "events.log"
    points = PointsEvent(
        metric="loss/value",
        agent_steps=[1, 2],
        frames=[4, 8],
        wall_time_s=[0.1, 0.2],
        episodes=[0, 0],
        value=[float("nan"), float("inf")],
    )
    write(path, [points])
    [([back], _)] = list(read_frames(path))
    assert isinstance(back, PointsEvent)
    assert str(back.value) == "[nan, inf]"
