from pathlib import Path
from typing import Any

import pytest
import redis

from backend.db import Episode
from backend.db.engine import writing
from backend.jobs import repository as jobs
from backend.specs.environments import ENVIRONMENTS
from tests.support.artifacts import N_STEPS, make_episode
from tests.support.runs import make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.service

MP4 = bytes(range(256)) * 4


def _give_video(service: RunningService, episode: Episode, folder: Path) -> None:
    file = folder / "v.mp4"
    file.write_bytes(MP4)
    service.artifacts.put(file, episode.run_id, "videos")
    with writing(service.engine) as session:
        found = session.get(Episode, episode.id)
        assert found is not None
        found.video = "v.mp4"


def test_lists_sort_filter_and_leave_out_what_is_superseded(service: RunningService) -> None:
    run, other = make_run(service.engine), make_run(service.engine)
    made = [
        make_episode(service.engine, run, agent_steps=steps, episode_return=value, kind=kind)
        for steps, value, kind in ((1, 5.0, "training"), (2, 9.0, "evaluation"), (3, 7.0, "training"))
    ]
    old = make_episode(service.engine, run, agent_steps=4, superseded=True)
    make_episode(service.engine, other)

    def ids(**params: Any) -> list[str]:
        answer = service.client.get(f"/api/v1/runs/{run.id}/episodes", params=params).json()
        return [item["id"] for item in answer["items"]]

    one, two, three = (episode.id for episode in made)
    assert ids() == [three, two, one]
    assert ids(sort="-episode_return") == [two, three, one]
    assert ids(kind="training") == [three, one]
    assert ids(superseded=True) == [old.id, three, two, one]
    page = service.client.get(f"/api/v1/runs/{run.id}/episodes", params={"limit": 2}).json()
    assert ids(cursor=page["next_cursor"]) == [one]


def test_trace(service: RunningService, tmp_path: Path) -> None:
    run = make_run(service.engine)
    episode = make_episode(service.engine, run, service.artifacts, tmp_path)
    trace = service.client.get(f"/api/v1/episodes/{episode.id}/trace").json()
    assert trace["actions"] == [0, 1, 0, 1, 0]
    assert trace["action_names"] == ["LEFT", "RIGHT"]
    assert trace["values"] == [0.1, None, None, 2.0, 3.0]
    assert trace["policies"] == [[0.5, 0.5]] * N_STEPS
    assert (trace["seed"], trace["frames_per_step"], trace["lives"]) == (7, 4, [0] * N_STEPS)
    assert trace["action_values"] is False


def test_a_value_methods_trace_is_told_to_hold_q(sqlite_service: RunningService, tmp_path: Path) -> None:
    run = make_run(sqlite_service.engine, algorithm="one_step_q")
    episode = make_episode(sqlite_service.engine, run, sqlite_service.artifacts, tmp_path)
    assert sqlite_service.client.get(f"/api/v1/episodes/{episode.id}/trace").json()["action_values"] is True


def test_what_the_network_saw_is_there_once_it_is_drawn(
    sqlite_service: RunningService, tmp_path: Path
) -> None:
    episode = make_episode(sqlite_service.engine, make_run(sqlite_service.engine))
    url = f"/api/v1/episodes/{episode.id}/observations"
    answer = sqlite_service.client.get(url)
    assert (answer.status_code, "not drawn" in answer.json()["detail"]) == (404, True)
    file = tmp_path / f"{episode.id}-observations.mp4"
    file.write_bytes(MP4)
    sqlite_service.artifacts.put(file, episode.run_id, "videos")
    part = sqlite_service.client.get(url, headers={"Range": "bytes=10-19"})
    assert (part.status_code, part.content) == (206, MP4[10:20])


def test_a_trace_whose_file_is_gone_is_not_found(sqlite_service: RunningService) -> None:
    episode = make_episode(sqlite_service.engine, make_run(sqlite_service.engine))
    answer = sqlite_service.client.get(f"/api/v1/episodes/{episode.id}/trace")
    assert (answer.status_code, "gone" in answer.json()["detail"]) == (404, True)
    assert sqlite_service.client.get(f"/api/v1/episodes/{'0' * 26}/trace").status_code == 404


def test_a_video_is_drawn_when_first_asked_for(
    service: RunningService, redis_url: str, tmp_path: Path
) -> None:
    episode = make_episode(service.engine, make_run(service.engine))
    url = f"/api/v1/episodes/{episode.id}/video"
    assert service.client.get(f"/api/v1/episodes/{episode.id}").json()["video"] == "none"
    with redis.Redis.from_url(redis_url) as client:
        pokes = client.llen("cpu")
        first = service.client.get(url)
        assert (first.status_code, first.json()["state"]) == (202, "queued")
        assert int(first.headers["retry-after"]) >= 1
        assert service.client.get(url).json() == first.json()
        assert client.llen("cpu") == pokes + 1
    assert service.client.get(f"/api/v1/episodes/{episode.id}").json()["video"] == "queued"
    with writing(service.engine) as session:
        assert jobs.claim(session, "here", 10, list(ENVIRONMENTS)) is not None
    assert service.client.get(url).json()["state"] == "running"
    _give_video(service, episode, tmp_path)
    assert service.client.get(url).content == MP4
    assert service.client.get(f"/api/v1/episodes/{episode.id}").json()["video"] == "done"


def test_a_drawing_that_failed_is_told_and_can_be_tried_again(service: RunningService) -> None:
    episode = make_episode(service.engine, make_run(service.engine))
    url = f"/api/v1/episodes/{episode.id}/video"
    service.client.get(url)
    with writing(service.engine) as session:
        job = jobs.claim(session, "here", 10, list(ENVIRONMENTS))
        assert job is not None
        jobs.fail(session, job.id, job.tries, "Traceback\nno such game")
    failed = service.client.get(url)
    assert (failed.status_code, "no such game" in failed.json()["detail"]) == (409, True)
    assert service.client.get(url, params={"again": True}).status_code == 202
    assert service.client.get(url).status_code == 202


def test_parts_of_a_video(sqlite_service: RunningService, tmp_path: Path, subtests: pytest.Subtests) -> None:
    episode = make_episode(sqlite_service.engine, make_run(sqlite_service.engine))
    _give_video(sqlite_service, episode, tmp_path)
    n = len(MP4)
    for asked, status, first, last in [
        (None, 200, 0, n - 1),
        ("bytes=0-", 206, 0, n - 1),
        ("bytes=10-19", 206, 10, 19),
        ("bytes=10-99999", 206, 10, n - 1),
        ("bytes=-7", 206, n - 7, n - 1),
        ("bytes=-99999", 206, 0, n - 1),
        ("bytes=1-2,4-5", 200, 0, n - 1),
        ("pages=1-2", 200, 0, n - 1),
        ("bytes=-", 200, 0, n - 1),
        (f"bytes={n}-", 416, 0, -1),
        ("bytes=20-10", 416, 0, -1),
        ("bytes=-0", 416, 0, -1),
    ]:
        with subtests.test(asked=asked):
            headers = {"Range": asked} if asked else {}
            answer = sqlite_service.client.get(f"/api/v1/episodes/{episode.id}/video", headers=headers)
            assert answer.status_code == status
            if status == 416:
                assert answer.headers["content-range"] == f"bytes */{n}"
                continue
            assert answer.content == MP4[first : last + 1]
            assert answer.headers["content-type"] == "video/mp4"
            assert answer.headers["accept-ranges"] == "bytes"
            if status == 206:
                assert answer.headers["content-range"] == f"bytes {first}-{last}/{n}"
