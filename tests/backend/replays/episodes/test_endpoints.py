import hashlib
from pathlib import Path
from typing import Any

import pytest
import redis

from backend.db import Episode
from backend.db.engine import reading, writing
from backend.db.job import VIDEO
from backend.fleet.jobs import repository as job_rows
from backend.fleet.jobs import service as jobs
from backend.platform.errors import NotFound
from backend.platform.principals import Role
from backend.replays.episodes import service as episodes
from backend.specs.environments import ENVIRONMENTS
from tests.support.artifacts import N_STEPS, make_episode
from tests.support.rows import make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.service

MP4 = bytes(range(256)) * 4
JPEG = b"\xff\xd8" + bytes(range(100))


def _add_video(service: RunningService, episode: Episode, folder: Path) -> None:
    file = folder / "v.mp4"
    file.write_bytes(MP4)
    service.artifacts.put(file, episode.run_id, "videos")
    with writing(service.engine) as session:
        row = session.get(Episode, episode.id)
        assert row is not None
        row.video = "v.mp4"


def test_list_sorts_filters_pages_and_omits_superseded(service: RunningService) -> None:
    run, other = make_run(service.engine), make_run(service.engine)
    created = [
        make_episode(service.engine, run, agent_steps=steps, episode_return=value, kind=kind)
        for steps, value, kind in ((1, 5.0, "training"), (2, 9.0, "evaluation"), (3, 7.0, "training"))
    ]
    old = make_episode(service.engine, run, agent_steps=4, superseded=True)
    make_episode(service.engine, other)

    def ids(**params: Any) -> list[str]:
        answer = service.client.get(f"/api/v1/runs/{run.id}/episodes", params=params).json()
        return [item["id"] for item in answer["items"]]

    first_id, two, three = (episode.id for episode in created)
    assert ids() == [three, two, first_id]
    assert ids(sort="-episode_return") == [two, three, first_id]
    assert ids(kind="training") == [three, first_id]
    assert ids(superseded=True) == [old.id, three, two, first_id]
    assert ids(max_agent_steps=2) == [two, first_id]
    page = service.client.get(f"/api/v1/runs/{run.id}/episodes", params={"limit": 2}).json()
    assert ids(cursor=page["next_cursor"]) == [first_id]


def test_spread_episodes_are_the_first_of_equal_stretches_and_stay(service: RunningService) -> None:
    run, other = make_run(service.engine), make_run(service.engine)
    steps = [10, 20, 30, 40, 50, 60, 70, 80, 900, 1000]
    for at in steps[:5]:
        make_episode(service.engine, run, agent_steps=at)
    make_episode(service.engine, run, agent_steps=15, superseded=True)
    make_episode(service.engine, other, agent_steps=11)

    def spread(n: int, **params: int) -> list[int]:
        answer = service.client.get(f"/api/v1/runs/{run.id}/episodes", params={"spread": n} | params).json()
        assert answer["next_cursor"] is None
        return [item["agent_steps"] for item in answer["items"]]

    assert spread(9) == [10, 20, 30, 40, 50]
    assert spread(5) == [10, 20, 30, 40, 50], "there is room for all, however they lie"
    assert spread(2) == [10, 40]  # of 0 to 31, and 32 to 63
    for at in steps[5:8]:
        make_episode(service.engine, run, agent_steps=at)
    assert spread(3) == [10, 40, 70]
    assert spread(2, min_agent_steps=30, max_agent_steps=60) == [30, 40]
    for at in steps[8:]:
        make_episode(service.engine, run, agent_steps=at)
    assert spread(2) == [10, 900], "those of a run that goes on stay"
    assert spread(1) == [10]
    assert spread(5, min_agent_steps=2000) == []
    url = f"/api/v1/runs/{run.id}/episodes"
    assert service.client.get(url, params={"spread": 0}).status_code == 422


