import errno
from typing import Literal

import pytest

from backend.db import Run
from backend.specs import machine_faults
from backend.specs.events import EndedEvent
from backend.specs.machine_faults import UNREADABLE_CHECKPOINT_STATUS
from backend.specs.states import TRANSITIONS, RunState
from workers.outcome import attempt_outcome, command_outcome

EngineState = Literal["finished", "stopped", "failed"]


def _event(state: EngineState) -> EndedEvent:
    return EndedEvent(
        time=0.0, state=state, reason="the reason", traceback="T" if state == "failed" else None
    )


@pytest.mark.parametrize(
    ("final_event", "exit_status", "requested", "is_shutting_down", "attempts", "expected"),
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
def test_attempt_outcome_follows_final_event_exit_status_and_request(
    final_event: EngineState | None,
    exit_status: int | None,
    requested: str | None,
    is_shutting_down: bool,
    attempts: int,
    expected: str,
) -> None:
    run = Run(stop_requested=requested, attempts_without_checkpoint=attempts, host="a")
    event = _event(final_event) if final_event else None
    outcome = attempt_outcome(
        run, event, exit_status, is_shutting_down=is_shutting_down, stop_timed_out=False, output_tail="tail"
    )
    assert outcome.state == expected
    before = RunState.STOPPING if requested else RunState.RUNNING
    assert outcome.state in TRANSITIONS[before]
    assert outcome.reason


@pytest.mark.parametrize(
    ("attempts", "is_damaged", "expected", "counts_as_attempt"),
    [(3, True, "queued", False), (1, False, "queued", True), (3, False, "failed", True)],
)
def test_run_with_an_unreadable_checkpoint_is_queued_again_unless_an_intact_one_is_unreadable_three_times(
    attempts: int, is_damaged: bool, expected: str, counts_as_attempt: bool
) -> None:
    run = Run(stop_requested=None, attempts_without_checkpoint=attempts, host="a")
    outcome = attempt_outcome(
        run,
        None,
        UNREADABLE_CHECKPOINT_STATUS,
        is_shutting_down=False,
        stop_timed_out=False,
        output_tail="tail",
        has_damaged_checkpoint=is_damaged,
    )
    assert (outcome.state, outcome.counts_as_attempt) == (expected, counts_as_attempt)
    assert outcome.reason.startswith("its engine could not read the checkpoint to resume from: ")
    assert outcome.error == ("tail" if expected == "failed" else None)


def test_failed_outcome_has_error_and_reason() -> None:
    run = Run(stop_requested=None, attempts_without_checkpoint=1, host="a")
    assert (
        attempt_outcome(
            run, _event("failed"), 1, is_shutting_down=False, stop_timed_out=False, output_tail="tail"
        ).error
        == "T"
    )
    died = attempt_outcome(run, None, 3, is_shutting_down=False, stop_timed_out=False, output_tail="tail")
    assert (died.error, died.reason) == ("tail", "its engine exited with status 3 and no final event")


@pytest.mark.parametrize(
    ("exit_status", "expected"),
    [
        (-9, "engine killed (SIGKILL, possibly out of memory)"),
        (-11, "engine killed (SIGSEGV, a crash in native code)"),
        (-15, "engine killed (SIGTERM)"),
        (-64, "engine killed (SIGRTMAX)"),
        (-99, "engine killed (signal 99)"),
    ],
)
def test_outcome_of_killed_engine_names_likely_cause(exit_status: int, expected: str) -> None:
    run = Run(stop_requested=None, attempts_without_checkpoint=1, host="a")
    killed = attempt_outcome(
        run, None, exit_status, is_shutting_down=False, stop_timed_out=False, output_tail=""
    )
    assert killed.reason == f"{expected}: to resume from its latest checkpoint, if it has one"
    assert killed.level == "warning"
    run.attempts_without_checkpoint = 3
    failed = attempt_outcome(
        run, None, exit_status, is_shutting_down=False, stop_timed_out=False, output_tail=""
    )
    assert failed.reason == f"{expected}: 3 attempts without a new checkpoint"


@pytest.mark.parametrize(
    ("requested", "stop_timed_out", "reason"),
    [
        ("kill", False, "killed on request"),
        ("stop", True, "killed: the stop timed out"),
        ("stop", False, "engine killed (SIGKILL, possibly out of memory) after a stop was requested"),
    ],
)
def test_stopped_outcome_without_final_event_has_reason(
    requested: str, stop_timed_out: bool, reason: str
) -> None:
    run = Run(stop_requested=requested, attempts_without_checkpoint=1, host="a")
    outcome = attempt_outcome(
        run, None, -9, is_shutting_down=False, stop_timed_out=stop_timed_out, output_tail=""
    )
    assert (outcome.state, outcome.reason) == ("stopped", reason)


@pytest.mark.parametrize("requested", ["stop", "kill"])
def test_stopped_outcome_of_an_engine_that_a_disk_fault_ended_names_the_fault(requested: str) -> None:
    run = Run(stop_requested=requested, attempts_without_checkpoint=1, host="a")
    status = machine_faults.exit_status(errno.ENOSPC)
    outcome = attempt_outcome(
        run, None, status, is_shutting_down=False, stop_timed_out=False, output_tail="tail"
    )
    reason = "the disk of a failed after a stop was requested: No space left on device"
    assert (outcome.state, outcome.reason) == ("stopped", reason)


def test_engine_on_a_disk_mounted_read_only_is_queued_again_with_the_reason() -> None:
    fault = machine_faults.errno_of(OSError(errno.EROFS, "Read-only file system"))
    assert fault is not None
    run = Run(stop_requested=None, attempts_without_checkpoint=1, host="a")
    outcome = attempt_outcome(
        run,
        None,
        machine_faults.exit_status(fault),
        is_shutting_down=False,
        stop_timed_out=False,
        output_tail="tail",
    )
    assert (outcome.state, outcome.reason) == ("queued", "the disk of a failed: Read-only file system")


@pytest.mark.parametrize(("attempts", "expected"), [(1, "queued"), (3, "failed")])
def test_engine_whose_final_event_is_damaged_counts_as_dead(attempts: int, expected: str) -> None:
    outcome = attempt_outcome(
        Run(stop_requested=None, attempts_without_checkpoint=attempts, host="a"),
        None,
        0,
        is_shutting_down=False,
        stop_timed_out=False,
        output_tail="",
        has_unread_tail=True,
    )
    assert outcome.state == expected
    assert outcome.reason.startswith("the end of its event log is damaged (check the disk of a): ")


@pytest.mark.parametrize(
    ("exit_status", "requested", "is_shutting_down", "expected"),
    [
        (0, None, False, "finished"),
        (0, None, True, "queued"),
        (0, "stop", True, "stopped"),
        (1, None, False, "failed"),
        (1, None, True, "queued"),
        (-15, None, False, "queued"),
        (-9, "kill", False, "stopped"),
        (None, None, True, "queued"),
    ],
)
def test_outcome_of_a_command_follows_its_exit_status_unless_its_worker_ends_it(
    exit_status: int | None, requested: str | None, is_shutting_down: bool, expected: str
) -> None:
    run = Run(stop_requested=requested, attempts_without_checkpoint=1, host="a")
    outcome = command_outcome(
        run, exit_status, is_shutting_down=is_shutting_down, stop_timed_out=False, output_tail="tail"
    )
    assert outcome.state == expected
