"""Streaming routes: bounded, cut when the client does not read, and freed when it leaves."""

import gc
import hashlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import anyio
import pytest
import redis
from sqlalchemy import select
from starlette.types import Message
from websockets.sync.client import connect

from backend.access.auth import repository as auth
from backend.analysis.agents import service as agents
from backend.db import Media, StoredAgent
from backend.db.base import new_id
from backend.db.engine import writing
from backend.http import connections
from backend.http.limits import Slots
from backend.http.streaming import BLOCK_BYTES, Download
from backend.platform.artifacts import agent_file, game_file, observations_file
from backend.platform.principals import Role
from backend.pubsub.bus import CHANNEL, frames_channel
from backend.replays.recordings import service as recordings
from backend.specs.recordings import GameStart
from backend.specs.states import RunState
from tests.backend.analysis.metrics.oracle import METRICS, RecordedRun
from tests.support import asynchronous
from tests.support.rows import episode_row, make_checkpoint, make_run, video_row
from tests.support.service import RunningService
from tests.support.sockets import connected, get_request, status_of
from tests.support.waiting import PATIENCE_S, until

N_POINTS = 200_000
"""As CSV more than the buffers between server and client hold."""
FILE_BYTES = 16 * 2**20

STREAMING = {
    "/api/v1/runs/{run_id}/export": "exports",
    "/api/v1/runs/export": "exports",
    "/api/v1/audit/export": "exports",
    "/api/v1/runs/{run_id}/media/export": "exports",
    "/api/v1/runs/{run_id}/agent": "downloads",
    "/api/v1/checkpoints/{checkpoint_id}/file": "downloads",
    "/api/v1/episodes/{episode_id}/video": "downloads",
    "/api/v1/episodes/{episode_id}/observations": "downloads",
    "/api/v1/recordings/{recording_id}/video": "downloads",
    "/api/v1/videos/{video_id}/file": "downloads",
    "/api/v1/events": "streams",
}
"""Every route whose response has no bounded size, and what bounds their number. Besides there is the live
socket, and the pages' own files, which Starlette opens and closes."""

BOUNDED = {
    "/api/v1/comparisons/table",
    "/api/v1/episodes/{episode_id}/thumbnail",
    "/api/v1/figures/branch",
    "/api/v1/figures/curve",
    "/api/v1/figures/diagnostic",
    "/api/v1/figures/distribution",
    "/api/v1/figures/episode_trace",
    "/api/v1/figures/histogram",
    "/api/v1/figures/learning_curve",
    "/api/v1/figures/lines",
    "/api/v1/figures/recording",
    "/api/v1/figures/scatter",
    "/api/v1/figures/scores",
    "/api/v1/figures/seed_curve",
    "/api/v1/media/{media_id}/file",
    "/api/v1/recordings/{recording_id}/file",
    "/api/v1/scores/figures/{figure_id}",
    "/api/v1/studies/{study_id}/export",
    "/api/v1/studies/{study_id}/figures/{figure_id}",
    "/api/v1/sweeps/{sweep_id}/scatter",
    "/api/v1/videos/{video_id}/thumbnail",
}
"""Routes whose files are small: images, the points that a figure draws, and the actions of one game."""


