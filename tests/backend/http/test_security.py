import asyncio
from pathlib import Path

import httpx
import pytest

from backend.app import create_app
from backend.http.bodies import MAX_BODY_BYTES
from backend.http.dependencies import COOKIE, PAGE_SECRET_HEADER
from backend.http.security import PROBES, SECURITY_HEADERS
from backend.platform.settings import Settings
from tests.support.rows import CARTPOLE
from tests.support.service import RunningService

pytestmark = pytest.mark.service


def test_host_header_other_than_own_hosts_is_rejected(
    sqlite_service: RunningService, subtests: pytest.Subtests
) -> None:
    for host, status in [
        ("localhost", 200),
        ("LOCALHOST:1234", 200),
        ("127.0.0.1:80", 200),
        ("[::1]:8642", 200),
        ("evil.example", 400),
        ("localhost.evil.example", 400),
        ("evil.example:127.0.0.1", 400),
        ("", 400),
    ]:
        with subtests.test(host=host):
            answer = sqlite_service.client.get("/api/v1/auth/methods", headers={"Host": host})
            assert answer.status_code == status
            if status == 400:
                assert "host" in answer.json()["detail"]
            for probe in PROBES:
                assert sqlite_service.client.get(probe, headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    ("host", "named", "status"),
    [
        ("127.0.0.2", "127.0.0.2:8642", 200),
        ("::1", "[::1]", 200),
        ("fd00::1", "[FD00::1]:80", 200),
        ("lab-server", "lab-server", 200),
        ("0.0.0.0", "0.0.0.0:8642", 400),
        ("::", "[::]", 400),
    ],
)
def test_address_that_the_server_binds_to_is_a_host_of_its_own(
    tmp_path: Path, host: str, named: str, status: int
) -> None:
    async def ask() -> int:
        transport = httpx.ASGITransport(create_app(Settings(home=tmp_path, host=host)))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return (await client.get("/docs", headers={"Host": named})).status_code

    assert asyncio.run(ask()) == status


def test_change_by_cookie_needs_own_origin(sqlite_service: RunningService, subtests: pytest.Subtests) -> None:
    own = sqlite_service.url
    for origin, status in [
        (own, 201),
        (own.replace("http:", "https:"), 201),  # as a proxy that ends TLS passes it on
        (own.replace("http:", "ftp:"), 403),
        (None, 403),
        ("null", 403),
        ("http://evil.example", 403),
        (own + ".evil.example", 403),
        ("http://localhost:1", 403),
        ("http://[", 403),
    ]:
        with subtests.test(origin=origin), sqlite_service.new_client() as browser:
            browser.cookies = sqlite_service.client.cookies
            browser.headers[PAGE_SECRET_HEADER] = sqlite_service.client.headers[PAGE_SECRET_HEADER]
            del browser.headers["Origin"]
            headers = {"Origin": origin} if origin else {}
            answer = browser.post("/api/v1/runs", json=CARTPOLE, headers=headers)
            assert answer.status_code == status
            if status == 403:
                assert answer.json()["detail"].endswith("a proxy must pass the header Host on")
            assert browser.get("/api/v1/runs", headers=headers).status_code == 200
            del browser.headers[PAGE_SECRET_HEADER]
            stolen = browser.post("/api/v1/runs", json=CARTPOLE, headers=headers)
            assert stolen.status_code == (401 if status == 201 else 403)
    assert sqlite_service.client.get("/api/v1/runs").json()["total"] == 2


@pytest.mark.parametrize(("origin", "status"), [("https", 405), ("http", 403)])
def test_page_over_plain_http_is_another_origin_than_a_server_over_tls(
    tmp_path: Path, origin: str, status: int
) -> None:
    async def ask() -> int:
        transport = httpx.ASGITransport(create_app(Settings(home=tmp_path)))
        async with httpx.AsyncClient(transport=transport, base_url="https://localhost") as client:
            answer = await client.post("/somewhere", headers={"Origin": f"{origin}://localhost"})
            return answer.status_code

    assert asyncio.run(ask()) == status


