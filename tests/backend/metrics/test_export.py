import csv
import io
import math
import struct
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from sqlalchemy import Engine

from backend.db.engine import reading
from backend.metrics import export, tfevents
from tests.backend.metrics.oracle import METRICS, Key, Life, Row

BEGAN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def life(engine: Engine) -> Life:
    """A run with a cut, an actor of its own, NaN, an infinity and points out of order."""
    life = Life(engine, 1)
    life.append({METRICS[0]: 5000, METRICS[2]: 7})
    life.cut(0.7)
    life.append({METRICS[0]: 100, METRICS[1]: 70_000})
    return life


def points(life: Life) -> dict[Key, list[Row]]:
    """All but the revisions, by series, in the order of the file."""
    return {key: [row[:5] for row in life.live[key]] for key in sorted(life.live) if life.live[key]}


def by_series(rows) -> dict[Key, list[Row]]:
    found: dict[Key, list[Row]] = {}
    for metric, source, *numbers in rows:
        found.setdefault((metric, source), []).append(tuple(float(n) for n in numbers))
    return found


def same(one: dict[Key, list[Row]], other: dict[Key, list[Row]]) -> bool:
    return list(one) == list(other) and all(
        np.array_equal(np.array(one[key]), np.array(other[key]), equal_nan=True) for key in one
    )


@pytest.mark.service
def test_csv_is_complete_and_exact(life: Life) -> None:
    with reading(life.engine) as session:
        pieces = list(export.csv(session, life.run_id))
    assert len(pieces) > 2  # streamed
    header, *rows = csv.reader(io.StringIO(b"".join(pieces).decode()))
    assert header == ["metric", "source", "agent_steps", "frames", "wall_time_s", "episodes", "value"]
    assert same(by_series(rows), points(life))


@pytest.mark.service
def test_parquet_is_complete_and_exact(life: Life) -> None:
    with reading(life.engine) as session:
        pieces = list(export.parquet(session, life.run_id))
    assert len(pieces) > 2
    table = pq.read_table(io.BytesIO(b"".join(pieces)))
    assert table.schema.equals(export.SCHEMA)
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    assert same(by_series(rows), points(life))


@pytest.mark.service
def test_tensorboard_reads_every_point(life: Life, tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with reading(life.engine) as session:
        data = b"".join(export.tensorboard(session, life.run_id, BEGAN))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        archive.extractall(tmp_path)
    folders = {"": "run", "3": "source-3"}
    for key, rows in points(life).items():
        board = EventAccumulator(str(tmp_path / folders[key[1]]), size_guidance={"scalars": 0})
        board.Reload()
        scalars = board.Scalars(key[0])
        assert [s.step for s in scalars] == [row[0] for row in rows]
        assert [s.wall_time for s in scalars] == pytest.approx([BEGAN.timestamp() + row[2] for row in rows])
        values = np.array([row[4] for row in rows], "f4")
        assert np.array_equal([s.value for s in scalars], values, equal_nan=True)


@pytest.mark.service
@pytest.mark.parametrize("form", ["csv", "parquet", "tensorboard"])
def test_the_same_each_time(life: Life, form: str) -> None:
    def once() -> bytes:
        with reading(life.engine) as session:
            began = (BEGAN,) if form == "tensorboard" else ()
            return b"".join(getattr(export, form)(session, life.run_id, *began))

    assert once() == once()


@pytest.mark.service
def test_a_run_without_points_has_files_too(engine: Engine, tmp_path: Path) -> None:
    life = Life(engine, 0)
    with reading(engine) as session:
        assert b"".join(export.csv(session, life.run_id)).count(b"\n") == 1
        assert pq.read_table(io.BytesIO(b"".join(export.parquet(session, life.run_id)))).num_rows == 0
        data = b"".join(export.tensorboard(session, life.run_id, BEGAN))
    assert zipfile.ZipFile(io.BytesIO(data)).namelist() == []


def slow_crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def test_checksums() -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 256, (5, 77), dtype="u1")
    assert tfevents.crc32c(rows).tolist() == [slow_crc32c(row.tobytes()) for row in rows]
    assert slow_crc32c(b"123456789") == 0xE3069283


def test_records_are_framed_as_tensorflow_frames_them(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
    from tensorboard.compat.proto.event_pb2 import Event

    steps = np.array([0, 1, 127, 128, 10**12])
    values = np.array([0.5, math.nan, math.inf, 1e300, -3.0])
    path = tmp_path / "events.out.tfevents.0"
    path.write_bytes(tfevents.header(7.0) + tfevents.scalars("a/ü", np.arange(5.0), steps, values))
    first, *events = [Event.FromString(raw) for raw in RawEventFileLoader(str(path)).Load()]
    assert (first.file_version, first.wall_time) == ("brain.Event:2", 7.0)
    assert [e.step for e in events] == steps.tolist()
    assert [e.wall_time for e in events] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert {e.summary.value[0].tag for e in events} == {"a/ü"}
    wanted = np.array([0.5, np.nan, np.inf, np.inf, -3.0])
    assert np.array_equal([e.summary.value[0].simple_value for e in events], wanted, equal_nan=True)
    size, crc = struct.unpack_from("<QI", path.read_bytes())
    masked = slow_crc32c(struct.pack("<Q", size))
    assert crc == (((masked >> 15) | (masked << 17)) + 0xA282EAD8) % 2**32