@pytest.fixture
def large(sqlite_service: RunningService, tmp_path: Path) -> dict[str, str]:
    """Paths of large responses by route."""
    engine, store = sqlite_service.engine, sqlite_service.artifacts
    recorded = RecordedRun(engine, 1)
    recorded.append({METRICS[0]: N_POINTS})
    run = make_run(engine)
    checkpoint = make_checkpoint(engine, run)
    episode = episode_row(run.id, video="video.mp4")
    video = video_row(run.id, video="video.mp4")
    with writing(engine) as session:
        session.add_all([episode, video])
    for kind, name in (("checkpoints", checkpoint.file), ("videos", "video.mp4")):
        (tmp_path / name).write_bytes(bytes(FILE_BYTES))
        store.put(tmp_path / name, run.id, kind)  # type: ignore[arg-type]
    with writing(engine) as session:
        start = GameStart(seed=1, frames_per_step=4, action_names=[], rom_sha256=None, versions={})
        recording = recordings.start(
            session,
            session_id=new_id(),
            user_id=auth.add_user(session, "player", Role.OPERATOR).id,
            environment="ALE/Pong-v5",
            environment_config={},
            protocol="human_play",
            game=start,
        ).id
        sha256 = hashlib.sha256(bytes(FILE_BYTES)).hexdigest()
        recordings.record_video(session, recording, sha256=sha256, n_bytes=FILE_BYTES)
    store.put(tmp_path / "video.mp4", recording, "videos", game_file(recording))
    observations = tmp_path / observations_file(episode.id)
    observations.write_bytes(bytes(FILE_BYTES))
    store.put(observations, run.id, "videos")
    agent = f"/api/v1/runs/{run.id}/agent?checkpoint={checkpoint.id}"
    assert sqlite_service.client.get(agent).status_code == 202
    with writing(engine) as session:
        [exported] = session.scalars(select(StoredAgent))
        agents.record(session, exported.id, sha256=sha256, n_bytes=FILE_BYTES)
    archive = tmp_path / agent_file(exported.id)
    archive.write_bytes(bytes(FILE_BYTES))
    store.put(archive, run.id, "videos")
    image = Media(
        id=new_id(),
        run_id=run.id,
        kind="image",
        metric="state",
        agent_steps=1,
        wall_time_s=1.0,
        attempt=1,
        size_bytes=FILE_BYTES,
        media_type="image/png",
        file="image.png",
    )
    with writing(engine) as session:
        session.add(image)
    (tmp_path / "image.png").write_bytes(bytes(FILE_BYTES))
    store.put(tmp_path / "image.png", run.id, "media")
    return {
        "/api/v1/runs/{run_id}/media/export": f"/api/v1/runs/{run.id}/media/export",
        "/api/v1/runs/{run_id}/agent": agent,
        "/api/v1/runs/{run_id}/export": f"/api/v1/runs/{recorded.run_id}/export",
        "/api/v1/runs/export": f"/api/v1/runs/export?run={recorded.run_id}",
        "/api/v1/checkpoints/{checkpoint_id}/file": f"/api/v1/checkpoints/{checkpoint.id}/file",
        "/api/v1/episodes/{episode_id}/video": f"/api/v1/episodes/{episode.id}/video",
        "/api/v1/episodes/{episode_id}/observations": f"/api/v1/episodes/{episode.id}/observations",
        "/api/v1/recordings/{recording_id}/video": f"/api/v1/recordings/{recording}/video",
        "/api/v1/videos/{video_id}/file": f"/api/v1/videos/{video.id}/file",
    }


def _token(service: RunningService, stack: ExitStack) -> dict[str, str]:
    client = stack.enter_context(service.client_as(Role.VIEWER))
    return {"Authorization": client.headers["Authorization"]}


@pytest.mark.service
def test_list_of_streaming_routes_is_complete(sqlite_service: RunningService) -> None:
    paths = sqlite_service.client.get("/openapi.json").json()["paths"]
    streaming = {
        path
        for path, operations in paths.items()
        if path.startswith("/api/")
        and set(operations.get("get", {}).get("responses", {}).get("200", {}).get("content", {}))
        - {"application/json", "text/html"}
    }
    assert streaming == set(STREAMING) | BOUNDED


@pytest.mark.long
@pytest.mark.service
def test_unread_responses_are_closed_and_release_their_resources(
    sqlite_service: RunningService,
    large: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    subtests: pytest.Subtests,
) -> None:
    monkeypatch.setattr(connections, "SEND_TIMEOUT_S", 0.5)
    limits = sqlite_service.app_state.limits
    pool = sqlite_service.engine.pool
    with ExitStack() as stack:
        headers = _token(sqlite_service, stack)
        clients = {}
        for route, path in large.items():
            request = get_request(sqlite_service.url, path, headers)
            (clients[route],) = stack.enter_context(connected(sqlite_service.url, request))
        for route, client in clients.items():
            with subtests.test(route=route):
                assert status_of(client) == 200
        # The clients stay connected.
        gc.disable()
        stack.callback(gc.enable)
        until(lambda: not limits.exports.n_taken and not limits.downloads.n_taken)
        until(lambda: pool.checkedout() == 0)  # type: ignore[attr-defined]
        assert sqlite_service.client.get("/api/v1/runs").status_code == 200


