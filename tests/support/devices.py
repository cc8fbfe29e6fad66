"""The devices of parametrized tests: the CPU, and a GPU if there is one."""

import pytest
import torch

GPU = [pytest.mark.cuda, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]
"""Marks of a test, or of a parameter, that needs a GPU."""
DEVICES = ["cpu", pytest.param("cuda", marks=GPU)]
