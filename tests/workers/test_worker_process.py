"""The worker as deployed: a real Celery process, a real Redis and the real engine on CartPole."""

import os
import signal
import sys
from pathlib import Path

import pytest
from sqlalchemy import Engine

from backend.analysis.metrics import repository as metrics
from backend.db import Attempt, Run
from backend.db.engine import reading, writing
from backend.fleet.hosts import repository as hosts
from backend.platform.settings import Settings
from backend.pubsub.bus import Bus
from backend.replays.episodes import repository as episodes
from backend.replays.episodes import service as episode_service
from backend.runs.checkpoints import service as checkpoints
from backend.runs.runs import actions
from backend.runs.runs import repository as runs
from tests.support.redis_server import RedisServer
from tests.support.rows import make_run
from tests.support.waiting import PATIENCE_S, until
from tests.workers.support import Start, engines_of, moves, run_row, until_state
from workers import celery_app
from workers.engine.training.event_log import read_frames

pytestmark = pytest.mark.service

PATIENT_WORKER = (sys.executable, "-m", "tests.workers.patient_worker")

FAST = {"n_e": 4, "n_w": 1, "evaluation_episodes": 2, "evaluation_interval_agent_steps": 0}


def _train(engine: Engine, *, checkpoint_interval_s: float = 1.0) -> Run:
    """Store a run that trains until it is stopped."""
    config = FAST | {"checkpoint_interval_s": checkpoint_interval_s}
    return make_run(engine, stop={"agent_steps": 10**9}, config=config)


def _stop(engine: Engine, run_id: str) -> Run:
    with writing(engine) as session:
        actions.stop(session, run_id, kill=False)
    return until_state(engine, run_id, "stopped")


def _agent_steps(engine: Engine, run_id: str, metric: str = "rollout/episode_return") -> list[int]:
    with reading(engine) as session:
        (series,) = metrics.list_series(session, [run_id], [metric])
        return [int(step) for part in metrics.all_points(session, series.id) for step in part["agent_steps"]]


def _logged_agent_steps(settings: Settings, engine: Engine, run_id: str) -> list[int]:
    """Return the agent steps in the attempts' logs, joined at the checkpoints."""
    joined: list[int] = []
    with reading(engine) as session:
        attempts = runs.attempts(session, run_id)
    for attempt in attempts:
        joined = [step for step in joined if step <= attempt.resumed_from_agent_steps]
        log = settings.runs_dir / run_id / "attempts" / str(attempt.number) / "events.log"
        for frame, _ in read_frames(log):
            for event in frame:
                if event.type == "points" and event.metric == "rollout/episode_return":
                    joined += event.agent_steps
    return joined


def _await_recorded(engine: Engine, run_id: str, agent_steps: int) -> None:
    until(lambda: run_row(engine, run_id).agent_steps > agent_steps)


def _await_resumed(engine: Engine, run_id: str) -> None:
    """Wait until a second attempt has resumed from a checkpoint of the first and trained."""

    def trains() -> bool:
        with reading(engine) as session:
            attempt = session.get(Attempt, (run_id, 2))
        # Claimed, it has not begun: from where is not known yet.
        resumed_from = attempt.resumed_from_agent_steps if attempt is not None else 0
        return 0 < resumed_from < run_row(engine, run_id).agent_steps

    until(trains)


def _await_checkpoint(engine: Engine, run_id: str) -> None:
    """Wait for the first checkpoint."""

    def is_stored() -> bool:
        with reading(engine) as session:
            return bool(checkpoints.resumable(session, run_id))

    until(is_stored)


@pytest.mark.long
def test_run_resumes_after_sigkill_of_engine(start: Start, engine: Engine, settings: Settings) -> None:
    run = _train(engine)
    worker = start()
    _await_checkpoint(engine, run.id)
    [leader] = [p for p in engines_of(settings.runs_dir) if p.ppid() == worker.pid]
    os.kill(leader.pid, signal.SIGKILL)
    _await_resumed(engine, run.id)
    assert _stop(engine, run.id).attempt == 2
    assert _agent_steps(engine, run.id) == _logged_agent_steps(settings, engine, run.id)
    assert moves(engine, run.id).count("queued") == 2


