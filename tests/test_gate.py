"""When `make test` retries failed tests."""

import pytest

from tests.gate import MAX_RETRIED, Outcome, why_no_retry

TEST = "tests/backend/runs/runs/test_filters.py::test_it"


def outcome(*failed: str, exit_code: int = 1, finished: bool = True) -> Outcome:
    """The outcome of a run of some tests, of which these failed."""
    outcome = Outcome()
    outcome.exit_code = exit_code
    outcome.selected = dict.fromkeys([*failed, "passes"])
    outcome.finished = dict.fromkeys(outcome.selected if finished else failed)
    outcome.failed = dict.fromkeys(failed)
    return outcome


def test_at_most_five_failed_tests_are_retried() -> None:
    assert why_no_retry(outcome(exit_code=0)) is None
    assert why_no_retry(outcome(TEST)) is None
    assert why_no_retry(outcome(*[f"{TEST}[{n}]" for n in range(MAX_RETRIED)])) is None
    too_many = outcome(*[f"{TEST}[{n}]" for n in range(MAX_RETRIED + 1)])
    assert why_no_retry(too_many) == "6 tests failed, at most 5 are retried"


@pytest.mark.parametrize(
    "file",
    [
        "backend/coordination/test_claims.py",
        "workers/test_recorder.py",
        "backend/db/test_engine.py",
        "backend/runs/runs/test_repository.py",
    ],
)
def test_failure_that_may_be_a_race_in_the_product_is_never_retried(file: str) -> None:
    reason = why_no_retry(outcome(TEST, f"tests/{file}::test_it[sqlite]"))
    assert reason == f"not retried, as it may be a race in the product: tests/{file}::test_it[sqlite]"


def test_nothing_is_retried_after_an_error_of_collection_a_crash_or_an_interruption() -> None:
    for reasons in ("broken", "crashes"):
        damaged = outcome(TEST)
        getattr(damaged, reasons).append("a reason")
        assert why_no_retry(damaged) == "a reason"
    assert why_no_retry(outcome(TEST, finished=False)) == "1 selected tests have no result"
    assert why_no_retry(outcome(TEST, exit_code=2)) == "pytest ended with exit code 2"
    assert why_no_retry(outcome(exit_code=1)) == "pytest ended with exit code 1"
