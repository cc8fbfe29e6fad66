"""The outcome of an attempt whose engine has exited."""

import signal
from dataclasses import dataclass

from backend.coordination import claims
from backend.db import Run
from backend.runs.runs.service import LogLevel
from backend.specs import machine_faults
from backend.specs.events import EndedEvent
from backend.specs.states import RunState


@dataclass(frozen=True)
class AttemptOutcome:
    """The run's next state, the reason, the error if there is one, and the level of the log line."""

    state: RunState
    reason: str
    error: str | None = None
    level: LogLevel | None = None
    """Level of the log line; by default that of the state."""
    counts_as_attempt: bool = True
    """Whether it counts towards the run's limit of attempts. A worker's shutdown, a damaged checkpoint and a
    disk fault do not. Of a run that is to stop it makes no difference."""


def attempt_outcome(
    run: Run,
    final_event: EndedEvent | None,
    exit_status: int | None,
    *,
    is_shutting_down: bool,
    stop_timed_out: bool,
    output_tail: str,
    has_unread_tail: bool = False,
    has_damaged_checkpoint: bool = False,
) -> AttemptOutcome:
    """The outcome of the attempt that holds `run`.

    Args:
        run: locked, because a stop may be requested until now.
        final_event: the engine's `EndedEvent`; None if its log has none.
        exit_status: exit status of the engine's process, negative for a signal; None if it was never started.
        is_shutting_down: whether the worker is shutting down.
        stop_timed_out: whether the engine was killed because a stop took too long.
        output_tail: the end of the engine's output.
        has_unread_tail: whether the end of the engine's event log, which may be the final event, cannot be
            read.
        has_damaged_checkpoint: whether the checkpoint that the engine could not read is damaged.
    """
    if final_event is not None and final_event.state != "stopped":
        return AttemptOutcome(RunState(final_event.state), final_event.reason, final_event.traceback)
    died = _death(exit_status)
    fault = machine_faults.errno_of_exit_status(exit_status)
    if run.stop_requested:
        if final_event is not None:
            return AttemptOutcome(RunState.STOPPED, final_event.reason)
        if fault is not None:
            return machine_fault(run, fault)
        if run.stop_requested == "kill":
            return AttemptOutcome(RunState.STOPPED, "killed on request")
        if stop_timed_out:
            return AttemptOutcome(RunState.STOPPED, "killed: the stop timed out", level="warning")
        return AttemptOutcome(RunState.STOPPED, f"{died} after a stop was requested", level="warning")
    if is_shutting_down:
        return AttemptOutcome(
            RunState.QUEUED, f"its worker on {run.host} is shutting down", counts_as_attempt=False
        )
    if final_event is not None:
        reason = f"its engine was stopped by another process: {final_event.reason}"
        return AttemptOutcome(RunState.QUEUED, reason, level="warning")
    if fault is not None:
        return machine_fault(run, fault)
    if exit_status == machine_faults.UNREADABLE_CHECKPOINT_STATUS:
        if has_damaged_checkpoint:
            return AttemptOutcome(
                RunState.QUEUED,
                f"{died}: it will resume from an intact one",
                level="warning",
                counts_as_attempt=False,
            )
    elif exit_status is not None and exit_status >= 0:
        if not has_unread_tail:
            return AttemptOutcome(RunState.FAILED, died, output_tail or died)
        # An engine that exits closes its log first, so the disk must have damaged the log.
        died = f"the end of its event log is damaged (check the disk of {run.host})"
    state, reason = claims.state_after_death(run)
    if state == RunState.FAILED:
        return AttemptOutcome(state, f"{died}: {reason}", output_tail or None)
    return AttemptOutcome(state, f"{died}: {reason}", level="warning")


def command_outcome(
    run: Run, exit_status: int | None, *, is_shutting_down: bool, stop_timed_out: bool, output_tail: str
) -> AttemptOutcome:
    """The outcome of an attempt of a host's command, whose exit status says whether it has succeeded.

    Args:
        run: locked, because a stop may be requested until now.
        exit_status: of its process, negative for a signal; None if it was never started.
        is_shutting_down: whether the shutdown of the worker has ended it, whatever its status: a script that
            handles SIGTERM may exit with 0.
        stop_timed_out: whether it was killed because a stop took too long.
        output_tail: the end of its output.
    """
    if run.stop_requested:
        if run.stop_requested == "kill":
            return AttemptOutcome(RunState.STOPPED, "killed on request")
        if stop_timed_out:
            return AttemptOutcome(RunState.STOPPED, "killed: the stop timed out", level="warning")
        return AttemptOutcome(RunState.STOPPED, "its command has ended on request")
    if is_shutting_down:
        return AttemptOutcome(
            RunState.QUEUED, f"its worker on {run.host} is shutting down", counts_as_attempt=False
        )
    if exit_status == 0:
        return AttemptOutcome(RunState.FINISHED, "its command has ended")
    if exit_status is not None and exit_status > 0:
        died = f"its command exited with status {exit_status}"
        return AttemptOutcome(RunState.FAILED, died, output_tail or died)
    died = _death(exit_status).replace("engine", "command")
    state, reason = claims.state_after_death(run)
    if state == RunState.FAILED:
        return AttemptOutcome(state, f"{died}: {reason}", output_tail or None)
    return AttemptOutcome(state, f"{died}: {reason}", level="warning")


_LIKELY_CAUSES = {
    signal.SIGKILL: "possibly out of memory",
    signal.SIGSEGV: "a crash in native code",
    signal.SIGABRT: "aborted by a native library",
    signal.SIGBUS: "possibly no room in /dev/shm",
    signal.SIGILL: "an instruction that this processor lacks",
}
"""Likely causes of signals. Where they are shown, the supervisor has not sent the signal itself."""


def machine_fault(run: Run, number: int) -> AttemptOutcome:
    """The outcome of an attempt that a fault of its machine's disk ended."""
    words = machine_faults.describe(number)
    if run.stop_requested:
        return AttemptOutcome(
            RunState.STOPPED,
            f"the disk of {run.host} failed after a stop was requested: {words}",
            level="warning",
        )
    return AttemptOutcome(
        RunState.QUEUED, f"the disk of {run.host} failed: {words}", level="warning", counts_as_attempt=False
    )


def _death(exit_status: int | None) -> str:
    """How the engine ended, with the likely cause of its signal."""
    if exit_status is None:
        return "its engine never started"
    if exit_status == machine_faults.UNREADABLE_CHECKPOINT_STATUS:
        return "its engine could not read the checkpoint to resume from"
    if exit_status >= 0:
        return f"its engine exited with status {exit_status} and no final event"
    try:
        name = signal.Signals(-exit_status)
    except ValueError:
        return f"engine killed (signal {-exit_status})"
    cause = _LIKELY_CAUSES.get(name)
    return f"engine killed ({name.name}, {cause})" if cause else f"engine killed ({name.name})"