@pytest.mark.long
def test_sigterm_of_worker_saves_checkpoint_and_queues_run(
    start: Start, engine: Engine, settings: Settings
) -> None:
    run = _train(engine, checkpoint_interval_s=1000)
    worker = start(command=PATIENT_WORKER)
    _await_recorded(engine, run.id, 100)
    worker.terminate()
    assert worker.wait(timeout=PATIENCE_S) == 0
    row = run_row(engine, run.id)
    assert (row.state, row.state_reason) == ("queued", "its worker on a is shutting down")
    until(lambda: not engines_of(settings.runs_dir))
    start()
    until(lambda: run_row(engine, run.id).state == "running")
    with reading(engine) as session:
        assert session.get_one(Attempt, (run.id, 2)).resumed_from_agent_steps == row.agent_steps


@pytest.mark.long
def test_sigkill_of_worker_ends_its_engines_and_run_resumes(
    start: Start, engine: Engine, settings: Settings
) -> None:
    run = _train(engine)
    worker = start()
    _await_checkpoint(engine, run.id)
    worker.kill()
    worker.wait()
    until(lambda: not engines_of(settings.runs_dir))
    start()
    _await_resumed(engine, run.id)
    _stop(engine, run.id)
    assert moves(engine, run.id)[:5] == ["queued", "starting", "running", "lost", "queued"]
    assert _agent_steps(engine, run.id) == _logged_agent_steps(settings, engine, run.id)


@pytest.mark.long
def test_stopped_and_resumed_run_has_one_continuous_series(
    start: Start, engine: Engine, settings: Settings
) -> None:
    run = _train(engine)
    start()
    _await_recorded(engine, run.id, 1_000)
    stopped = _stop(engine, run.id)
    with writing(engine) as session:
        actions.resume(session, run.id, None)
    _await_recorded(engine, run.id, stopped.agent_steps + 1_000)
    _stop(engine, run.id)
    steps = _agent_steps(engine, run.id)
    assert steps == sorted(steps)
    assert steps == _logged_agent_steps(settings, engine, run.id)
    with reading(engine) as session:
        assert session.get_one(Attempt, (run.id, 2)).resumed_from_agent_steps == stopped.agent_steps


@pytest.mark.long
def test_redis_message_wakes_worker(start: Start, engine: Engine, settings: Settings, redis_url: str) -> None:
    start(reconcile_interval_s=600, lease_s=3600)
    bus = Bus(redis_url)

    def ready() -> bool:
        with reading(engine) as session:
            return bool(hosts.all_hosts(session))

    until(ready)
    run = _train(engine)
    bus.wake("cpu")
    _await_recorded(engine, run.id, 0)
    with writing(engine) as session:
        actions.stop(session, run.id, kill=False)
    bus.publish_changes(session)  # to the queue of the run's host
    until_state(engine, run.id, "stopped")
    bus.close()


@pytest.mark.long
def test_worker_claims_run_without_redis(
    start: Start, engine: Engine, redis_server: RedisServer, redis_url: str
) -> None:
    redis_server.stop()
    try:
        run = _train(engine)
        worker = start(command=PATIENT_WORKER)
        _await_recorded(engine, run.id, 0)
        worker.terminate()
        assert worker.wait(timeout=PATIENCE_S) == 0
    finally:
        redis_server.start()
    assert run_row(engine, run.id).state == "queued"


@pytest.mark.long
def test_video_is_rendered_while_run_trains(start: Start, engine: Engine, settings: Settings) -> None:
    run = _train(engine)
    start()

    def stored_episode() -> str | None:
        with reading(engine) as session:
            page, _ = episodes.page(
                session, run.id, kind=None, superseded=False, sort="recorded_at", descending=True, limit=1,
                cursor=None,
            )  # fmt: skip
        return page[0].id if page else None

    episode_id = until(stored_episode)
    with writing(engine) as session:
        episode_service.request_video(session, episode_service.get(session, episode_id), again=False)

    def rendered() -> str | None:
        with reading(engine) as session:
            return episode_service.get(session, episode_id).video

    name = until(rendered)
    video = settings.home_dir / "artifacts" / "runs" / run.id / "videos" / name
    assert video.read_bytes()[4:8] == b"ftyp"
    assert run_row(engine, run.id).state == "running"


@pytest.mark.long
def test_worker_compiles_kernels_before_its_first_run(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "kernels"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(cache))
    worker = start()
    source = Path(celery_app.__file__).with_name("engine") / "nn" / "kernels.py"
    n_kernels = source.read_text("utf-8").count("\n@_compiled(")
    assert n_kernels > 4
    until(lambda: len([*cache.rglob("kernels.*.nbi")]) == n_kernels)
    worker.terminate()
    assert worker.wait(timeout=PATIENCE_S) == 0
