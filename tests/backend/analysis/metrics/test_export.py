import csv
import io
import json
import math
import struct
import zipfile
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from sqlalchemy import Engine

from backend.analysis.metrics import export, tensorboard_files, tfevents
from backend.db.engine import reading
from tests.backend.analysis.metrics.oracle import METRICS, Key, RecordedRun, Row
from tests.support.rows import PROVENANCE

BEGAN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ATTEMPTS: list[dict[str, Any]] = [
    {"attempt": 1, "host": "a"},
    {"attempt": 2, "host": "b", **PROVENANCE.model_dump()},
]


@pytest.fixture
def recorded(engine: Engine) -> RecordedRun:
    """A run with a cut, a per-actor series, NaN and points out of order."""
    recorded = RecordedRun(engine, 1)
    recorded.append({METRICS[0]: 5000, METRICS[2]: 7})
    recorded.cut(0.7)
    recorded.append({METRICS[0]: 100, METRICS[1]: 70_000})
    return recorded


def points(recorded: RecordedRun) -> dict[Key, list[Row]]:
    """Points without revisions, by series, in file order."""
    return {
        key: [row[:5] for row in recorded.live[key]] for key in sorted(recorded.live) if recorded.live[key]
    }


def by_series(rows: Iterable[Sequence[Any]]) -> dict[Key, list[Row]]:
    rows_by_key: dict[Key, list[Row]] = {}
    for metric, source, *numbers in rows:
        rows_by_key.setdefault((metric, source), []).append(tuple(float(n) for n in numbers))
    return rows_by_key


def same(rows: dict[Key, list[Row]], other: dict[Key, list[Row]]) -> bool:
    return list(rows) == list(other) and all(
        np.array_equal(np.array(rows[key]), np.array(other[key]), equal_nan=True) for key in rows
    )


@pytest.mark.service
def test_csv_export_is_complete_and_exact(recorded: RecordedRun) -> None:
    with reading(recorded.engine) as session:
        chunks = list(export.csv(session, recorded.run_id, ATTEMPTS))
    assert len(chunks) > 2  # streamed
    header, *rows = csv.reader(io.StringIO(b"".join(chunks).decode()))
    assert header[:-1] == ["metric", "source", "agent_steps", "frames", "wall_time_s", "episodes", "value"]
    assert same(by_series(row[:-1] for row in rows), points(recorded))
    assert header[-1] == "provenance"
    assert [json.loads(row[-1]) for row in rows if row[-1]] == [ATTEMPTS]
    assert rows[0][-1]


@pytest.mark.service
def test_parquet_export_is_complete_and_exact(recorded: RecordedRun) -> None:
    with reading(recorded.engine) as session:
        chunks = list(export.parquet(session, recorded.run_id, ATTEMPTS))
    assert len(chunks) > 2
    table = pq.read_table(io.BytesIO(b"".join(chunks)))
    assert table.schema.equals(export.SCHEMA)
    assert json.loads(table.schema.metadata[b"provenance"]) == ATTEMPTS
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    assert same(by_series(rows), points(recorded))


@pytest.mark.long
@pytest.mark.service
def test_tensorboard_reads_every_exported_point(recorded: RecordedRun, tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with reading(recorded.engine) as session:
        data = b"".join(tensorboard_files.of_run(session, recorded.run_id, ATTEMPTS, BEGAN))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        archive.extractall(tmp_path)
    folders = {"": "run", "3": "source-3"}
    for key, rows in points(recorded).items():
        board = EventAccumulator(str(tmp_path / folders[key[1]]), size_guidance={"scalars": 0})
        board.Reload()
        [text] = board.Tensors("provenance")
        assert json.loads(text.tensor_proto.string_val[0]) == ATTEMPTS
        scalars = board.Scalars(key[0])
        assert [s.step for s in scalars] == [row[0] for row in rows]
        assert [s.wall_time for s in scalars] == pytest.approx([BEGAN.timestamp() + row[2] for row in rows])
        values = np.array([row[4] for row in rows], "f4")
        assert np.array_equal([s.value for s in scalars], values, equal_nan=True)


@pytest.mark.service
@pytest.mark.parametrize("form", ["csv", "parquet", "tensorboard"])
def test_export_is_deterministic(recorded: RecordedRun, form: str) -> None:
    def once() -> bytes:
        with reading(recorded.engine) as session:
            if form == "tensorboard":
                return b"".join(tensorboard_files.of_run(session, recorded.run_id, ATTEMPTS, BEGAN))
            return b"".join(getattr(export, form)(session, recorded.run_id, ATTEMPTS))

    assert once() == once()


@pytest.mark.service
def test_export_of_run_without_points_is_valid_and_empty(engine: Engine, tmp_path: Path) -> None:
    recorded = RecordedRun(engine, 0)
    with reading(engine) as session:
        assert b"".join(export.csv(session, recorded.run_id, ATTEMPTS)).count(b"\n") == 1
        assert (
            pq.read_table(io.BytesIO(b"".join(export.parquet(session, recorded.run_id, ATTEMPTS)))).num_rows
            == 0
        )
        data = b"".join(tensorboard_files.of_run(session, recorded.run_id, ATTEMPTS, BEGAN))
    assert zipfile.ZipFile(io.BytesIO(data)).namelist() == []


def slow_crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def test_crc32c_matches_slow_reference() -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 256, (5, 77), dtype="u1")
    assert tfevents.crc32c(rows).tolist() == [slow_crc32c(row.tobytes()) for row in rows]
    assert slow_crc32c(b"123456789") == 0xE3069283


def test_tfevents_records_are_read_by_tensorboard(tmp_path: Path) -> None:
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
