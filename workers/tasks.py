"""Celery tasks: `callboard.train` executes an attempt, `callboard.wake` wakes the host agent.

A claim is a row, created before its task exists, so the task needs no message. `AttemptTasks` passes the task
to this worker's own pool, as Celery's consumer passes on a received task. So Celery's tools show where each
attempt trains, `revoke` reaches it, and neither a lost message nor a hanging Redis delays it. A message for
`callboard.train`, whoever sends it, is ignored.
"""

from concurrent.futures import ThreadPoolExecutor
from signal import SIGKILL
from time import sleep
from types import SimpleNamespace
from typing import Any

from celery import Celery
from celery.app.trace import build_tracer
from celery.exceptions import Ignore
from celery.worker import WorkController
from celery.worker.request import Request
from celery.worker.state import revoked, task_reserved

from backend.pubsub.bus import WAKE_TASK
from backend.specs.states import RunState
from workers.host_agent import HostAgent
from workers.supervisor import Supervisor

TRAIN_TASK = "callboard.train"
"""Celery task that executes an attempt on the host that has claimed it."""


CONNECT_INTERVAL_S = 0.5
"""How often events that wait look for a connection to Redis."""


class AttemptFailed(Exception):
    """The attempt ended in the state `failed`; the message is the reason."""


class AttemptTasks:
    """Executes the attempts that this worker has claimed as Celery tasks with the ids `<run>-<attempt>`.

    Args:
        app: the application of the worker.
    """

    def __init__(self, app: Celery) -> None:
        self._app = app
        self._worker: Any = None
        """A `WorkController`, whose attributes celery-types lacks; None before it starts."""
        self._request: type[Request] = Request
        self._claimed: dict[tuple[str, int], Supervisor] = {}
        """Attempts whose tasks have not begun."""
        self._events = ThreadPoolExecutor(1, "task-events")
        """Sends the events of tasks: no attempt waits for Redis, which may be away or hang."""

    def register(self, agent: HostAgent) -> None:
        """Register the tasks of a host agent."""
        attempts = self

        class TrainRequest(Request):
            """Makes `revoke --terminate` a stop of the run: a thread cannot be terminated."""

            def terminate(self, pool: Any, signal: int | None = None) -> None:
                """Request a stop, or a kill if the signal is SIGKILL; the task ends with its attempt."""
                agent.revoke(*self.args, kill=signal == SIGKILL)

            def revoked(self) -> bool:
                """False: a claimed attempt is stopped through its run, whatever was revoked, and when."""
                return False

            def send_event(self, type: str, **fields: Any) -> None:
                """Send an event of the task, soon."""
                attempts._events.submit(attempts._send_event, type, uuid=self.id, **fields)

        @self._app.task(name=WAKE_TASK, ignore_result=True)
        def wake() -> None:
            """Check for work now."""
            agent.wake()

        @self._app.task(name=TRAIN_TASK, ignore_result=True, throws=(AttemptFailed,), Request=TrainRequest)
        def train(run_id: str, attempt: int) -> str:
            """Execute a claimed attempt to its end.

            Raises:
                Ignore: this worker has not claimed it, or another task executes it.
                AttemptFailed: the run has failed.
            """
            supervisor = self._claimed.pop((run_id, attempt), None)
            if supervisor is None:
                raise Ignore
            supervisor.run()
            outcome = supervisor.outcome
            if outcome is None:
                return "superseded"
            if outcome.state == RunState.FAILED:
                raise AttemptFailed(outcome.reason)
            return f"{outcome.state}: {outcome.reason}"

        self._request = TrainRequest

    def use(self, worker: WorkController) -> None:
        """Execute attempts in the pool of this worker, also before it has been connected to Redis."""
        self._worker = worker
        hostname: str = self._worker.hostname
        task = self._app.tasks[TRAIN_TASK]
        # Celery prepares a task for the pool when the worker connects.
        task.__trace__ = build_tracer(task.name, task, hostname=hostname, app=self._app)

    def execute(self, supervisor: Supervisor) -> None:
        """Execute a claimed attempt as a task; returns immediately."""
        assert self._worker is not None
        claim = supervisor.claim
        task_id, arguments = f"{claim.run_id}-{claim.attempt}", [claim.run_id, claim.attempt]
        message = self._app.amqp.create_task_message(task_id, TRAIN_TASK, arguments, {})
        request = self._request(
            SimpleNamespace(delivery_info={}, properties=message.properties),
            app=self._app,
            hostname=self._worker.hostname,
            headers=message.headers,
            body=message.body,
            decoded=True,
        )
        self._claimed[claim.run_id, claim.attempt] = supervisor
        task_reserved(request)
        request.send_event(
            "task-received",
            name=TRAIN_TASK,
            args=request.argsrepr,
            kwargs=request.kwargsrepr,
            root_id=task_id,
            parent_id=None,
            retries=0,
            eta=None,
            expires=None,
        )
        revoked.discard(task_id)  # the id may have been revoked before the claim
        request.execute_using_pool(self._worker.pool)

    def _send_event(self, type: str, **fields: Any) -> None:
        """Send an event once the worker is connected to Redis, which an attempt does not wait for."""
        while (dispatcher := self._dispatcher()) is None:
            sleep(CONNECT_INTERVAL_S)
        dispatcher.send(type, **fields)

    def _dispatcher(self) -> Any:
        """What sends the events of the connected worker; None while it is not connected."""
        dispatcher = getattr(getattr(self._worker, "consumer", None), "event_dispatcher", None)
        return dispatcher if dispatcher is not None and dispatcher.enabled else None
