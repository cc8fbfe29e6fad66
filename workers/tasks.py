"""Celery tasks: `callboard.train` executes an attempt, `callboard.wake` wakes the host agent."""

from signal import SIGKILL
from typing import Any

from celery import Celery
from celery.exceptions import Ignore
from celery.worker.request import Request

from backend.pubsub.bus import TRAIN_TASK, WAKE_TASK
from backend.specs.states import RunState
from workers.host_agent import HostAgent


class AttemptFailed(Exception):
    """The attempt ended in the state `failed`; the message is the reason."""


def register(app: Celery, agent: HostAgent) -> None:
    """Register the tasks of a host agent."""

    class TrainRequest(Request):
        """Makes `revoke --terminate` a stop of the run: a thread cannot be terminated."""

        def terminate(self, pool: Any, signal: int | None = None) -> None:
            """Request a stop, or a kill if the signal is SIGKILL; the task ends with its attempt."""
            if self.time_start is None:
                super().terminate(pool, signal)
            else:
                agent.revoke(*self.args, kill=signal == SIGKILL)

    @app.task(name=WAKE_TASK, ignore_result=True)
    def wake() -> None:
        """Check for work now."""
        agent.wake()

    @app.task(name=TRAIN_TASK, ignore_result=True, throws=(AttemptFailed,), Request=TrainRequest)
    def train(run_id: str, attempt: int) -> str:
        """Execute an attempt that this worker has claimed, to its end.

        Raises:
            Ignore: this worker does not hold it, or another task executes it.
            AttemptFailed: the run has failed.
        """
        supervisor = agent.dispatcher.execute(run_id, attempt)
        if supervisor is None:
            raise Ignore
        outcome = supervisor.outcome
        if outcome is None:
            return "superseded"
        if outcome.state == RunState.FAILED:
            raise AttemptFailed(outcome.reason)
        return f"{outcome.state}: {outcome.reason}"
