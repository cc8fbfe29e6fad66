"""Arrow streams, as clients send them."""

from typing import Any

import pyarrow as pa


def arrow_stream(columns: dict[str, Any], *, batches: int = 1, compression: str | None = None) -> bytes:
    """A stream of this batch, as often as given."""
    batch = pa.record_batch(columns)
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        for _ in range(batches):
            writer.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())
