"""What Celery's own tools show of a worker and its runs, and what messages cannot change."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from redis import Redis
from sqlalchemy import Engine

from backend.platform.settings import Settings
from tests.support.databases import short_folder
from tests.support.installation import environment
from tests.support.redis_server import RedisServer
from tests.support.waiting import PATIENCE_S, until
from tests.workers.support import ENDLESS, Start, fake_run, moves, run_row, stored_points, until_state
from workers.celery_app import create_app
from workers.tasks import TRAIN_TASK

pytestmark = pytest.mark.service

FAKE_WORKER = (sys.executable, "-m", "tests.campaigns.chaos.fake_worker")


@contextmanager
def _task_events(settings: Settings) -> Iterator[list[dict[str, Any]]]:
    """Collect Celery's events, as Flower does."""
    received: list[dict[str, Any]] = []
    subscribed = threading.Event()
    app = create_app(settings)
    connection = app.connection_for_read()
    receiver = app.events.Receiver(connection, handlers={"*": received.append})
    receiver.on_consume_ready = lambda *_, **__: subscribed.set()
    thread = threading.Thread(target=partial(receiver.capture, wakeup=False), daemon=True)
    thread.start()
    try:
        assert subscribed.wait(PATIENCE_S)
        yield received
    finally:
        receiver.should_stop = True
        thread.join()
        connection.release()
        app.close()


def _await_worker(settings: Settings) -> None:
    """Wait until the worker answers: a run may start before Celery has connected to Redis."""
    app = create_app(settings)  # of its own, which also gets the late answers
    until(lambda: app.control.inspect(timeout=1, limit=1).ping())
    app.close()


def _only_reply(replies: dict[str, Any] | None) -> Any:
    """Return the reply of the one worker."""
    assert replies is not None
    ((node, reply),) = replies.items()
    assert node == "callboard@a"
    return reply


def _celery(settings: Settings, *arguments: str) -> str:
    """Run Celery's command line with the worker's settings."""
    variables = environment(
        settings.home_dir, database_url=settings.database_url, redis_url=settings.redis_url
    )
    command = [sys.executable, "-m", "celery", "-A", "workers.celery_app", *arguments]
    return subprocess.run(
        command, env=variables, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    ).stdout


@pytest.mark.long
def test_celery_tools_show_host_run_and_its_end(start: Start, engine: Engine, settings: Settings) -> None:
    run = fake_run(engine, agent_steps=ENDLESS)
    task_id = f"{run.id}-1"
    with _task_events(settings) as received:
        start(command=FAKE_WORKER, slots=2)
        until_state(engine, run.id, "running")
        app = create_app(settings)
        _await_worker(settings)
        inspect = app.control.inspect(timeout=PATIENCE_S, limit=1)
        assert _only_reply(inspect.ping()) == {"ok": "pong"}
        # A task is active before it is acknowledged.
        until(lambda: any(task["acknowledged"] for task in _only_reply(inspect.active())))
        (task,) = _only_reply(inspect.active())
        assert (task["id"], task["name"], task["args"]) == (task_id, TRAIN_TASK, [run.id, 1])
        assert _only_reply(inspect.stats())["pool"]["max-concurrency"] == 2 + 1
        patient = ("--timeout", f"{PATIENCE_S:g}", "--destination", "callboard@a")
        assert task_id in _celery(settings, "inspect", "active", *patient)
        app.control.revoke(task_id, terminate=True)
        row = until_state(engine, run.id, "stopped")
        assert row.agent_steps == stored_points(engine, run.id)[-1]
        until(lambda: any(event["type"] == "task-succeeded" for event in received))
        until(lambda: _only_reply(inspect.active()) == [])
        app.close()
    of_run = [event for event in received if event.get("uuid") == task_id]
    assert [event["type"] for event in of_run] == ["task-received", "task-started", "task-succeeded"]
    assert "stopped: stop requested" in of_run[-1]["result"]
    assert any(event["type"] == "worker-heartbeat" for event in received)


