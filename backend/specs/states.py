"""The states of a run and the legal transitions between them.

queued -> starting -> running -> finished
             |           |-----> failed
             |           |-----> stopping -> stopped
             '--> lost <-'---------'
                    '--> queued (from the latest intact checkpoint, attempt + 1)

An external run starts as running, but for that of a host's command, which workers run as their own. A lost
or ended external run is running again once its script sends a heartbeat with the state running.
"""

from enum import StrEnum


class RunState(StrEnum):
    """State of a run."""

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
    # A queued run whose specification is damaged fails.
    _S.QUEUED: frozenset({_S.STARTING, _S.STOPPED, _S.FAILED}),
    # An engine that dies before its first report is queued again.
    _S.STARTING: frozenset({_S.RUNNING, _S.STOPPING, _S.FINISHED, _S.STOPPED, _S.FAILED, _S.LOST, _S.QUEUED}),
    # SIGTERM to a worker requeues the run; so does an engine killed by a signal.
    _S.RUNNING: frozenset({_S.STOPPING, _S.FINISHED, _S.STOPPED, _S.FAILED, _S.LOST, _S.QUEUED}),
    # A run may finish while it is being stopped.
    _S.STOPPING: frozenset({_S.STOPPED, _S.FINISHED, _S.FAILED, _S.LOST}),
    # A lost run with a pending stop request has nothing left to stop.
    _S.LOST: frozenset({_S.QUEUED, _S.STOPPED, _S.FAILED}),
    # Resume, with a larger limit if the old one was reached.
    _S.FINISHED: frozenset({_S.QUEUED}),
    _S.STOPPED: frozenset({_S.QUEUED}),
    _S.FAILED: frozenset({_S.QUEUED}),
}
"""The table of legal transitions: state -> possible next states."""

EXTERNAL_TRANSITIONS: dict[RunState, frozenset[RunState]] = {
    _S.RUNNING: frozenset({_S.STOPPING, _S.FINISHED, _S.STOPPED, _S.FAILED, _S.LOST}),
    _S.STOPPING: frozenset({_S.FINISHED, _S.STOPPED, _S.FAILED}),
    _S.LOST: frozenset({_S.RUNNING, _S.FINISHED, _S.STOPPED, _S.FAILED}),
    # The script has the last word; it resumes an ended run with a heartbeat.
    _S.FINISHED: frozenset({_S.RUNNING, _S.STOPPED, _S.FAILED}),
    _S.STOPPED: frozenset({_S.RUNNING, _S.FINISHED, _S.FAILED}),
    _S.FAILED: frozenset({_S.RUNNING, _S.FINISHED, _S.STOPPED}),
}
"""The same for external runs that are never queued."""

ENDED = frozenset({_S.FINISHED, _S.STOPPED, _S.FAILED})
BROKEN_OFF = frozenset({_S.STOPPED, _S.FAILED, _S.LOST})
"""Did not come to its end."""
"""States in which nothing runs and nothing is queued."""

LEASED = frozenset({_S.STARTING, _S.RUNNING, _S.STOPPING})
"""States in which a worker holds the lease of the run; the heartbeats of an external run are its lease."""