def test_trace_returns_actions_values_and_policies(service: RunningService, tmp_path: Path) -> None:
    run = make_run(service.engine)
    episode = make_episode(service.engine, run, service.artifacts, tmp_path)
    trace = service.client.get(f"/api/v1/episodes/{episode.id}/trace").json()
    assert trace["actions"] == [0, 1, 0, 1, 0]
    assert trace["action_names"] == ["LEFT", "RIGHT"]
    assert trace["values"] == [0.1, None, None, 2.0, 3.0]
    assert trace["policies"] == [[0.5, 0.5]] * N_STEPS
    assert (trace["seed"], trace["frames_per_step"], trace["lives"]) == (7, 4, [0] * N_STEPS)
    assert trace["action_values"] is False


def test_trace_of_value_based_method_has_action_values(
    sqlite_service: RunningService, tmp_path: Path
) -> None:
    run = make_run(sqlite_service.engine, algorithm="one_step_q")
    episode = make_episode(sqlite_service.engine, run, sqlite_service.artifacts, tmp_path)
    assert sqlite_service.client.get(f"/api/v1/episodes/{episode.id}/trace").json()["action_values"] is True


def test_observation_video_is_404_until_rendered(sqlite_service: RunningService, tmp_path: Path) -> None:
    episode = make_episode(sqlite_service.engine, make_run(sqlite_service.engine))
    url = f"/api/v1/episodes/{episode.id}/observations"
    answer = sqlite_service.client.get(url)
    assert (answer.status_code, "not rendered" in answer.json()["detail"]) == (404, True)
    file = tmp_path / f"{episode.id}-observations.mp4"
    file.write_bytes(MP4)
    sqlite_service.artifacts.put(file, episode.run_id, "videos")
    part = sqlite_service.client.get(url, headers={"Range": "bytes=10-19"})
    assert (part.status_code, part.content) == (206, MP4[10:20])


def test_trace_is_404_when_its_file_is_missing(sqlite_service: RunningService) -> None:
    episode = make_episode(sqlite_service.engine, make_run(sqlite_service.engine))
    answer = sqlite_service.client.get(f"/api/v1/episodes/{episode.id}/trace")
    assert (answer.status_code, "does not exist" in answer.json()["detail"]) == (404, True)
    assert sqlite_service.client.get(f"/api/v1/episodes/{'0' * 26}/trace").status_code == 404


def test_replay_in_an_unavailable_artifact_store_is_503(
    sqlite_service: RunningService, tmp_path: Path
) -> None:
    run = make_run(sqlite_service.engine)
    episode = make_episode(sqlite_service.engine, run, sqlite_service.artifacts, tmp_path)
    store = Path(sqlite_service.settings.artifacts.removeprefix("file://"))
    folder = store / "runs" / run.id
    folder.rename(tmp_path / "elsewhere")
    folder.touch()  # as a folder without permission, it can neither be opened nor called absent
    for route in ("trace", "observations"):
        answer = sqlite_service.client.get(f"/api/v1/episodes/{episode.id}/{route}")
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5"), route
        assert "artifact store is unavailable" in answer.json()["detail"]


