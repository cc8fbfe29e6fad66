"""The states of a run and the legal moves between them.

queued -> starting -> running -> finished
             |           |-----> failed
             |           |-----> stopping -> stopped
             '--> lost <-'---------'
                    '--> queued (from the newest intact checkpoint, attempt + 1)
"""

from enum import StrEnum


class RunState(StrEnum):
    """Where a run is in its life."""

    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"
    LOST = "lost"


_S = RunState

TRANSITIONS: dict[RunState, frozenset[RunState]] = {
    _S.QUEUED: frozenset({_S.STARTING, _S.STOPPED}),
    # An engine that dies before its first report is queued again.
    _S.STARTING: frozenset({_S.RUNNING, _S.STOPPING, _S.FINISHED, _S.STOPPED, _S.FAILED, _S.LOST, _S.QUEUED}),
    # SIGTERM to a worker hands the run back to the queue; a signal death does the same.
    _S.RUNNING: frozenset({_S.STOPPING, _S.FINISHED, _S.STOPPED, _S.FAILED, _S.LOST, _S.QUEUED}),
    # A run may reach its own end while it is being stopped.
    _S.STOPPING: frozenset({_S.STOPPED, _S.FINISHED, _S.FAILED, _S.LOST}),
    # A lost run that had been asked to stop has nothing left to stop.
    _S.LOST: frozenset({_S.QUEUED, _S.STOPPED, _S.FAILED}),
    # Resume, with a larger stopping bound where the old one was reached.
    _S.FINISHED: frozenset({_S.QUEUED}),
    _S.STOPPED: frozenset({_S.QUEUED}),
    _S.FAILED: frozenset({_S.QUEUED}),
}
"""The one table of legal transitions: state -> the states that may follow it."""

ENDED = frozenset({_S.FINISHED, _S.STOPPED, _S.FAILED})
"""States in which nothing runs and nothing waits to run."""

LEASED = frozenset({_S.STARTING, _S.RUNNING, _S.STOPPING})
"""States in which some worker holds the run's lease."""
