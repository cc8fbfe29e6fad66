"""Fixtures of the engine's tests that need no other package of ours: `benchmarks/gpu` loads them alone."""

import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    """As `prepare_torch` sets up the engine's own processes: one thread, and no TF32 on a GPU."""
    torch.set_num_threads(1)
    torch.backends.cudnn.allow_tf32 = False


@pytest.fixture(autouse=True)
def seeded() -> None:
    """A network that a test draws without a seed is the same in any order of the tests."""
    torch.manual_seed(0)
