import asyncio
import gzip
from pathlib import Path

import pytest
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.http import transfer
from backend.http.transfer import BLOCK_BYTES, LargeResponses
from tests.backend.analysis.metrics.oracle import RecordedRun
from tests.support import asynchronous
from tests.support.artifacts import make_episode
from tests.support.rows import make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.service

CATALOGUES = ("/api/v1/algorithms", "/api/v1/environments")


def test_json_is_compressed_for_clients_that_accept_it(sqlite_service: RunningService) -> None:
    make_run(sqlite_service.engine)
    client = sqlite_service.client
    for path in ("/api/v1/runs?spec=true", *CATALOGUES):
        plain = client.get(path, headers={"Accept-Encoding": "identity"})
        assert "content-encoding" not in plain.headers
        with client.stream("GET", path, headers={"Accept-Encoding": "gzip"}) as answer:
            assert answer.headers["content-encoding"] == "gzip"
            assert "accept-encoding" in answer.headers["vary"].lower()
            assert gzip.decompress(b"".join(answer.iter_raw())) == plain.content
        assert answer.num_bytes_downloaded < len(plain.content) / 2


@pytest.mark.parametrize("refusal", ["gzip;q=0", "identity, gzip; q=0.0", "GZIP;q=0.000"])
def test_nothing_is_compressed_for_clients_that_refuse_gzip(
    sqlite_service: RunningService, refusal: str
) -> None:
    run = make_run(sqlite_service.engine)
    export = f"/api/v1/runs/{run.id}/export?format=csv"
    for path in ("/api/v1/runs?spec=true", export, "/openapi.json", *CATALOGUES):
        with sqlite_service.client.stream("GET", path, headers={"Accept-Encoding": refusal}) as answer:
            assert answer.status_code == 200
            assert "content-encoding" not in answer.headers
    accepted = {"Accept-Encoding": "br;q=0, gzip;q=0.5"}
    for path in CATALOGUES:
        answer = sqlite_service.client.get(path, headers=accepted)
        assert answer.headers["content-encoding"] == "gzip"


