"""Someone watches an agent train: the web process, Redis, the worker and the real engine between them."""

import time
from pathlib import Path

import numpy as np
import pytest
from redis import Redis
from sqlalchemy import Engine
from websockets.sync.client import connect

from backend.auth.roles import Role
from backend.live.gameplay import WATCH_LAPSES_S, pictures_channel, read_picture
from backend.settings import Settings
from backend.specs.events import Points, Started
from tests.support.databases import ON_SQLITE_FIRST
from tests.support.runs import make_run
from tests.support.service import running_service
from tests.workers.support import Start, run_row, until, until_state
from workers.engine.event_log import read_frames

pytestmark = pytest.mark.service

MAX_AGE_S = 5.0


def _trained_at(log: Path, agent_steps: list[int]) -> list[float]:
    """When the training was at these agent steps, by what the engine itself has logged."""
    events = [event for frame, _ in read_frames(log) for event in frame]
    (began,) = [event.time for event in events if isinstance(event, Started)]
    episodes = [e for e in events if isinstance(e, Points) and e.metric == "rollout/episode_return"]
    steps = [step for event in episodes for step in event.agent_steps]
    seconds = [wall_time_s for event in episodes for wall_time_s in event.wall_time_s]
    return [began + float(second) for second in np.interp(agent_steps, steps, seconds)]


@ON_SQLITE_FIRST
def test_watching_an_agent_train(
    start: Start, engine: Engine, settings: Settings, redis_url: str, tmp_path: Path
) -> None:
    config = {"n_e": 4, "evaluation_episodes": 0, "evaluation_interval_agent_steps": 0}
    run = make_run(engine, stop={"agent_steps": 10**9}, config=config)
    channel = pictures_channel(run.id)
    start()
    until_state(engine, run.id, "running")
    with (
        running_service(settings.database, redis_url, tmp_path / "web") as service,
        service.client_as(Role.VIEWER) as viewer,
        Redis.from_url(redis_url) as client,
        client.pubsub(ignore_subscribe_messages=True) as eavesdropper,
    ):
        eavesdropper.subscribe(channel)
        begun = run_row(engine, run.id).agent_steps
        until(lambda: run_row(engine, run.id).agent_steps > begun + 1_000)
        assert eavesdropper.get_message(timeout=0.1) is None
        address = f"{service.url.replace('http', 'ws')}/api/v1/runs/{run.id}/live"
        headers = {"Authorization": viewer.headers["Authorization"]}
        with connect(address, additional_headers=headers) as socket:
            seen = [(*read_picture(socket.recv(timeout=60)), time.time()) for _ in range(10)]
        until(lambda: eavesdropper.get_message(timeout=1.0) is None, 4 * WATCH_LAPSES_S)
        ended = run_row(engine, run.id).agent_steps
        until(lambda: run_row(engine, run.id).agent_steps > max(ended, seen[-1][0]))
    steps, pictures, times = map(list, zip(*seen, strict=True))
    assert all(picture.startswith(b"\xff\xd8") for picture in pictures)
    assert steps == sorted(steps)
    log = settings.runs_dir / run.id / "attempts" / "1" / "events.log"
    ages_s = np.array(times) - _trained_at(log, steps)
    assert ages_s.max() < MAX_AGE_S
    assert ages_s.min() > -0.5
