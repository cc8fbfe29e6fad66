"""The worker process: the host agent claims runs, Celery tasks execute them.

The agent is a bootstep of the Celery worker that starts before the Redis connection, so that a host trains
even without Redis.

`celery -A workers.celery_app inspect ping|active|stats`, with the worker's `CALLBOARD_*` variables, shows
every host and the runs that it trains. Workers are started by `callboard worker`, never by `celery worker`.
"""

import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import structlog
from celery import Celery, bootsteps
from celery.signals import setup_logging, worker_shutting_down

from backend.coordination.context import Context
from backend.db.changes import host_queue
from backend.platform.settings import Settings
from backend.pubsub.bus import celery_url
from workers import tasks
from workers.engine_process import ENGINE_COMMAND
from workers.host_agent import HostAgent

STOP_TIMEOUT_S = 8.0
"""How long engines may take to save after SIGTERM; the process must exit within 10 s."""

log = structlog.get_logger(__name__)


def create_app(settings: Settings) -> Celery:
    """A Celery application whose worker executes attempts and stores no results."""
    app = Celery("callboard", broker=celery_url(settings.redis), set_as_current=False)
    app.conf.update(
        task_acks_late=False,
        task_ignore_result=True,
        worker_disable_prefetch=True,
        worker_enable_remote_control=True,
        worker_send_task_events=True,
        broker_connection_retry_on_startup=True,
        # Redis may be unavailable for any time.
        broker_connection_max_retries=None,
    )
    return app


def run(settings: Settings, *, command: Sequence[str] = ENGINE_COMMAND) -> NoReturn:
    """Run this host's worker until SIGTERM or SIGINT, then exit the process.

    Args:
        settings: settings of this installation.
        command: the engine's command.
    """
    context = Context.from_settings(settings)
    app = create_app(settings)
    attempts = tasks.AttemptTasks(app)
    agent = HostAgent(context, command=command, execute=attempts.execute)
    attempts.register(agent)
    app.steps["worker"].add(_bootstep(agent))
    # On the signal itself: engines save while Celery shuts down.
    worker_shutting_down.connect(lambda **_: agent.begin_stop(), weak=False)
    setup_logging.connect(lambda **_: None, weak=False)  # logging is already configured
    worker = app.Worker(
        pool="threads",
        concurrency=agent.slots + 1,  # the runs, and a wake-up
        queues=[*settings.queues, host_queue(settings.host_name)],
        hostname=f"callboard@{settings.host_name}",
        without_gossip=True,
        without_mingle=True,
        quiet=True,
    )
    attempts.use(worker)
    worker.start()
    context.close()
    sys.stdout.flush()
    # Everything is flushed; interpreter shutdown takes seconds on a loaded machine.
    os._exit(int(worker.exitcode or 0))


def __getattr__(name: str) -> Celery:
    """The application of this environment's settings, as `app`, for Celery's command line."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return create_app(Settings())


def _bootstep(agent: HostAgent) -> type[bootsteps.StartStopStep]:
    class HostAgentStep(bootsteps.StartStopStep):
        """The host agent as a step of the worker."""

        requires = ("celery.worker.components:Pool",)

        def start(self, parent: Any) -> None:
            """Start before the Redis connection."""
            agent.start()

        def stop(self, parent: Any) -> None:
            """Stop before the process exits."""
            if not agent.stop(STOP_TIMEOUT_S):
                # A thread waiting for the database must not block the exit: its lease will expire.
                log.warning("worker.stop_timed_out")
                os._exit(1)

        terminate = stop

    return HostAgentStep
