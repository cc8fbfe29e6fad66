"""The worker as it is deployed: a real Celery process, a real Redis, the real engine on CartPole."""

import os
import signal
from time import monotonic

import numpy as np
import pytest
from sqlalchemy import Engine

from backend.db import Attempt, Run
from backend.db.engine import reading, writing
from backend.episodes import repository as episodes
from backend.episodes import service as episode_service
from backend.hosts import repository as hosts
from backend.live.bus import Bus
from backend.metrics import repository as metrics
from backend.runs import repository as runs
from backend.runs import service
from backend.settings import Settings
from tests.support.databases import ON_SQLITE_FIRST
from tests.support.redis_server import RedisServer
from tests.support.runs import make_run
from tests.workers.support import Start, moves, processes_with, run_row, until, until_state
from workers import claims
from workers.engine.event_log import read_frames

pytestmark = [pytest.mark.service, ON_SQLITE_FIRST]

FAST = {"n_e": 4, "evaluation_episodes": 2, "evaluation_interval_agent_steps": 0}


def _train(engine: Engine, *, agent_steps: int = 10**9, checkpoint_interval_s: float = 1.0) -> Run:
    config = FAST | {"checkpoint_interval_s": checkpoint_interval_s}
    return make_run(engine, stop={"agent_steps": agent_steps}, config=config)


def _agent_steps(engine: Engine, run_id: str, metric: str = "rollout/episode_return") -> list[int]:
    with reading(engine) as session:
        (series,) = metrics.list_series(session, [run_id], [metric])
        return np.concatenate([c["agent_steps"] for c in metrics.all_points(session, series.id)]).tolist()


def _logged_agent_steps(settings: Settings, engine: Engine, run_id: str) -> list[int]:
    """What the attempts' logs say, joined at the checkpoints."""
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


def _recorded(engine: Engine, run_id: str, agent_steps: int) -> None:
    until(lambda: run_row(engine, run_id).agent_steps > agent_steps, 60)


def _saved(engine: Engine, run_id: str) -> None:
    """Wait for the first checkpoint."""

    def found() -> bool:
        with reading(engine) as session:
            return bool(claims.checkpoints(session, run_id))

    until(found, 60)


def test_kill_9_of_the_engine_and_it_goes_on_without_a_hand(
    start: Start, engine: Engine, settings: Settings
) -> None:
    run = _train(engine, agent_steps=25_000)
    start()
    _saved(engine, run.id)
    leader = min(processes_with(str(settings.runs_dir)), key=lambda p: p.pid)
    os.kill(leader.pid, signal.SIGKILL)
    until_state(engine, run.id, "finished", timeout_s=120)
    assert run_row(engine, run.id).attempt == 2
    with reading(engine) as session:
        assert session.get_one(Attempt, (run.id, 2)).resumed_from_agent_steps > 0
    assert _agent_steps(engine, run.id) == _logged_agent_steps(settings, engine, run.id)
    assert moves(engine, run.id).count("queued") == 2


def test_sigterm_saves_hands_back_and_is_gone_in_time(
    start: Start, engine: Engine, settings: Settings
) -> None:
    run = _train(engine, checkpoint_interval_s=1000)
    worker = start()
    _recorded(engine, run.id, 100)
    begun = monotonic()
    worker.terminate()
    assert worker.wait(timeout=15) == 0
    assert monotonic() - begun < 10
    row = run_row(engine, run.id)
    assert (row.state, row.state_reason) == ("queued", "its worker on a shuts down")
    assert not processes_with(str(settings.runs_dir))
    start()
    until(lambda: run_row(engine, run.id).state == "running", 60)
    with reading(engine) as session:
        assert session.get_one(Attempt, (run.id, 2)).resumed_from_agent_steps == row.agent_steps


def test_kill_9_of_the_worker_takes_its_engines_along(
    start: Start, engine: Engine, settings: Settings
) -> None:
    run = _train(engine, agent_steps=25_000)
    worker = start()
    _saved(engine, run.id)
    worker.kill()
    worker.wait()
    until(lambda: not processes_with(str(settings.runs_dir)))
    start()
    until_state(engine, run.id, "finished", timeout_s=120)
    assert moves(engine, run.id)[:5] == ["queued", "starting", "running", "lost", "queued"]
    assert _agent_steps(engine, run.id) == _logged_agent_steps(settings, engine, run.id)


def test_stop_and_resume_make_one_continuous_series(start: Start, engine: Engine, settings: Settings) -> None:
    run = _train(engine, agent_steps=10**9)
    start()
    _recorded(engine, run.id, 2_000)
    with writing(engine) as session:
        service.stop(session, run.id, kill=False)
    stopped = until_state(engine, run.id, "stopped", timeout_s=30)
    with writing(engine) as session:
        service.resume(session, run.id, None)
    _recorded(engine, run.id, stopped.agent_steps + 2_000)
    with writing(engine) as session:
        service.stop(session, run.id, kill=False)
    until_state(engine, run.id, "stopped", timeout_s=30)
    steps = _agent_steps(engine, run.id)
    assert steps == sorted(steps)
    assert steps == _logged_agent_steps(settings, engine, run.id)
    with reading(engine) as session:
        assert session.get_one(Attempt, (run.id, 2)).resumed_from_agent_steps == stopped.agent_steps


def test_a_poke_through_redis_wakes_the_worker(
    start: Start, engine: Engine, settings: Settings, redis_url: str
) -> None:
    start(reconcile_interval_s=600, lease_s=3600)
    bus = Bus(redis_url)

    def ready() -> bool:
        with reading(engine) as session:
            return bool(hosts.all_hosts(session))

    until(ready, 60)
    run = _train(engine)
    bus.poke("cpu")
    _recorded(engine, run.id, 0)
    with writing(engine) as session:
        service.stop(session, run.id, kill=False)
    bus.announce(session)  # to the queue of the host that has the run
    until_state(engine, run.id, "stopped", timeout_s=20)
    bus.close()


def test_without_redis_work_is_found_all_the_same(
    start: Start, engine: Engine, redis_server: RedisServer, redis_url: str
) -> None:
    redis_server.stop()
    try:
        run = _train(engine)
        worker = start()
        _recorded(engine, run.id, 0)
        worker.terminate()
        assert worker.wait(timeout=12) == 0
    finally:
        redis_server.start()
    assert run_row(engine, run.id).state == "queued"


def test_a_video_is_drawn_while_the_run_trains(start: Start, engine: Engine, settings: Settings) -> None:
    run = _train(engine)
    start()

    def kept() -> str | None:
        with reading(engine) as session:
            page, _ = episodes.page(
                session, run.id, kind=None, superseded=False, sort="recorded_at", descending=True, limit=1,
                cursor=None,
            )  # fmt: skip
        return page[0].id if page else None

    episode_id = until(kept, 60)
    with writing(engine) as session:
        episode_service.request_video(session, episode_service.get(session, episode_id), again=False)

    def drawn() -> str | None:
        with reading(engine) as session:
            return episode_service.get(session, episode_id).video

    name = until(drawn, 90)
    video = settings.home_dir / "artifacts" / "runs" / run.id / "videos" / name
    assert video.read_bytes()[4:8] == b"ftyp"
    assert run_row(engine, run.id).state == "running"
