from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

from backend.analysis.metrics.chunks import (
    CHUNK_ROWS,
    POINT_DTYPES,
    decode,
    empty,
    encode,
    joined,
    n_rows,
    select_rows,
)
from backend.statistics.columns import Array, Columns
from tests.backend.analysis.metrics.strategies import columns, points


def same_bits(array: Array, other: Array) -> bool:
    return array.dtype == other.dtype and array.tobytes() == other.tobytes()


@given(columns())
def test_decode_restores_every_bit(rows: Columns) -> None:
    decoded = decode(encode(rows))
    assert list(decoded) == list(POINT_DTYPES)
    assert all(same_bits(decoded[name], rows[name]) for name in POINT_DTYPES)


@given(columns())
def test_decode_of_one_column_returns_that_column(rows: Columns) -> None:
    data = encode(rows)
    for name in POINT_DTYPES:
        alone = decode(data, [name])
        assert list(alone) == [name]
        assert same_bits(alone[name], rows[name])


@pytest.mark.parametrize(
    "value",
    [
        np.full(100, np.nan),
        np.full(100, np.inf),
        np.full(100, -0.0),
        np.arange(100.0),
        np.arange(100) / 1e6,
        np.linspace(0, 1, 100),
        np.linspace(0, 1, 100, dtype="f4").astype("f8"),
        np.full(100, 5e-324),
        np.full(100, 1.7976931348623157e308),
        np.array([2.0**53, -(2.0**53), 2.0**53 + 2] * 40),
    ],
)
def test_every_float_encoding_restores_every_bit(value: Array) -> None:
    rows = points(len(value)) | {"value": value}
    assert same_bits(decode(encode(rows))["value"], value)


def test_integers_with_overflowing_differences_are_restored() -> None:
    ends = np.iinfo(np.int64)
    rows = points(100) | {"frames": np.array([ends.min, ends.max] * 50)}
    assert same_bits(decode(encode(rows))["frames"], rows["frames"])


@pytest.mark.parametrize(
    ("value", "most_bytes"),
    [
        (lambda rng, n: rng.integers(-21, 22, n).astype("f8"), 10.0),
        (lambda rng, n: rng.normal(size=n).astype("f4").astype("f8"), 13.0),
        (lambda rng, n: rng.normal(size=n), 16.0),
    ],
    ids=["returns", "losses", "noise"],
)
def test_encoded_point_size_is_bounded(
    value: Callable[[np.random.Generator, int], NDArray[Any]], most_bytes: float
) -> None:
    rows = points(CHUNK_ROWS) | {"value": value(np.random.default_rng(1), CHUNK_ROWS)}
    assert len(encode(rows)) / CHUNK_ROWS < most_bytes


def test_times_rounded_to_microseconds_compress_better() -> None:
    rows = points(CHUNK_ROWS)
    rounded = rows | {"wall_time_s": np.round(rows["wall_time_s"], 6)}
    saved = (len(encode(rows)) - len(encode(rounded))) / CHUNK_ROWS
    assert saved > 2.5


def test_joined_parts_equal_the_whole() -> None:
    rows = points(50)
    parts = [
        select_rows(rows, slice(0, 20)),
        select_rows(rows, slice(20, 20)),
        select_rows(rows, np.arange(20, 50)),
    ]
    whole = joined(parts)
    assert all(np.array_equal(whole[name], rows[name]) for name in POINT_DTYPES)
    assert n_rows(empty()) == 0
