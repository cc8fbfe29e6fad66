"""Vectors in memory that processes share."""

import os
import subprocess
import sys

import torch

from workers.engine.memory import SharedVectors

CHILD = """
import sys
from workers.engine.memory import SharedVectors
first, second = SharedVectors(2, 3, fd=int(sys.argv[1])).vectors()
assert first.tolist() == [1, 2, 3]
second.copy_(first * 10)
"""


def test_processes_see_the_same_bytes_and_no_name_is_left() -> None:
    named = set(os.listdir("/dev/shm"))
    memory = SharedVectors(2, 3)
    first, second = memory.vectors()
    assert not first.any()
    first.copy_(torch.tensor([1.0, 2.0, 3.0]))
    subprocess.run([sys.executable, "-c", CHILD, str(memory.fd)], pass_fds=(memory.fd,), check=True)
    assert second.tolist() == [10, 20, 30]
    assert set(os.listdir("/dev/shm")) <= named
