"""Arrays in memory that processes share."""

import os

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.shared_names import named_memory
from workers.engine.processes.child import Channel, Child, stop
from workers.engine.processes.shared_memory import SharedArrays


class Pair(SharedArrays):
    vectors: NDArray[np.float32]
    counts: NDArray[np.int64]

    def __init__(self) -> None:
        super().__init__({"counts": ((3,), "int64"), "vectors": ((2, 3), "float32")})


def _multiply(channel: Channel, pair: Pair) -> None:
    assert pair.vectors[0].tolist() == [1, 2, 3]
    pair.vectors[1] = 10 * pair.vectors[0]
    pair.counts += 7
    channel.send("multiplied")


@pytest.mark.service
def test_shared_vectors_are_the_same_bytes_and_leave_no_file() -> None:
    before = named_memory(os.getpid())
    pair = Pair()
    assert not pair.vectors.any()
    pair.vectors[0] = [1.0, 2.0, 3.0]
    child = Child(_multiply, pair, name="child 1")
    pair.close()
    child.reply()
    stop([child])
    assert pair.vectors[1].tolist() == [10, 20, 30]
    assert pair.counts.tolist() == [7, 7, 7]
    assert named_memory(os.getpid()) <= before