def test_foreign_origin_without_cookie_is_rejected(sqlite_service: RunningService) -> None:
    with sqlite_service.new_client() as browser:
        foreign = browser.post("/api/v1/runs", json=CARTPOLE, headers={"Origin": "http://evil.example"})
        assert foreign.status_code == 403
        assert browser.post("/api/v1/runs", json=CARTPOLE).status_code == 401
        malformed = browser.post("/api/v1/auth/login", json={}, headers={"Origin": "http://["})
        assert malformed.status_code == 403
        assert not any(name.startswith(COOKIE) for name in browser.cookies)


def test_every_response_has_the_security_headers(sqlite_service: RunningService) -> None:
    for path in ("/healthz", "/api/v1/runs", "/api/v1/none", "/", "/openapi.json"):
        answer = sqlite_service.client.get(path)
        for name, value in SECURITY_HEADERS.items():
            assert answer.headers[name] == value
    csp = SECURITY_HEADERS["Content-Security-Policy"]
    assert "script-src 'self';" in csp
    assert sqlite_service.client.get("/api/v1/runs").headers["cache-control"] == "no-store"


def test_request_id_is_echoed_when_valid_and_generated_otherwise(sqlite_service: RunningService) -> None:
    given = sqlite_service.client.get("/api/v1/none", headers={"X-Request-ID": "mine-1"})
    assert given.headers["x-request-id"] == given.json()["request_id"] == "mine-1"
    odd = sqlite_service.client.get(
        "/api/v1/none", headers=[(b"X-Request-ID", "a b\u00e9".encode("latin-1"))]
    )
    assert odd.headers["x-request-id"] == odd.json()["request_id"] != "a b\u00e9"
    assert len({sqlite_service.client.get("/healthz").headers["x-request-id"] for _ in range(3)}) == 3


def test_oversized_body_is_rejected_with_and_without_content_length(sqlite_service: RunningService) -> None:
    def chunks() -> "list[bytes]":
        return [b"x" * 100_000] * (MAX_BODY_BYTES // 100_000 + 1)

    headers = {"Content-Type": "application/json"}
    client = sqlite_service.client
    assert client.post("/api/v1/runs", content=b"".join(chunks()), headers=headers).status_code == 413
    assert client.post("/api/v1/runs", content=iter(chunks()), headers=headers).status_code == 413
    assert client.get("/healthz").status_code == 200


def test_unknown_methods_and_addresses_return_problem_documents(sqlite_service: RunningService) -> None:
    client = sqlite_service.client
    for method, path, status in [
        ("PUT", "/api/v1/runs", 405),
        ("DELETE", "/healthz", 405),
        ("GET", "/api/v2/runs", 404),
        ("POST", "/api/v1/nothing", 404),
        ("POST", "/somewhere", 405),
    ]:
        answer = client.request(method, path)
        assert (answer.status_code, answer.json()["status"]) == (status, status)
        assert answer.headers["content-type"] == "application/problem+json"


def test_405_lists_every_allowed_method_in_allow_header(sqlite_service: RunningService) -> None:
    for method, path, allowed in [
        ("PUT", "/api/v1/runs", "GET, HEAD, POST"),
        ("PUT", f"/api/v1/runs/{'0' * 26}", "DELETE, GET, HEAD, PATCH"),
        ("GET", "/api/v1/runs/bulk", "POST"),
        ("PATCH", "/api/v1/runs/bulk", "POST"),
        ("GET", "/api/v1/auth/login", "POST"),
        ("OPTIONS", "/api/v1/environments/ALE/Pong-v5", "GET, HEAD"),
        ("POST", "/somewhere", "GET, HEAD"),
    ]:
        answer = sqlite_service.client.request(method, path)
        assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
        assert answer.json()["detail"] == f"{method} is not allowed at this address; allowed: {allowed}"
