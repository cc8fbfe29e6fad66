import hashlib
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from backend.db import Video
from backend.db.engine import writing
from backend.fleet.jobs import service as jobs
from backend.platform.artifacts import thumbnail_file
from backend.replays.videos import service as videos
from tests.support.rows import make_run, video_row
from tests.support.service import RunningService

pytestmark = pytest.mark.service

JPEG = b"\xff\xd8" + bytes(range(100))


def _sent(engine: Engine, run_id: str, agent_steps: int = 100, **changes: Any) -> Video:
    """A video that a worker has encoded."""
    video = video_row(run_id, agent_steps, **({"video": "v.mp4", "n_frames": 6} | changes))
    with writing(engine) as session:
        session.add(video)
    return video


def test_one_video_is_read_by_its_id(service: RunningService) -> None:
    video = _sent(service.engine, make_run(service.engine).id)
    body = service.client.get(f"/api/v1/videos/{video.id}").json()
    assert (body["id"], body["state"], body["n_frames"]) == (video.id, "done", 6)
    assert service.client.get(f"/api/v1/videos/{video.run_id}").status_code == 404


def test_spread_videos_are_those_that_can_be_watched(service: RunningService) -> None:
    run, other = make_run(service.engine), make_run(service.engine)
    for at in (10, 20, 30, 40, 50):
        _sent(service.engine, run.id, at)
    _sent(service.engine, run.id, 5, video=None)
    _sent(service.engine, other.id, 11)

    def spread(n: int, **params: int) -> list[int]:
        answer = service.client.get(f"/api/v1/runs/{run.id}/videos", params={"spread": n} | params).json()
        assert {item["state"] for item in answer["items"]} == {"done"}
        return [item["agent_steps"] for item in answer["items"]]

    assert spread(9) == [10, 20, 30, 40, 50]
    assert spread(2) == [10, 40]  # of 0 to 31, and 32 to 63
    assert spread(9, min_agent_steps=20, max_agent_steps=40) == [20, 30, 40]


def test_thumbnail_is_taken_on_first_request_and_cached(service: RunningService, tmp_path: Path) -> None:
    video = _sent(service.engine, make_run(service.engine).id)
    url = f"/api/v1/videos/{video.id}/thumbnail"
    pending = service.client.get(url)
    assert (pending.status_code, pending.json()["state"]) == (202, "queued")
    assert service.client.get(url).json() == pending.json()
    file = tmp_path / thumbnail_file(video.id)
    file.write_bytes(JPEG)
    service.artifacts.put(file, video.run_id, "videos")
    with writing(service.engine) as session:
        job = jobs.claim(session, "here", 10, [])
        assert job is not None, "any host can take it"
        assert jobs.finish(session, job.id, job.tries)
        digest = hashlib.sha256(JPEG).hexdigest()
        videos.record_thumbnail(session, video.id, sha256=digest, n_bytes=len(JPEG))
    answer = service.client.get(url)
    assert (answer.status_code, answer.content) == (200, JPEG)
    assert answer.headers["content-type"] == "image/jpeg"
    assert "immutable" in answer.headers["cache-control"]


def test_thumbnail_needs_an_encoded_video_and_names_what_failed(sqlite_service: RunningService) -> None:
    run = make_run(sqlite_service.engine)
    waiting = _sent(sqlite_service.engine, run.id, video=None)
    answer = sqlite_service.client.get(f"/api/v1/videos/{waiting.id}/thumbnail")
    assert (answer.status_code, "has not been encoded" in answer.json()["detail"]) == (409, True)
    url = f"/api/v1/videos/{_sent(sqlite_service.engine, run.id).id}/thumbnail"
    sqlite_service.client.get(url)
    with writing(sqlite_service.engine) as session:
        job = jobs.claim(session, "here", 10, [])
        assert job is not None
        jobs.fail(session, job.id, job.tries, "Traceback\nno frames")
    failed = sqlite_service.client.get(url)
    assert (failed.status_code, "failed: no frames" in failed.json()["detail"]) == (409, True)
    assert sqlite_service.client.get(url, params={"again": True}).status_code == 202


def test_thumbnails_that_wait_are_limited(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(videos, "MAX_WAITING_THUMBNAILS_OF_USER", 2)
    run = make_run(sqlite_service.engine)
    ids = [_sent(sqlite_service.engine, run.id).id for _ in range(3)]
    answers = [sqlite_service.client.get(f"/api/v1/videos/{id_}/thumbnail").status_code for id_ in ids]
    assert answers == [202, 202, 429]
