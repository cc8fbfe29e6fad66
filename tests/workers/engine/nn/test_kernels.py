"""Caching of compiled kernels. Their results are tested with their callers."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workers.engine.nn import kernels

USE = """
import numpy as np
from workers.engine.nn import kernels

theta, g = np.zeros(3, np.float32), np.zeros(3, np.float32)
kernels.rmsprop(theta, g, np.ones(3, np.float32), 1.0, 0.0, 1.0, 3.0, False)
print(theta.tolist())
"""
EXPECTED = pytest.approx([-0.5, -0.5, -0.5], rel=1e-6)
"""1 / sqrt(1 + 3); some processors compute it by an approximate reciprocal root and one step of Newton's."""


def used(folder: Path) -> list[float]:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", USE], env=environment, check=True, capture_output=True, text=True
    )
    theta: list[float] = json.loads(done.stdout)
    return theta


@pytest.mark.long
@pytest.mark.parametrize("left", [0, 100])
def test_kernels_compile_again_when_cached_code_is_truncated(tmp_path: Path, left: int) -> None:
    assert used(tmp_path) == EXPECTED
    kept = [*tmp_path.rglob("*.nbc"), *tmp_path.rglob("*.nbi")]
    assert kept, "machine code is cached"
    for file in kept:
        os.truncate(file, left)
    assert used(tmp_path) == EXPECTED


@pytest.mark.long
def test_kernels_compile_without_a_cache() -> None:
    source = Path(kernels.__file__).read_text()
    namespace: dict[str, Any] = {"__name__": "nowhere"}
    exec(compile(source, "nowhere", "exec"), namespace)  # Numba caches only code from files
    theta, g = np.zeros(3, np.float32), np.zeros(3, np.float32)
    namespace["rmsprop"](theta, g, np.ones(3, np.float32), 1.0, 0.0, 1.0, 3.0, False)
    assert theta.tolist() == EXPECTED
