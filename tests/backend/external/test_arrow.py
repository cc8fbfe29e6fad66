import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from backend.external.arrow import of_arrow
from backend.external.schemas import MAX_ROWS
from backend.platform.errors import Invalid
from tests.support.arrow import arrow_stream

SOURCE = "01JD3QZ6W9K0Y5T8H2V4B7N1XC"


def _rows(n: int = 4, **changes: Any) -> dict[str, Any]:
    columns = {
        "metric": pa.array((["loss/policy", "loss/value"] * n)[:n]).dictionary_encode(),
        "agent_steps": pa.array(range(n), pa.int64()),
        "frames": pa.array([None, *range(4, 4 * n, 4)], pa.int64()),
        "wall_time_s": pa.array([0.5] * n),
        "value": pa.array([None, *[1.5] * (n - 1)], pa.float64()),
    }
    return {name: column for name, column in (columns | changes).items() if column is not None}


def test_columns_are_split_by_metric_in_order() -> None:
    points = of_arrow(arrow_stream(_rows(), batches=2), SOURCE, 7)
    assert (points.source, points.sequence, points.rows) == (SOURCE, 7, 8)
    policy = points.series["loss/policy"]
    assert policy["agent_steps"].tolist() == [0, 2, 0, 2]
    assert policy["frames"].tolist() == [0, 8, 0, 8]
    np.testing.assert_array_equal(policy["value"], [np.nan, 1.5, np.nan, 1.5])
    text = _rows(metric=pa.array(["loss/td"] * 4), frames=None)
    assert of_arrow(arrow_stream(text), SOURCE, 1).series["loss/td"]["frames"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"metric": pa.array(["loss\x00"] * 4)}, "metric"),
        ({"metric": pa.array([""] * 4)}, "metric"),
        ({"metric": pa.array(["a/" + "b" * 200] * 4)}, "metric"),
        ({"metric": pa.array([None, "a/b", "a/b", "a/b"])}, "metric"),
        ({"metric": pa.array([1, 2, 3, 4])}, "metric"),
        ({"metric": None}, "metric"),
        ({"agent_steps": pa.array([1.0] * 4)}, "agent_steps"),
        ({"agent_steps": pa.array([0, 1, 2, -1], pa.int64())}, "agent_steps"),
        ({"agent_steps": pa.array([0, 1, 2, None], pa.int64())}, "agent_steps"),
        ({"frames": pa.array([0, 1, 2, 2**62], pa.int64())}, "frames"),
        ({"wall_time_s": pa.array([float("nan")] * 4)}, "wall_time_s"),
        ({"value": None}, "value"),
        ({"colour": pa.array(["red"] * 4)}, "colour"),
    ],
)
def test_invalid_column_is_named(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as caught:
        of_arrow(arrow_stream(_rows(**changes)), SOURCE, 1)
    assert [error.field for error in caught.value.errors] == [field]


def test_compressed_and_long_streams_are_refused_before_they_are_read() -> None:
    for compression in ("lz4", "zstd"):
        with pytest.raises(Invalid, match="must not be compressed"):
            of_arrow(arrow_stream(_rows(), compression=compression), SOURCE, 1)
    with pytest.raises(Invalid, match="too many points"):
        of_arrow(arrow_stream(_rows(MAX_ROWS // 2 + 1), batches=2), SOURCE, 1)
    assert of_arrow(arrow_stream(_rows(MAX_ROWS // 2), batches=2), SOURCE, 1).rows == MAX_ROWS


def test_damaged_stream_is_refused_or_read_without_another_error() -> None:
    whole = arrow_stream(_rows())
    generator = random.Random(0)
    damaged = [b"", b"abc", whole[:100], whole[:-200]]
    for _ in range(500):
        data = bytearray(whole)
        for _ in range(3):
            data[generator.randrange(len(data))] = generator.randrange(256)
        damaged.append(bytes(data))
    refused = 0
    for body in damaged:
        try:
            of_arrow(body, SOURCE, 1)
        except Invalid:
            refused += 1
    assert refused > 4
