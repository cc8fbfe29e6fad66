from types import SimpleNamespace
from typing import Any, cast

import pytest
from celery import Celery
from celery.utils.collections import LimitedSet
from celery.worker import WorkController

from tests.support.waiting import until
from workers import tasks
from workers.host_agent import HostAgent
from workers.supervisor import Supervisor


class _Pool:
    """Keeps what it is given: a test of an attempt's execution needs a database and an engine."""

    def __init__(self) -> None:
        self.task_ids: list[str] = []

    def apply_async(self, target: Any, args: Any = (), **_: Any) -> None:
        """Keep the id of a task."""
        self.task_ids.append(args[1])


class _RevokedAgain(LimitedSet):
    """The ids of revoked tasks, of which each is revoked again as soon as it is removed."""

    def discard(self, item: Any) -> None:
        """Keep an id."""


def test_attempt_that_is_revoked_during_its_claim_trains_in_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = _RevokedAgain(data=["run-1"])
    monkeypatch.setattr(tasks, "revoked", ids)
    monkeypatch.setattr("celery.worker.request.revoked_tasks", ids)
    sent: list[str] = []
    dispatcher = SimpleNamespace(enabled=True, send=lambda type, **_: sent.append(type))
    pool = _Pool()
    worker = SimpleNamespace(
        hostname="callboard@a", pool=pool, consumer=SimpleNamespace(event_dispatcher=dispatcher)
    )
    attempts = tasks.AttemptTasks(Celery(set_as_current=False, broker="memory://"))
    attempts.register(cast(HostAgent, SimpleNamespace()))
    attempts.use(cast(WorkController, worker))
    claim = SimpleNamespace(run_id="run", attempt=1)
    attempts.execute(cast(Supervisor, SimpleNamespace(claim=claim)))
    until(lambda: sent)
    assert (pool.task_ids, sent) == (["run-1"], ["task-received"])