@pytest.mark.long
def test_failed_attempt_is_failed_task(start: Start, engine: Engine, settings: Settings) -> None:
    with _task_events(settings) as received:
        start(command=FAKE_WORKER)
        run = fake_run(engine, wait_at=3, die={"1": {"at": 5, "how": "raise"}})

        def sent(kind: str) -> dict[str, Any] | None:
            return next((e for e in received if e["type"] == kind), None)

        until(lambda: sent("task-started"))
        until_state(engine, run.id, "running")
        (settings.runs_dir / run.id / "go").touch()
        until_state(engine, run.id, "failed")
        event = until(lambda: sent("task-failed"))
    assert event["uuid"] == f"{run.id}-1"
    assert run_row(engine, run.id).state_reason in event["exception"]


@pytest.mark.long
def test_repeated_and_foreign_messages_change_nothing(
    start: Start, engine: Engine, settings: Settings
) -> None:
    run = fake_run(engine, agent_steps=ENDLESS)
    other = fake_run(engine)
    start(command=FAKE_WORKER)
    until_state(engine, run.id, "running")
    app = create_app(settings)
    _await_worker(settings)
    for run_id, attempt in ((run.id, 1), (run.id, 2), (other.id, 1)):
        for _ in range(3):
            task_id = f"{run_id}-{attempt}"
            app.send_task(TRAIN_TASK, [run_id, attempt], queue="host.a", task_id=task_id, ignore_result=True)
    inspect = app.control.inspect(timeout=PATIENCE_S, limit=1)

    def handled() -> int:
        return int(_only_reply(inspect.stats())["total"].get(TRAIN_TASK, 0))

    until(lambda: handled() >= 10)
    # The last message is counted when its task begins.
    until(lambda: [task["id"] for task in _only_reply(inspect.active())] == [f"{run.id}-1"])
    assert moves(engine, run.id) == ["queued", "starting", "running"]
    assert moves(engine, other.id) == ["queued"]
    app.close()


@pytest.mark.long
def test_lost_message_delays_attempt_only(start: Start, engine: Engine, settings: Settings) -> None:
    """A Redis without memory accepts nothing, and a flush drops what it has accepted."""
    with Redis.from_url(settings.redis) as client:
        start(command=FAKE_WORKER)
        first = fake_run(engine, agent_steps=30)
        until_state(engine, first.id, "finished")
        client.config_set("maxmemory", "1")
        try:
            second = fake_run(engine, agent_steps=30)
            until_state(engine, second.id, "finished")
        finally:
            client.config_set("maxmemory", "0")
        client.flushall()
        third = fake_run(engine, agent_steps=30)
        until_state(engine, third.id, "finished")
    for run in (first, second, third):
        assert stored_points(engine, run.id) == list(range(1, 31))
        assert moves(engine, run.id) == ["queued", "starting", "running", "finished"]


@pytest.mark.long
def test_hanging_redis_delays_no_attempt(start: Start, engine: Engine, settings: Settings) -> None:
    """There are more events than Celery holds back before it sends them."""
    with short_folder() as folder:
        server = RedisServer(folder)
        server.start()
        start(command=FAKE_WORKER, redis_url=server.url, slots=5)
        _await_worker(settings.model_copy(update={"redis_url": server.url}))
        os.kill(server.pid, signal.SIGSTOP)
        try:
            for run in [fake_run(engine, agent_steps=2) for _ in range(10)]:
                until_state(engine, run.id, "finished")
        finally:
            os.kill(server.pid, signal.SIGCONT)
            server.stop()


@pytest.mark.long
def test_attempt_whose_id_was_revoked_before_the_claim_is_a_task_like_any_other(
    start: Start, engine: Engine, settings: Settings
) -> None:
    first = fake_run(engine, agent_steps=30, wait_at=5)
    start(command=FAKE_WORKER, slots=1)
    until_state(engine, first.id, "running")
    second = fake_run(engine, agent_steps=ENDLESS)
    app = create_app(settings)
    _await_worker(settings)
    app.control.revoke(f"{second.id}-1")
    inspect = app.control.inspect(timeout=PATIENCE_S, limit=1)
    until(lambda: f"{second.id}-1" in _only_reply(inspect.revoked()))
    (settings.runs_dir / first.id / "go").touch()
    until_state(engine, second.id, "running")
    assert [task["id"] for task in _only_reply(inspect.active())] == [f"{second.id}-1"]
    app.control.revoke(f"{second.id}-1", terminate=True)
    until_state(engine, second.id, "stopped")
    app.close()
