"""Live gameplay from the real engine through the worker, Redis and the web process to a client."""

import time
from pathlib import Path

import numpy as np
import pytest
from redis import Redis
from sqlalchemy import Engine
from websockets.sync.client import connect

from backend.platform.principals import Role
from backend.platform.settings import Settings
from backend.pubsub.bus import frames_channel
from backend.specs.events import PointsEvent, StartedEvent
from tests.support.rows import make_run
from tests.support.service import running_service
from tests.support.waiting import until
from tests.support.watching import await_frame
from tests.workers.support import Start, run_row, until_state
from workers.engine.training.event_log import read_frames

pytestmark = pytest.mark.service

MAX_AGE_S = 60.0


def _trained_after(log: Path, agent_steps: list[int]) -> list[float]:
    """Return when the last episode ended before each of these agent steps, from the engine's event log."""
    events = [event for frame, _ in read_frames(log) for event in frame]
    (started_at,) = [event.time for event in events if isinstance(event, StartedEvent)]
    episodes = [e for e in events if isinstance(e, PointsEvent) and e.metric == "rollout/episode_return"]
    steps = [step for event in episodes for step in event.agent_steps]
    seconds = [wall_time_s for event in episodes for wall_time_s in event.wall_time_s]
    return [started_at + seconds[at - 1] for at in np.searchsorted(steps, agent_steps, side="right")]


@pytest.mark.long
def test_live_frames_of_training_run_are_recent_and_ordered(
    start: Start, engine: Engine, settings: Settings, redis_url: str, tmp_path: Path
) -> None:
    config = {"n_e": 4, "evaluation_episodes": 0, "evaluation_interval_agent_steps": 0}
    run = make_run(engine, stop={"agent_steps": 10**9}, config=config)
    channel = frames_channel(run.id)
    start()
    until_state(engine, run.id, "running")
    with (
        running_service(settings.database, redis_url, tmp_path / "web") as service,
        service.client_as(Role.VIEWER) as viewer,
        Redis.from_url(redis_url) as client,
        client.pubsub(ignore_subscribe_messages=True) as subscriber,
    ):
        subscriber.subscribe(channel)
        steps_before = run_row(engine, run.id).agent_steps
        until(lambda: run_row(engine, run.id).agent_steps > steps_before + 1_000)
        assert subscriber.get_message(timeout=0.1) is None
        address = f"{service.url.replace('http', 'ws')}/api/v1/runs/{run.id}/live"
        headers = {"Authorization": viewer.headers["Authorization"]}
        steps_before = run_row(engine, run.id).agent_steps
        with connect(address, additional_headers=headers) as socket:
            received = [(*await_frame(socket), time.time()) for _ in range(10)]
        until(lambda: subscriber.get_message(timeout=1.0) is None)
        ended = run_row(engine, run.id).agent_steps
        until(lambda: run_row(engine, run.id).agent_steps > max(ended, received[-1][0]))
    steps, frames, times = map(list, zip(*received, strict=True))
    assert all(frame.startswith(b"\xff\xd8") for frame in frames)
    assert steps == sorted(steps)
    assert steps[0] >= steps_before  # none from before somebody watched, however slow the machine
    log = settings.runs_dir / run.id / "attempts" / "1" / "events.log"
    ages_s = np.array(times) - _trained_after(log, steps)
    assert ages_s.max() < MAX_AGE_S
    assert ages_s.min() > -0.5
