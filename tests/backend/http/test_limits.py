"""Requests while another process holds the database's write lock."""

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Semaphore
from time import monotonic

import httpx
import pytest

from backend.analysis.metrics.repository import append
from backend.db.engine import writing
from backend.http import limits
from backend.http.bodies import MAX_SMALL_BODY_BYTES
from backend.http.limits import Turns, WriteQueue
from backend.platform.errors import TooMany, Unavailable
from backend.platform.principals import Role
from backend.runs.runs.service import bump_revision
from backend.specs.events import PointsEvent
from tests.support import asynchronous, external
from tests.support.artifacts import make_episode
from tests.support.pages import session_headers
from tests.support.rows import CARTPOLE, make_run
from tests.support.service import RunningService
from tests.support.sockets import connected, get_request
from tests.support.waiting import PATIENCE_S, until

N_WRITERS = 60
N_WATCHERS = 30


def _client(service: RunningService) -> httpx.Client:
    """A client for many threads: one for each would be created too slowly for their requests to meet."""
    return httpx.Client(
        base_url=service.url,
        cookies=dict(service.client.cookies),
        headers=service.client.headers,
        timeout=PATIENCE_S,
        limits=httpx.Limits(keepalive_expiry=1.0),
    )


@pytest.mark.long
@pytest.mark.service
def test_writes_are_503_and_reads_succeed_while_the_database_is_locked(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More requests wait than there are threads."""
    monkeypatch.setattr(limits, "WRITE_TIMEOUT_S", 5.0)
    client = sqlite_service.client
    other_process = sqlite3.connect(sqlite_service.engine.url.database or "", isolation_level=None)

    def post(body: object) -> tuple[httpx.Response, float]:
        started = monotonic()
        return writer.post("/api/v1/runs", json=body), monotonic() - started

    with _client(sqlite_service) as writer, ThreadPoolExecutor(N_WRITERS) as threads:
        # On this machine, as busy as it is, requests that wait for nothing.
        usual_s = max(duration_s for _, duration_s in threads.map(post, [{}] * N_WRITERS))
        other_process.execute("BEGIN IMMEDIATE")
        answers = [threads.submit(post, CARTPOLE) for _ in range(N_WRITERS)]
        until(lambda: sqlite_service.app_state.limits.writes.n_waiting)
        reads = 0
        while not all(answer.done() for answer in answers):
            assert client.get("/healthz").status_code == 200
            assert client.get("/api/v1/runs").status_code == 200
            reads += 1
        for answer, duration_s in (answer.result() for answer in answers):
            assert answer.status_code == 503
            assert int(answer.headers["Retry-After"]) > 0
            assert duration_s < 15 + 5 * usual_s  # 20 and more before there was a queue
    assert reads > 1
    assert client.get("/api/v1/runs").json()["total"] == 0
    other_process.execute("ROLLBACK")
    other_process.close()
    assert client.post("/api/v1/runs", json=CARTPOLE).status_code == 201


@pytest.mark.long
@pytest.mark.service
def test_requests_for_videos_wait_for_the_write_lock_in_no_thread(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "WRITE_TIMEOUT_S", 2.0)
    episode = make_episode(sqlite_service.engine, make_run(sqlite_service.engine))
    client = sqlite_service.client
    other_process = sqlite3.connect(sqlite_service.engine.url.database or "", isolation_level=None)
    other_process.execute("BEGIN IMMEDIATE")

    def get(_: int) -> int:
        return watcher.get(f"/api/v1/episodes/{episode.id}/video").status_code

    with _client(sqlite_service) as watcher, ThreadPoolExecutor(N_WATCHERS) as threads:
        answers = [threads.submit(get, n) for n in range(N_WATCHERS)]
        until(lambda: sqlite_service.app_state.limits.writes.n_waiting)
        assert client.get("/api/v1/runs").status_code == 200
        assert {answer.result() for answer in answers} == {503}
        other_process.execute("ROLLBACK")
        other_process.close()
        assert get(0) == 202


STUDY = {
    "name": "s",
    "arms": [{"label": "a", "algorithm": "a3c"}],
    "environments": ["CartPole-v1"],
    "draws": {"n": 1},
    "run": {"stop": {"agent_steps": 1}},
}
UPLOADED = external.checkpoint(1, b"x")
TURNS = [
    ("estimates", "POST", "runs/estimate", CARTPOLE),
    ("estimates", "POST", "studies/estimate", {"study": STUDY}),
    ("estimates", "POST", "studies/draft", {"runs": ["0" * 26]}),
    ("hashes", "POST", "runs/{run}/checkpoints", UPLOADED),
    ("hashes", "POST", "runs/{run}/videos", UPLOADED | {"form": "file"}),
    ("lists", "GET", "runs/fields", None),
    ("lists", "GET", "comparisons/groups?by=seed", None),
    ("lists", "GET", "scores", None),
    ("lists", "GET", "runs?filter=score>1", None),
    ("lists", "GET", "runs?sort=config.gamma", None),
]
"""Kind of turn, method, address and body of what takes long."""


@pytest.mark.service
def test_what_takes_long_waits_for_a_turn(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, bounds = sqlite_service.client, sqlite_service.app_state.limits
    run = external.create(client)
    for kind in dict.fromkeys(kind for kind, *_ in TURNS):
        none = Turns(total=0, per_user=0, max_waiting=0)
        with monkeypatch.context() as patch:
            patch.setitem(bounds.__dict__, kind, none)
            for of, method, path, body in TURNS:
                answer = client.request(method, f"/api/v1/{path.format(run=run['id'])}", json=body)
                assert (answer.status_code == 429) == (of == kind), (kind, path, answer.text)


@pytest.mark.service
def test_uploads_of_one_token_are_checked_one_after_another_and_delay_no_other_token(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold, entered = Event(), Semaphore(0)

    def put(*given: object) -> None:
        entered.release()
        assert hold.wait(PATIENCE_S)
        raise Unavailable("enough", retry_after_s=1)

    monkeypatch.setattr("backend.external.files._put", put)
    bounds = sqlite_service.app_state.limits
    with (
        sqlite_service.client_as(Role.OPERATOR) as script,
        sqlite_service.client_as(Role.OPERATOR) as other,
        ThreadPoolExecutor(3) as threads,
    ):
        paths = {
            client: f"/api/v1/runs/{external.create(client)['id']}/checkpoints" for client in (script, other)
        }
        answers = [threads.submit(script.post, paths[script], json=UPLOADED) for _ in range(2)]
        until(lambda: bounds.hashes.n_waiting)
        answers.append(threads.submit(other.post, paths[other], json=UPLOADED))
        for _ in range(2):
            assert entered.acquire(timeout=PATIENCE_S)
        assert (bounds.hashes.n_working, bounds.hashes.n_waiting) == (2, 1)
        assert sqlite_service.client.get("/api/v1/runs").status_code == 200
        hold.set()
        assert {answer.result().status_code for answer in answers} == {503}
        assert (bounds.hashes.n_working, bounds.hashes.n_waiting) == (0, 0)


@pytest.mark.service
def test_long_bodies_of_one_token_are_read_one_after_another(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = Event()

    def estimate(*given: object) -> None:
        assert hold.wait(PATIENCE_S)
        raise Unavailable("enough", retry_after_s=1)

    monkeypatch.setattr("backend.runs.runs.requests.estimate", estimate)
    body = CARTPOLE | {"notes": "x" * MAX_SMALL_BODY_BYTES}
    bounds = sqlite_service.app_state.limits
    with _client(sqlite_service) as client, ThreadPoolExecutor(2) as threads:
        answers = [threads.submit(client.post, "/api/v1/runs/estimate", json=body) for _ in range(2)]
        until(lambda: bounds.heavy.n_waiting)
        assert client.get("/api/v1/runs").status_code == 200
        hold.set()
        assert {answer.result().status_code for answer in answers} == {503}
        assert (bounds.heavy.n_waiting, bounds.heavy.n_working) == (0, 0)


@pytest.mark.service
def test_requests_without_a_login_are_few_at_once_for_each_address(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = Event()
    monkeypatch.setattr(sqlite_service.app_state.bus, "ping", lambda: hold.wait(PATIENCE_S))
    turns = sqlite_service.app_state.limits.without_login
    with (
        httpx.Client(base_url=sqlite_service.url, timeout=PATIENCE_S) as nobody,
        ThreadPoolExecutor(6) as threads,
    ):
        answers = [threads.submit(nobody.get, "/readyz") for _ in range(6)]
        until(lambda: turns.n_waiting == 2)
        assert nobody.get("/healthz").status_code == 200
        assert sqlite_service.client.get("/api/v1/runs").status_code == 200
        hold.set()
        assert {answer.result().status_code for answer in answers} == {200}


@pytest.mark.service
def test_large_chart_that_is_not_read_delays_no_other_chart_than_large_ones_of_its_user(
    sqlite_service: RunningService,
) -> None:
    run, metrics = make_run(sqlite_service.engine), [f"m/{n}" for n in range(11)]
    at = list(range(10_000))
    others = {"agent_steps": at, "frames": at, "episodes": at, "wall_time_s": [float(n) for n in at]}
    points = [PointsEvent(metric=name, value=[n / 7 for n in at], **others) for name in metrics]
    with writing(sqlite_service.engine) as session:
        append(session, run.id, 1, bump_revision(session, run.id), points)
    path = f"/api/v1/series?run={run.id}&points=10000&metric=" + "&metric=".join(metrics)
    turns = sqlite_service.app_state.limits.large_charts
    asked = get_request(sqlite_service.url, path, session_headers(sqlite_service.client))
    with _client(sqlite_service) as client, ThreadPoolExecutor(1) as thread:
        with connected(sqlite_service.url, asked, n=1):
            until(lambda: turns.n_working)
            second = thread.submit(client.get, path)
            until(lambda: turns.n_waiting)
            chart = client.get("/api/v1/series", params={"run": run.id, "metric": "m/0"})
            assert chart.status_code == 200
            assert turns.n_waiting == 1
        assert second.result().status_code == 200
    until(lambda: not turns.n_working)


def test_write_queue_is_bounded_and_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_WRITERS", 1)
    monkeypatch.setattr(limits, "MAX_WAITING_WRITERS", 2)
    order: list[int] = []

    async def run() -> None:
        queue = WriteQueue()
        hold = asyncio.Event()

        async def write(n: int) -> None:
            async with queue.turn(f"token {n}"):
                order.append(n)
                await hold.wait()

        writers = []
        for n in range(3):
            writers.append(asyncio.create_task(write(n)))
            await asyncio.sleep(0)
        with pytest.raises(Unavailable, match="busy"):
            await write(3)
        hold.set()
        await asyncio.gather(*writers)
        assert queue.n_waiting == 0

    asynchronous.run(run())
    assert order == [0, 1, 2]


def test_request_that_waits_too_long_for_its_turn_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_WRITERS", 1)
    monkeypatch.setattr(limits, "WRITE_TIMEOUT_S", 0.05)

    async def run() -> None:
        queue = WriteQueue()
        async with queue.turn("a"):
            with pytest.raises(Unavailable):
                async with queue.turn("b"):
                    raise AssertionError("two at the same time")
        async with queue.turn("b"):
            pass

    asynchronous.run(run())


def test_token_has_one_turn_to_write_and_others_do_not_wait_for_it() -> None:
    async def run() -> None:
        queue = WriteQueue()
        hold = asyncio.Event()

        async def write(token: str) -> None:
            async with queue.turn(token):
                await hold.wait()

        writers = [asyncio.create_task(write("a")) for _ in range(3 * limits.MAX_WRITERS)]
        await asyncio.sleep(0)
        assert queue.n_waiting == len(writers) - 1
        async with queue.turn("b"):
            pass
        hold.set()
        await asyncio.gather(*writers)

    asynchronous.run(run())


def test_turn_that_rests_is_free_for_the_next_request_only_afterwards() -> None:
    async def work() -> None:
        resting, plain = (limits.Turns(total=1, per_user=1, rests=rests) for rests in (True, False))
        for turns, n_working in ((resting, 1), (plain, 0)):
            async with turns.turn("a"):
                await asyncio.sleep(0.01)
            assert turns.n_working == n_working
            async with turns.turn("b"):
                assert turns.n_working == 1

    asynchronous.run(work())


def test_turns_are_few_for_each_user_and_go_to_others_first() -> None:
    async def work() -> list[str]:
        turns = limits.Turns(total=3, per_user=2, max_waiting=5)
        begun: list[str] = []
        end = asyncio.Event()

        async def request_of(user: str) -> None:
            async with turns.turn(user):
                begun.append(user)
                await end.wait()

        tasks = [asyncio.create_task(request_of(user)) for user in "aaaabb"]
        await asyncio.sleep(0)
        assert begun == ["a", "a", "b"]
        tasks[2].cancel()  # of those that wait
        with pytest.raises(TooMany):
            await asyncio.gather(*(request_of("a") for _ in range(6)))
        end.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        while turns.n_waiting or turns.n_working:
            await asyncio.sleep(0)
        return begun

    begun = asynchronous.run(work())
    assert (begun.count("b"), begun.count("a") >= 3) == (2, True)


def test_many_requests_of_one_user_do_not_delay_those_of_others() -> None:
    async def work() -> list[str]:
        turns = limits.Turns(total=1, per_user=1)
        order: list[str] = []

        async def request_of(user: str) -> None:
            async with turns.turn(user):
                order.append(user)
                await asyncio.sleep(0)

        await asyncio.gather(*(request_of(user) for user in "aaaaabcb"))
        assert (turns.n_waiting, turns.n_working) == (0, 0)
        return order

    assert asynchronous.run(work()) == [*"abcabaaa"]
