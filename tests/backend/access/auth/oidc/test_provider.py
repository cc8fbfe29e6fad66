"""A provider that is down, does not answer, or answers something else."""

import asyncio
import socket
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from backend.access.auth.oidc import provider as provider_module
from backend.access.auth.oidc.attempt import SignInAttempt
from backend.access.auth.oidc.identity import ProviderUnavailable
from backend.access.auth.oidc.provider import Provider
from backend.platform.errors import TooMany
from backend.platform.settings import Settings
from tests.support import asynchronous
from tests.support.service import running_service
from tests.support.waiting import PATIENCE_S

REDIRECT = "http://127.0.0.1/login/oidc/callback"


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider may take long to answer, and long is remembered that it did not."""
    for name in ("REQUEST_TIMEOUT_S", "DISCOVERY_TIMEOUT_S", "TIMEOUT_S", "RETRY_S"):
        monkeypatch.setattr(provider_module, name, PATIENCE_S)


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port of ours on which nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@pytest.fixture
def hung() -> Iterator[socket.socket]:
    """A server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def _settings(port: int) -> dict[str, str]:
    issuer = f"http://127.0.0.1:{port}"
    return {"oidc_issuer": issuer, "oidc_client_id": "callboard", "oidc_default_role": "viewer"}


def _with_provider(port: int, use: Callable[[Provider], Coroutine[None, None, None]]) -> None:
    async def run() -> None:
        provider = Provider(Settings(home=Path("unused"), **_settings(port)))  # type: ignore[arg-type]
        try:
            await use(provider)
        finally:
            await provider.close()

    asynchronous.run(run())


async def _start(provider: Provider) -> str:
    return await provider.authorization_url(SignInAttempt.start("/"), REDIRECT)


@pytest.mark.usefixtures("patient")
def test_unreachable_provider_is_named(closed_port: int) -> None:
    async def use(provider: Provider) -> None:
        with pytest.raises(ProviderUnavailable, match=rf"127\.0\.0\.1:{closed_port}.* cannot be reached"):
            await _start(provider)

    _with_provider(closed_port, use)


@pytest.mark.usefixtures("patient")
def test_request_to_a_provider_that_does_not_answer_times_out(
    hung: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider_module, "DISCOVERY_TIMEOUT_S", 0.1)

    async def use(provider: Provider) -> None:
        for _ in range(2):  # the second time, the failure is known
            with pytest.raises(ProviderUnavailable, match=r"did not answer within 0.1 s"):
                await _start(provider)

    _with_provider(hung.getsockname()[1], use)
    hung.setblocking(False)
    n_connections = 0
    with suppress(BlockingIOError):
        while True:
            hung.accept()[0].close()
            n_connections += 1
    assert n_connections <= 1  # none if this machine needed all the time to connect


@pytest.mark.usefixtures("patient")
def test_sign_ins_that_wait_for_the_provider_are_bounded(
    hung: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider_module, "MAX_PENDING", 2)
    monkeypatch.setattr(provider_module, "DISCOVERY_TIMEOUT_S", 0.1)

    async def use(provider: Provider) -> None:
        outcomes = await asyncio.gather(*(_start(provider) for _ in range(3)), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [ProviderUnavailable, ProviderUnavailable, TooMany]

    _with_provider(hung.getsockname()[1], use)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<html>", "without a JSON object"),
        (b"[]", "without a JSON object"),
        (b"{}", "authorization_endpoint"),
        (b'{"a": "' + b"x" * 2**20 + b'"}', "more than 1048576 bytes"),
        (
            b'{"issuer": "https://evil.example", "authorization_endpoint": "https://a", '
            b'"token_endpoint": "https://a", "jwks_uri": "https://a"}',
            "names the issuer 'https://evil.example'",
        ),
        (
            b'{"issuer": "ISSUER", "authorization_endpoint": "http://evil.example", '
            b'"token_endpoint": "https://a", "jwks_uri": "https://a"}',
            "not https",
        ),
        (
            b'{"issuer": "ISSUER", "authorization_endpoint": "https://a", "token_endpoint": "https://a", '
            b'"jwks_uri": "https://a", "id_token_signing_alg_values_supported": ["none", "HS256"]}',
            "no signature that is accepted",
        ),
    ],
)
def test_invalid_discovery_document_is_refused(body: bytes, reason: str) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            issuer = f"http://127.0.0.1:{self.server.server_port}"  # type: ignore[attr-defined]
            self.wfile.write(body.replace(b"ISSUER", issuer.encode()))

        def log_message(self, *arguments: object) -> None:
            pass

    async def use(provider: Provider) -> None:
        with pytest.raises(ProviderUnavailable, match=reason):
            await _start(provider)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            _with_provider(server.server_port, use)
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.long
@pytest.mark.service
def test_provider_that_does_not_answer_delays_no_other_request(
    hung: socket.socket, sqlite_template: Path, redis_url: str, tmp_path: Path
) -> None:
    database = tmp_path / "callboard.sqlite3"
    database.write_bytes(sqlite_template.read_bytes())
    settings = _settings(hung.getsockname()[1])
    arrived: list[str] = []

    with running_service(f"sqlite:///{database}", redis_url, tmp_path, **settings) as service:
        body = {"name": "anna", "role": "viewer", "password": "five words are long enough"}
        service.client.post("/api/v1/users", json=body)

        def start() -> None:
            with service.new_client() as waiting:
                arrived.append(waiting.get("/login/oidc").headers["location"])

        threads = [Thread(target=start, daemon=True) for _ in range(provider_module.MAX_PENDING)]
        for thread in threads:
            thread.start()
        connection, _ = hung.accept()
        with connection, service.new_client() as anna:
            assert anna.get("/healthz").status_code == 200
            login = {"name": "anna", "password": body["password"]}
            assert anna.post("/api/v1/auth/login", json=login).status_code == 200
            assert anna.get("/api/v1/auth/methods").json() == {"oidc": {"name": "single sign-on"}}
        # The connection is closed: the first attempt has failed, and the others know.
        for thread in threads:
            thread.join(PATIENCE_S)
    assert arrived == ["/login?error=unavailable"] * len(threads)
