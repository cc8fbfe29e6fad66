"""Which stage runs a test: `tests` and `browser` are `make test`, `long` is `make test-long`."""

from collections.abc import Collection, Sequence
from typing import Any

import pytest

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


def sample(cases: Sequence[Any], *places: int) -> list[Any]:
    """`cases` as parameters of a test: those at `places` for `make test`, the others `long`."""
    if not set(places) <= set(range(len(cases))):
        raise ValueError(f"there are {len(cases)} cases, none at some of {places}")
    return [
        case if place in places else pytest.param(*_values(case), marks=pytest.mark.long)
        for place, case in enumerate(cases)
    ]


def _values(case: Any) -> tuple[Any, ...]:
    return case if isinstance(case, tuple) else (case,)