def test_damaged_replay_is_410_on_both_routes(
    sqlite_service: RunningService, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    run = make_run(sqlite_service.engine)
    store = sqlite_service.artifacts
    make_episode(sqlite_service.engine, run, store, tmp_path, replay="r.npz")
    intact = (tmp_path / "r.npz").read_bytes()
    flipped = bytes([intact[0], intact[1], intact[2], intact[3] ^ 1, *intact[4:]])
    digest = hashlib.sha256(intact).hexdigest()
    for name, content, sha256 in (
        ("truncated", intact[:200], None),
        ("zeroed", bytes(len(intact)), None),
        ("empty", b"", None),
        ("header", flipped, digest),
    ):
        with subtests.test(damage=name):
            episode = make_episode(sqlite_service.engine, run, replay=f"{name}.npz", replay_sha256=sha256)
            (tmp_path / episode.replay).write_bytes(content)
            store.put(tmp_path / episode.replay, run.id, "replays")
            for address, params in (
                (f"/api/v1/episodes/{episode.id}/trace", {}),
                ("/api/v1/figures/episode_trace", {"episode": episode.id}),
            ):
                answer = sqlite_service.client.get(address, params=params)
                assert (answer.status_code, "damaged" in answer.json()["detail"]) == (410, True)


def test_damaged_video_is_410_and_can_be_rendered_again(
    sqlite_service: RunningService, tmp_path: Path
) -> None:
    episode = make_episode(sqlite_service.engine, make_run(sqlite_service.engine))
    url = f"/api/v1/episodes/{episode.id}/video"
    client = sqlite_service.client
    client.get(url)
    with writing(sqlite_service.engine) as session:
        job = jobs.claim(session, "here", 10, list(ENVIRONMENTS))
        assert job is not None
        assert jobs.finish(session, job.id, job.tries)
    _add_video(sqlite_service, episode, tmp_path)
    with writing(sqlite_service.engine) as session:
        session.get_one(Episode, episode.id).video_sha256 = hashlib.sha256(MP4).hexdigest()
    assert client.get(url, params={"again": True}).content == MP4
    (tmp_path / "v.mp4").write_bytes(MP4[:-1])
    sqlite_service.artifacts.put(tmp_path / "v.mp4", episode.run_id, "videos")
    damaged = client.get(url)
    assert (damaged.status_code, "again=true" in damaged.json()["detail"]) == (410, True)
    sqlite_service.artifacts.delete(episode.run_id, "videos", "v.mp4")
    assert client.get(url, params={"again": True}).json()["state"] == "queued"
    assert client.get(f"/api/v1/episodes/{episode.id}").json()["video"] == "queued"


def test_video_is_rendered_on_first_request(service: RunningService, redis_url: str, tmp_path: Path) -> None:
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
    _add_video(service, episode, tmp_path)
    assert service.client.get(url).content == MP4
    assert service.client.get(f"/api/v1/episodes/{episode.id}").json()["video"] == "done"


def test_removed_episode_is_404_and_its_video_is_not_rendered(service: RunningService) -> None:
    episode = make_episode(service.engine, make_run(service.engine))
    with writing(service.engine) as session:
        session.get_one(Episode, episode.id).removed = True
    for path in ("", "/trace", "/observations", "/video", "/thumbnail"):
        assert service.client.get(f"/api/v1/episodes/{episode.id}{path}").status_code == 404, path
    # It was there when the request was checked.
    with pytest.raises(NotFound), writing(service.engine) as session:
        episodes.request_video(session, episode, again=False)
    with reading(service.engine) as session:
        assert job_rows.count_waiting(session, VIDEO) == {}


def test_failed_rendering_returns_409_and_can_be_retried(service: RunningService) -> None:
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


def test_video_supports_byte_ranges(
    sqlite_service: RunningService, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    episode = make_episode(sqlite_service.engine, make_run(sqlite_service.engine))
    _add_video(sqlite_service, episode, tmp_path)
    n = len(MP4)
    for byte_range, status, first, last in [
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
        with subtests.test(byte_range=byte_range):
            headers = {"Range": byte_range} if byte_range else {}
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


def test_videos_that_wait_to_be_rendered_are_limited(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(episodes, "MAX_WAITING_VIDEOS_OF_USER", 2)
    monkeypatch.setattr(episodes, "MAX_WAITING_VIDEOS", 3)
    run = make_run(service.engine)
    urls = [f"/api/v1/episodes/{make_episode(service.engine, run).id}/video" for _ in range(5)]
    with service.client_as(Role.VIEWER) as viewer:
        statuses = [viewer.get(url).status_code for url in urls[:3]]
        assert statuses == [202, 202, 429]
        assert int(viewer.get(urls[2]).headers["retry-after"]) > 0
        assert viewer.get(urls[0]).status_code == 202  # it waits already
    assert [service.client.get(url).status_code for url in urls[3:]] == [202, 429]


def test_rendered_video_is_sent_while_another_process_writes(
    sqlite_service: RunningService, tmp_path: Path
) -> None:
    episode = make_episode(sqlite_service.engine, make_run(sqlite_service.engine))
    _add_video(sqlite_service, episode, tmp_path)
    with sqlite_service.client_as(Role.VIEWER) as viewer, writing(sqlite_service.engine) as session:
        job_rows.find(session, "video", episode.id)  # takes SQLite's write lock
        answer = viewer.get(f"/api/v1/episodes/{episode.id}/video")
    assert (answer.status_code, answer.content) == (200, MP4)


def _add_thumbnail(service: RunningService, episode: Episode, folder: Path) -> str:
    file = folder / f"{episode.id}-thumbnail.jpg"
    file.write_bytes(JPEG)
    service.artifacts.put(file, episode.run_id, "videos")
    with writing(service.engine) as session:
        job = jobs.claim(session, "here", 10, list(ENVIRONMENTS))
        assert job is not None
        assert jobs.finish(session, job.id, job.tries)
        digest = hashlib.sha256(JPEG).hexdigest()
        episodes.record_thumbnail(session, episode.id, sha256=digest, n_bytes=len(JPEG))
    return file.name


def test_thumbnail_is_rendered_on_first_request_and_cached(service: RunningService, tmp_path: Path) -> None:
    episode = make_episode(service.engine, make_run(service.engine))
    url = f"/api/v1/episodes/{episode.id}/thumbnail"
    first = service.client.get(url)
    assert (first.status_code, first.json()["state"]) == (202, "queued")
    assert service.client.get(url).json() == first.json()
    file = _add_thumbnail(service, episode, tmp_path)
    answer = service.client.get(url)
    assert (answer.status_code, answer.content) == (200, JPEG)
    assert answer.headers["content-type"] == "image/jpeg"
    assert answer.headers["cache-control"] == "private, max-age=86400, immutable"
    # A thumbnail that the store has lost, or whose content has changed, is rendered once more.
    (tmp_path / file).write_bytes(JPEG[:-1])
    service.artifacts.put(tmp_path / file, episode.run_id, "videos")
    assert service.client.get(url).status_code == 202
    _add_thumbnail(service, episode, tmp_path)
    assert service.client.get(url).content == JPEG
    service.artifacts.delete(episode.run_id, "videos", file)
    assert service.client.get(url).status_code == 202


def test_failed_thumbnail_gives_its_reason_and_can_be_retried(sqlite_service: RunningService) -> None:
    episode = make_episode(sqlite_service.engine, make_run(sqlite_service.engine))
    url = f"/api/v1/episodes/{episode.id}/thumbnail"
    sqlite_service.client.get(url)
    with writing(sqlite_service.engine) as session:
        job = jobs.claim(session, "here", 10, list(ENVIRONMENTS))
        assert job is not None
        jobs.fail(session, job.id, job.tries, "Traceback\nno such game")
    failed = sqlite_service.client.get(url)
    assert failed.status_code == 409
    assert "rendering the thumbnail failed: no such game" in failed.json()["detail"]
    assert sqlite_service.client.get(url, params={"again": True}).status_code == 202


def test_thumbnails_that_wait_are_limited_apart_from_videos(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(episodes, "MAX_WAITING_THUMBNAILS_OF_USER", 2)
    run = make_run(sqlite_service.engine)
    urls = [f"/api/v1/episodes/{make_episode(sqlite_service.engine, run).id}" for _ in range(3)]
    get = sqlite_service.client.get
    assert [get(f"{url}/thumbnail").status_code for url in urls] == [202, 202, 429]
    assert get(f"{urls[2]}/video").status_code == 202
