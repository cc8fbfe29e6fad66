"""Our own formats compared with those of libraries: `python -m benchmarks.libraries`.

Bytes and time of the column codec and pyarrow's two formats, of the event files and TensorBoard's
writer, and of a file's range and Starlette's `FileResponse`. RESULTS.md has what was measured.
"""

import asyncio
import io
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import typer
from starlette.responses import FileResponse, Response

from backend.analysis.metrics import tfevents
from backend.analysis.metrics.chunks import CHUNK_ROWS, decode, encode
from backend.http.streaming import send_file
from backend.platform.artifacts import ArtifactStore
from backend.statistics.columns import Columns

SIZES = (20, 256, CHUNK_ROWS)
"""Rows: a live series' last second, an open chunk, a closed chunk."""
N_SCALARS = 100_000
FILE_BYTES = 20 * 2**20
RANGE = "bytes=1048576-1114111"
_REPEATS = 15
_RUN_ID = "01JD3QZ6W9K0Y5T8H2V4B7N1XC"

Encode = Callable[[Columns], bytes]
Decode = Callable[[bytes], object]


def points(kind: str, n: int) -> Columns:
    """Points like those of training; `kind` states how their values are distributed."""
    rng = np.random.default_rng(1)
    steps = np.cumsum(rng.integers(1, 400, n))
    values = {
        "returns": rng.integers(-21, 22, n).astype("f8"),
        "losses": rng.normal(size=n).astype("f4").astype("f8"),
        "speeds": rng.gamma(9.0, 300.0, n),
    }
    return {
        "agent_steps": steps,
        "frames": 4 * steps,
        "wall_time_s": np.round(np.cumsum(rng.gamma(4.0, 0.02, n)), 6),
        "episodes": np.arange(n),
        "value": values[kind],
        "revision": np.repeat(np.arange(-(-n // 20)), 20)[:n],
    }


def _ipc(columns: Columns) -> bytes:
    table = pa.table(columns)
    buffer = io.BytesIO()
    with pa.ipc.new_stream(buffer, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as file:
        file.write_table(table)
    return buffer.getvalue()


def _from_ipc(data: bytes) -> object:
    table = pa.ipc.open_stream(data).read_all()
    return [table[name].to_numpy() for name in ("agent_steps", "value")]


def _parquet(columns: Columns) -> bytes:
    table = pa.table(columns)
    floats = [name for name, column in columns.items() if column.dtype.kind == "f"]
    encodings = {name: "BYTE_STREAM_SPLIT" if name in floats else "DELTA_BINARY_PACKED" for name in columns}
    buffer = io.BytesIO()
    pq.write_table(
        table,
        buffer,
        compression="zstd",
        use_dictionary=False,
        column_encoding=encodings,
        write_statistics=False,
        store_schema=False,
    )
    return buffer.getvalue()


def _from_parquet(data: bytes) -> object:
    table = pq.read_table(pa.BufferReader(data), columns=["agent_steps", "value"], use_threads=False)
    return [table[name].to_numpy() for name in ("agent_steps", "value")]


CODECS: Mapping[str, tuple[Encode, Decode]] = {
    "own codec": (encode, lambda data: decode(data, ("agent_steps", "value"))),
    "Arrow IPC, zstd": (_ipc, _from_ipc),
    "Parquet, delta and byte stream split, zstd": (_parquet, _from_parquet),
}


def _ms(work: Callable[..., object], *arguments: object) -> float:
    times = []
    for _ in range(_REPEATS):
        started = perf_counter()
        work(*arguments)
        times.append(1000 * (perf_counter() - started))
    return median(times)


def compare_codecs() -> None:
    """Bytes per point and times to write a chunk and to read two of its columns."""
    for n in SIZES:
        for kind in ("returns", "losses", "speeds"):
            columns = points(kind, n)
            for name, (write, read) in CODECS.items():
                data = write(columns)
                times = f"write {_ms(write, columns):.3f} ms, read {_ms(read, data):.3f} ms"
                typer.echo(f"{n:5} {kind:8} {name:43} {len(data) / n:6.1f} B/point, {times}")


def compare_event_files(folder: Path) -> None:
    """Time for 100,000 scalars by our writer and by TensorBoard's."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.record_writer import RecordWriter

    columns = points("losses", N_SCALARS)
    arguments: Any = (columns["wall_time_s"], columns["agent_steps"], columns["value"])

    def theirs() -> None:
        with (folder / "theirs").open("wb") as file:
            writer = RecordWriter(file)
            for time_s, step, value in zip(*(column.tolist() for column in arguments), strict=True):
                summary = Summary(value=[Summary.Value(tag="loss/value", simple_value=value)])
                event = Event(wall_time=time_s, step=step, summary=summary)
                writer.write(event.SerializeToString())
            writer.close()

    started = perf_counter()
    (folder / "ours").write_bytes(tfevents.scalars("loss/value", *arguments))
    halfway = perf_counter()
    theirs()
    typer.echo(f"event files, own: {halfway - started:.2f} s, {(folder / 'ours').stat().st_size:,} bytes")
    done = perf_counter() - halfway
    typer.echo(f"event files, TensorBoard: {done:.2f} s, {(folder / 'theirs').stat().st_size:,} bytes")


def compare_ranges(folder: Path) -> None:
    """Time to answer with a whole file and with a range of 64 KiB."""
    store = ArtifactStore(f"file://{folder}")
    file = folder / "runs" / _RUN_ID / "videos" / "a.mp4"
    file.parent.mkdir(parents=True)
    file.write_bytes(bytes(FILE_BYTES))

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def ignore(message: Any) -> None:
        pass

    def own(wanted: str | None) -> Response:
        return send_file(store, _RUN_ID, "videos", "a.mp4", media_type="video/mp4", range_header=wanted)

    def starlettes(wanted: str | None) -> Response:
        return FileResponse(file, media_type="video/mp4")

    def answer(make: Callable[[str | None], Response], wanted: str | None) -> None:
        headers = [(b"range", wanted.encode())] if wanted else []
        asgi = {"version": "3.0", "spec_version": "2.4"}
        scope: Any = {"type": "http", "asgi": asgi, "method": "GET", "headers": headers, "extensions": {}}
        asyncio.run(make(wanted)(scope, receive, ignore))

    for label, wanted in (("whole", None), ("range", RANGE)):
        ours, theirs = _ms(answer, own, wanted), _ms(answer, starlettes, wanted)
        typer.echo(f"file, {label}: own {ours:.2f} ms, Starlette {theirs:.2f} ms")


if __name__ == "__main__":
    compare_codecs()
    with tempfile.TemporaryDirectory() as scratch:
        compare_event_files(Path(scratch))
        compare_ranges(Path(scratch) / "store")
