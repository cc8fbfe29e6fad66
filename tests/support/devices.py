"""Tests that run wherever a network can live: on the CPU, and on a GPU where there is one."""

import pytest
import torch

DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")),
]