@pytest.mark.parametrize("path", ["runs/{run}/export?format=csv", "runs/export?run={run}&format=csv"])
def test_text_exports_are_compressed_in_parts_for_clients_that_accept_it(
    sqlite_service: RunningService, path: str
) -> None:
    recorded = RecordedRun(sqlite_service.engine, seed=1)
    recorded.append({("loss/value", ""): 9_000})
    path = f"/api/v1/{path.format(run=recorded.run_id)}"
    plain = sqlite_service.client.get(path, headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert len(plain.content) > BLOCK_BYTES
    with sqlite_service.client.stream("GET", path, headers={"Accept-Encoding": "gzip"}) as answer:
        assert answer.headers["content-encoding"] == "gzip"
        assert answer.headers["content-type"].startswith("text/csv")
        assert "content-length" not in answer.headers  # it is not known before the end
        assert gzip.decompress(b"".join(answer.iter_raw())) == plain.content
    assert answer.num_bytes_downloaded < 0.6 * len(plain.content)


@pytest.mark.parametrize(
    ("path", "is_fast"),
    [
        ("runs/{run}/export?format=csv", True),
        ("runs/export?run={run}&format=csv", True),
        ("audit/export?format=json", False),
        ("runs?spec=true", False),
    ],
)
def test_exports_of_points_alone_are_compressed_at_the_lowest_level(
    sqlite_service: RunningService, path: str, is_fast: bool
) -> None:
    recorded = RecordedRun(sqlite_service.engine, seed=1)
    recorded.append({("loss/value", ""): 100})
    if path.startswith("audit"):
        for _ in range(10):
            sqlite_service.client.post("/api/v1/auth/login", json={"name": "nobody", "password": "x"})
    path = f"/api/v1/{path.format(run=recorded.run_id)}"
    with sqlite_service.client.stream("GET", path, headers={"Accept-Encoding": "gzip"}) as answer:
        assert answer.headers["content-encoding"] == "gzip"
        flags = next(answer.iter_raw())[8]  # RFC 1952, XFL: 4 is the fastest algorithm
    assert (flags == 4) is is_fast


def test_what_is_compressed_already_and_event_streams_are_sent_as_they_are(
    sqlite_service: RunningService, tmp_path: Path
) -> None:
    run = make_run(sqlite_service.engine)
    episode = make_episode(sqlite_service.engine, run, video="v.mp4")
    (tmp_path / "v.mp4").write_bytes(bytes(5000))
    sqlite_service.artifacts.put(tmp_path / "v.mp4", run.id, "videos")
    for path in (
        "/api/v1/events",
        f"/api/v1/runs/{run.id}/export?format=parquet",
        f"/api/v1/runs/{run.id}/export?format=npz",
        f"/api/v1/runs/{run.id}/export?format=tensorboard",
        f"/api/v1/episodes/{episode.id}/video",
    ):
        with sqlite_service.client.stream("GET", path, headers={"Accept-Encoding": "gzip"}) as answer:
            assert answer.status_code == 200
            assert "content-encoding" not in answer.headers


def test_catalogue_is_304_for_a_client_that_has_it(sqlite_service: RunningService) -> None:
    client = sqlite_service.client
    for path in CATALOGUES:
        etag = client.get(path).headers["etag"]
        assert etag == client.get(path, headers={"Accept-Encoding": "identity"}).headers["etag"]
        for given in (etag, f'"other", {etag}', "*"):
            answer = client.get(path, headers={"If-None-Match": given})
            assert (answer.status_code, answer.content) == (304, b"")
            assert answer.headers["etag"] == etag
            assert answer.headers["cache-control"] == "private, no-cache"
        assert client.get(path, headers={"If-None-Match": '"other"'}).status_code == 200
    with sqlite_service.new_client() as anyone:
        assert anyone.get(CATALOGUES[0], headers={"If-None-Match": "*"}).status_code == 401


def test_long_bodies_are_sent_in_blocks_and_bounded_while_the_client_does_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    body = bytes(range(256)) * 4096 + b"end"
    monkeypatch.setattr(transfer, "MAX_UNREAD_BYTES", 2 * len(body))

    async def run() -> tuple[list[bytes], list[int], list[bytes]]:
        app = LargeResponses(_application(body))
        can_read = asyncio.Event()
        statuses: list[int] = []

        async def get(path: str = "/", *, reads: bool) -> bytes:
            parts = []

            async def send(message: Message) -> None:
                if message["type"] == "http.response.start":
                    statuses.append(message["status"])
                    return
                if not reads:
                    await can_read.wait()
                assert len(message["body"]) <= BLOCK_BYTES
                parts.append(message["body"])

            await app({"type": "http", "method": "GET", "path": path}, _receive, send)
            return b"".join(parts)

        unread = [asyncio.create_task(get(reads=False)) for _ in range(2)]
        await asyncio.sleep(0)
        refused = await get(reads=True)
        monkeypatch.setattr(transfer, "MAX_UNREAD_BYTES", len(body))
        assert await get("/streamed", reads=True) == body[:2000]
        can_read.set()
        read = [await task for task in unread]
        return [refused], statuses, [*read, await get(reads=True)]

    refused, statuses, read = asynchronous.run(run())
    assert statuses == [200, 200, 503, 200, 200]
    assert b"too many large responses" in refused[0]
    assert read == [body] * 3


def test_long_body_that_takes_too_long_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "MAX_DURATION_S", 0.05)

    async def run() -> list[Message]:
        sent: list[Message] = []

        async def send(message: Message) -> None:
            sent.append(message)
            if len(sent) > 2:
                await asyncio.Event().wait()  # the client reads no more

        app = LargeResponses(Response(bytes(4 * BLOCK_BYTES)))
        await app({"type": "http", "method": "GET", "path": "/"}, _receive, send)
        return sent

    start, first, second = asynchronous.run(run())
    assert start["status"] == 200
    assert first["more_body"]
    assert second["more_body"]


def _application(body: bytes) -> ASGIApp:
    """An application that sends a body whole, or at /streamed its start in two short parts."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] != "/streamed":
            await Response(body)(scope, receive, send)
            return
        length = str(len(body)).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
        await send({"type": "http.response.body", "body": body[:1000], "more_body": True})
        await send({"type": "http.response.body", "body": body[1000:2000]})

    return app


async def _receive() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}
