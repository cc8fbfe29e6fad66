"""The example of an algorithm as a distribution of its own passes the contract test of all algorithms."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.long
def test_example_of_a_distribution_passes_the_contract_test(tmp_path: Path) -> None:
    source, site = tmp_path / "source", tmp_path / "site"
    shutil.copytree(ROOT / "examples" / "algorithm_package", source)  # a build leaves files there
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*pip, "--no-build-isolation", "--target", str(site), str(source)], check=True)
    pytest_command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*pytest_command, "tests/workers/engine/test_contract.py", "-k", "a2c_gae"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(site), str(ROOT), str(ROOT / "client")])},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "5 passed" in done.stdout
