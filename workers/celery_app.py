"""The worker process: Celery brings pokes from Redis, the host agent does the work.

The agent is a step of the worker's own start and stop, before Celery first speaks to Redis, so that a host
trains whether Redis is there or not.
"""

import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import structlog
from celery import Celery, bootsteps
from celery.signals import setup_logging, worker_shutting_down

from backend.db.changes import host_queue
from backend.live.bus import celery_url
from backend.settings import Settings
from workers import tasks
from workers.context import Context
from workers.engine_process import ENGINE
from workers.host_agent import HostAgent

STOP_TIMEOUT_S = 8.0
"""How long after SIGTERM engines may take over their last checkpoints: in 10 s the process is to be gone."""

log = structlog.get_logger(__name__)


def make_app(settings: Settings) -> Celery:
    """A Celery application whose worker takes pokes and keeps nothing."""
    app = Celery("callboard", broker=celery_url(settings.redis), set_as_current=False)
    app.conf.update(
        task_acks_late=False,
        task_ignore_result=True,
        worker_disable_prefetch=True,
        worker_enable_remote_control=False,
        worker_send_task_events=False,
        broker_connection_retry_on_startup=True,
        # Redis may be away for as long as it likes.
        broker_connection_max_retries=None,
    )
    return app


def run(settings: Settings, *, engine: Sequence[str] = ENGINE) -> NoReturn:
    """Be this host's worker until SIGTERM or SIGINT; ends the process.

    Args:
        settings: of this installation.
        engine: the engine's command.
    """
    context = Context.of(settings)
    agent = HostAgent(context, engine=engine)
    app = make_app(settings)
    tasks.register(app, agent)
    app.steps["worker"].add(_step(agent))
    # The signal handler's own moment: engines save while Celery is still winding down.
    worker_shutting_down.connect(lambda **_: agent.begin_stop(), weak=False)
    setup_logging.connect(lambda **_: None, weak=False)  # logging is set up already
    worker = app.Worker(
        pool="threads",
        concurrency=1,
        queues=[*settings.queues, host_queue(settings.host_name)],
        hostname=f"callboard@{settings.host_name}",
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        quiet=True,
    )
    worker.start()
    context.close()
    sys.stdout.flush()
    # All is said and done; taking the interpreter apart takes seconds on a crowded machine.
    os._exit(int(worker.exitcode or 0))


def _step(agent: HostAgent) -> type[bootsteps.StartStopStep]:
    class Agent(bootsteps.StartStopStep):
        """The host agent as a step of the worker."""

        requires = ("celery.worker.components:Pool",)

        def start(self, parent: Any) -> None:
            """Begin before Celery speaks to Redis."""
            agent.start()

        def stop(self, parent: Any) -> None:
            """End before the process does."""
            if not agent.stop(STOP_TIMEOUT_S):
                # A thread that waits for the database must not keep the process: its lease will run out.
                log.warning("worker.leaves_runs_behind")
                os._exit(1)

        terminate = stop

    return Agent
