"""What every test of the engine wants."""

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    """As the engine's own processes have it."""
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def subnormal_numbers() -> Iterator[None]:
    """A command called in this process may have switched them off, as engines do; others test with them."""
    yield
    torch.set_flush_denormal(False)
