"""The command that runs the engine's tests marked `cuda`, on a host without our own packages."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def list_files() -> list[str]:
    """The test files whose tests may be marked `cuda`: others import what a GPU host lacks."""
    paths = sorted((ROOT / "tests/workers/engine").rglob("test_*.py"))
    texts = {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in paths}
    return [name for name, text in texts.items() if "tests.support.devices" in text or "mark.cuda" in text]


def command(device: str) -> list[str]:
    """The command, to be run in `ROOT`. Without a GPU it runs what these tests do on the CPU."""
    selection = ["-k", "cpu"] if device == "cpu" else ["-m", "cuda"]
    pytest = [sys.executable, "-m", "pytest", "--noconftest", "-p", "tests.support.engine_fixtures"]
    pytest += [
        "--continue-on-collection-errors",
        "-p",
        "no:cacheprovider",
        "-o",
        "filterwarnings=default",
    ]  # other versions, other warnings
    return [*pytest, *selection, *list_files()]
