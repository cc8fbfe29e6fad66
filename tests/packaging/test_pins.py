"""Whether what is pinned can be installed without a compiler on Pythons that nobody has tried yet."""

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from backend.specs import extras

PINS = dict(
    line.split("==") for line in (Path(__file__).parents[2] / "constraints.txt").read_text().splitlines()[1:]
)
GLIBC_MINORS = (5, 12, 17, 24, 26, 27, 28, 31, 34)
PLATFORMS = [*(f"manylinux_2_{minor}_x86_64" for minor in GLIBC_MINORS), "manylinux2014_x86_64", "any"]
WITHOUT_WHEEL = {"Box2D": "racing"}
"""Packages without a wheel for Python 3.14, and what they are for."""


@pytest.mark.service
@pytest.mark.long
def test_pins_have_wheels_for_the_next_python() -> None:
    reached = subprocess.run(_query("pip", "3.14"), capture_output=True, text=True, check=False)
    if reached.returncode != 0:
        pytest.skip(f"no package index can be reached: {reached.stderr.strip()[-200:]}")
    with ThreadPoolExecutor(4) as threads:
        versions = dict(zip(PINS, threads.map(_versions, PINS), strict=True))
    missing = {name for name, pin in PINS.items() if pin not in versions[name]}
    assert missing == set(WITHOUT_WHEEL)
    assert missing <= set(extras.PACKAGES.values()), "what has no wheel is an extra"


def _query(name: str, python: str) -> list[str]:
    platforms = [f"--platform={platform}" for platform in PLATFORMS]
    command = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "index",
        "versions",
        name,
    ]
    return [*command, "--only-binary=:all:", f"--python-version={python}", "--pre", *platforms]


def _versions(name: str) -> set[str]:
    """The versions of a package that have a wheel for Python 3.14, or one for any."""
    done = subprocess.run(_query(name, "3.14"), capture_output=True, text=True, check=False)
    listed = re.search(r"Available versions: (.+)", done.stdout)
    return set(listed[1].split(", ")) if listed else set()