@pytest.mark.service
def test_unread_event_stream_and_live_socket_are_closed(
    sqlite_service: RunningService, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "SEND_TIMEOUT_S", 0.5)
    limits = sqlite_service.app_state.limits
    run = make_run(sqlite_service.engine, RunState.RUNNING)
    with ExitStack() as stack, redis.Redis.from_url(redis_url) as publisher:
        headers = _token(sqlite_service, stack)
        request = get_request(sqlite_service.url, "/api/v1/events", headers)
        stack.enter_context(connected(sqlite_service.url, request))
        url = f"{sqlite_service.url.replace('http', 'ws')}/api/v1/runs/{run.id}/live"
        live = stack.enter_context(
            connect(url, additional_headers=headers, max_queue=1, open_timeout=PATIENCE_S)
        )
        until(lambda: limits.streams.n_taken and limits.sockets.n_taken)

        def publish() -> bool:
            publisher.publish(CHANNEL, b"x" * 2**20)
            publisher.publish(frames_channel(run.id), bytes(2**20))
            return not limits.streams.n_taken and not limits.sockets.n_taken

        until(publish, every_s=0.1, detail=lambda: f"{limits.streams.n_taken=} {limits.sockets.n_taken=}")
        live.socket.close()


@pytest.mark.long
@pytest.mark.service
def test_exports_beyond_the_maximum_of_a_user_are_429(
    sqlite_service: RunningService, large: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "SEND_TIMEOUT_S", PATIENCE_S)
    path = large["/api/v1/runs/{run_id}/export"]
    limits = sqlite_service.app_state.limits
    with ExitStack() as stack:
        headers = _token(sqlite_service, stack)
        request = get_request(sqlite_service.url, path, headers)
        stack.enter_context(connected(sqlite_service.url, request, n=4))
        until(lambda: limits.exports.n_taken == 4)
        (another,) = stack.enter_context(connected(sqlite_service.url, request))
        assert status_of(another) == 429
        refused = sqlite_service.client.get(path, headers=headers)
        assert refused.status_code == 429
        assert int(refused.headers["Retry-After"]) > 0
        with sqlite_service.client.stream("GET", path) as other_user:
            assert other_user.status_code == 200
    # The clients have left.
    until(lambda: limits.exports.n_taken == 0)


def test_slots_are_bounded_for_all_users_together(subtests: pytest.Subtests) -> None:
    slots = Slots("exports", total=3, per_user=2)
    with ExitStack() as stack:
        stack.enter_context(slots.taken("a"))
        stack.enter_context(slots.taken("a"))
        for user, reason in (("a", "you have 2 exports open"), ("b", None), ("b", "all users together")):
            with subtests.test(user=user, reason=reason):
                if reason is None:
                    stack.enter_context(slots.taken(user))
                else:
                    with pytest.raises(Exception, match=reason), slots.taken(user):
                        pass
    assert slots.n_taken == 0


class _Content:
    def __init__(self) -> None:
        self.closed = False

    def __iter__(self) -> Iterator[bytes]:
        while True:
            yield bytes(2 * BLOCK_BYTES)

    def close(self) -> None:
        self.closed = True


def test_download_closes_its_content_however_it_ends(subtests: pytest.Subtests) -> None:
    async def run(content: _Content, leave: Callable[[int], None]) -> int:
        n_sent = 0
        left = anyio.Event()

        async def receive() -> Message:
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            nonlocal n_sent
            n_sent += 1
            assert len(message.get("body", b"")) <= BLOCK_BYTES
            if n_sent == 5:
                leave(n_sent)
                left.set()
            await anyio.sleep(0)

        response = Download(content, headers={}, media_type="text/plain")
        await response({"type": "http", "path": "/", "asgi": {}}, receive, send)
        return n_sent

    def fail(n_sent: int) -> None:
        raise ConnectionResetError

    with subtests.test("the client leaves"):
        content = _Content()
        assert asynchronous.run(run(content, lambda _: None)) >= 5
        assert content.closed
    with subtests.test("sending fails"):
        content = _Content()
        with pytest.raises(ConnectionResetError):
            asynchronous.run(run(content, fail))
        assert content.closed
