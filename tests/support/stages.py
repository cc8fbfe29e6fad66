"""Which stage runs a test: `tests` and `browser` are `make test`, `long` is `make test-long`."""

from collections.abc import Collection

STAGES = ("tests", "browser", "long", "benchmark")
BROWSER_TESTS = ("tests/browser", "tests/backend/figures/test_rendering.py")
"""Where tests need a browser: the stage `browser` collects nothing else."""


def stage_of(nodeid: str, marks: Collection[str]) -> str:
    """The one stage that a test belongs to.

    Raises:
        ValueError: a browser test outside `BROWSER_TESTS`, which no stage would run.
    """
    stage = next((name for name in ("benchmark", "long", "browser") if name in marks), "tests")
    if stage == "browser" and not nodeid.startswith(BROWSER_TESTS):
        raise ValueError(f"{nodeid}: tests that need a browser are in {' and '.join(BROWSER_TESTS)}")
    return stage
