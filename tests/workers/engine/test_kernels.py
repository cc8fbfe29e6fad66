"""What is kept of the compiled loops. What they compute is tested where they are called."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workers.engine import kernels

USE = """
import numpy as np
from workers.engine import kernels

theta, g = np.zeros(3, np.float32), np.zeros(3, np.float32)
kernels.rmsprop(theta, g, np.ones(3, np.float32), 1.0, 0.0, 1.0, 3.0, False)
print(theta.tolist())
"""


def used(folder: Path) -> str:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", USE], env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.mark.long
@pytest.mark.parametrize("left", [0, 100])
def test_machine_code_that_was_cut_short_stops_no_engine(tmp_path: Path, left: int) -> None:
    assert used(tmp_path) == "[-0.5, -0.5, -0.5]"
    kept = [*tmp_path.rglob("*.nbc"), *tmp_path.rglob("*.nbi")]
    assert kept, "it is kept from process to process"
    for file in kept:
        os.truncate(file, left)
    assert used(tmp_path) == "[-0.5, -0.5, -0.5]"


def test_where_machine_code_can_be_kept_nowhere_it_is_compiled_all_the_same() -> None:
    source = Path(kernels.__file__).read_text()
    found: dict[str, Any] = {"__name__": "nowhere"}
    exec(compile(source, "nowhere", "exec"), found)  # Numba keeps nothing of what is in no file
    theta, g = np.zeros(3, np.float32), np.zeros(3, np.float32)
    found["rmsprop"](theta, g, np.ones(3, np.float32), 1.0, 0.0, 1.0, 3.0, False)
    assert theta.tolist() == [-0.5, -0.5, -0.5]
