"""Celery tasks: a poke, and nothing else. The work itself is claimed from the database."""

from celery import Celery

from backend.live.bus import POKE_TASK
from workers.host_agent import HostAgent


def register(app: Celery, agent: HostAgent) -> None:
    """Have `app` pass pokes on to the host agent."""

    @app.task(name=POKE_TASK, ignore_result=True)
    def poke() -> None:
        """Look for work now."""
        agent.poke()
