"""What every test of the engine wants."""

import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    """As the engine's own processes have it."""
    torch.set_num_threads(1)
