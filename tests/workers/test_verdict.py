import pytest

from backend.db import Run
from backend.specs.events import Ended
from backend.specs.states import TRANSITIONS, RunState
from workers.verdict import judge


def _word(state: str) -> Ended:
    return Ended(time=0.0, state=state, reason="the reason", traceback="T" if state == "failed" else None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("last_word", "exit_status", "wish", "handing_back", "attempts", "expected"),
    [
        ("finished", 0, None, False, 1, "finished"),
        ("finished", 0, "stop", False, 1, "finished"),
        ("finished", -9, None, True, 1, "finished"),
        ("failed", 1, None, False, 1, "failed"),
        ("failed", 1, "kill", False, 1, "failed"),
        ("stopped", 0, "stop", False, 1, "stopped"),
        ("stopped", 0, "kill", True, 1, "stopped"),
        ("stopped", 0, None, True, 1, "queued"),
        ("stopped", 0, None, False, 1, "queued"),
        (None, -9, None, False, 1, "queued"),
        (None, -9, None, False, 3, "failed"),
        (None, -9, None, True, 3, "queued"),
        (None, -9, "stop", False, 3, "stopped"),
        (None, -9, "kill", False, 1, "stopped"),
        (None, 1, None, False, 1, "failed"),
        (None, 0, None, False, 1, "failed"),
        (None, 2, "stop", False, 1, "stopped"),
        (None, None, None, True, 1, "queued"),
        (None, None, "stop", False, 1, "stopped"),
    ],
)
def test_every_way_to_end(
    last_word: str | None,
    exit_status: int | None,
    wish: str | None,
    handing_back: bool,
    attempts: int,
    expected: str,
) -> None:
    run = Run(stop_requested=wish, attempts_without_checkpoint=attempts, host="a")
    word = _word(last_word) if last_word else None
    verdict = judge(
        run, word, exit_status, handing_back=handing_back, out_of_patience=False, output_tail="tail"
    )
    assert verdict.state == expected
    before = RunState.STOPPING if wish else RunState.RUNNING
    assert verdict.state in TRANSITIONS[before]
    assert verdict.reason


def test_a_failure_says_what_to_mend() -> None:
    run = Run(stop_requested=None, attempts_without_checkpoint=1, host="a")
    assert (
        judge(run, _word("failed"), 1, handing_back=False, out_of_patience=False, output_tail="tail").error
        == "T"
    )
    died = judge(run, None, 3, handing_back=False, out_of_patience=False, output_tail="tail")
    assert (died.error, died.reason) == ("tail", "its engine ended with exit status 3 and no last word")
    killed = judge(run, None, -11, handing_back=False, out_of_patience=False, output_tail="")
    assert "SIGSEGV" in killed.reason


@pytest.mark.parametrize(
    ("wish", "out_of_patience", "reason"),
    [
        ("kill", False, "ended at once"),
        ("stop", True, "ended by force: it did not stop when asked"),
        ("stop", False, "its engine died by SIGKILL when it had been asked to stop"),
    ],
)
def test_a_stop_without_a_last_word_says_how(wish: str, out_of_patience: bool, reason: str) -> None:
    run = Run(stop_requested=wish, attempts_without_checkpoint=1, host="a")
    verdict = judge(run, None, -9, handing_back=False, out_of_patience=out_of_patience, output_tail="")
    assert (verdict.state, verdict.reason) == ("stopped", reason)
