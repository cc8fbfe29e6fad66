"""Requests that are made to cost much, against a whole installation: none takes its memory or stops it.

Each attack lasts a few seconds. Meanwhile `/healthz` answers, and afterwards the same web process serves
lists, with less than `MAX_MEMORY_BYTES`.
"""

import http.client
import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx
import psutil
import pytest

from tests.support.external import SOURCE
from tests.support.installation import Installation, environment, installation
from tests.support.rows import CARTPOLE, external_request
from tests.support.service import created_run
from tests.support.waiting import PATIENCE_S, until

pytestmark = [pytest.mark.service, pytest.mark.long]

MAX_MEMORY_BYTES = 400 * 2**20
ATTACK_S = 8.0
HEALTH_TIMEOUT_S = 10.0
"""The watchdog of `callboard up` kills a web process that does not answer for 30 s."""


class Attacked:
    """An installation, and tokens for those who attack it."""

    def __init__(self, running: Installation) -> None:
        self.running = running
        self.admin = running.log_in()
        self.web = running.children()["web"]
        self.host = httpx.URL(running.url)

    def token(self, role: str, *more: str) -> dict[str, str]:
        """The headers of a request with a new token."""
        command = [sys.executable, "-m", "callboard_cli.main", "token", "create", "t", "--role", role, *more]
        done = subprocess.run(
            command, env=environment(self.running.home), capture_output=True, text=True, check=True
        )
        return {"Authorization": f"Bearer {done.stdout.strip()}", "Content-Type": "application/json"}

    def connection(self) -> http.client.HTTPConnection:
        """A connection to the server."""
        return http.client.HTTPConnection(self.host.host, self.host.port, timeout=PATIENCE_S)

    def post(self, path: str, body: bytes, headers: dict[str, str]) -> int:
        """The status of a request; 0 if the connection was cut."""
        connection = self.connection()
        try:
            connection.request("POST", path, body, headers)
            return connection.getresponse().status
        except OSError:
            return 0
        finally:
            connection.close()


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    with installation(tmp_path_factory.mktemp("abuse") / "home") as running:
        yield Attacked(running)


@contextmanager
def _held(attacked: Attacked) -> Iterator[None]:
    """Check that the server answers during the block, and after it has little memory."""
    yield
    assert httpx.get(f"{attacked.running.url}/healthz", timeout=HEALTH_TIMEOUT_S).status_code == 200
    answer = attacked.admin.get("/api/v1/runs", params={"limit": 1}, timeout=HEALTH_TIMEOUT_S)
    assert answer.status_code == 200
    web = attacked.running.children()["web"]
    assert web.pid == attacked.web.pid, "the web process was restarted"
    peak_bytes = _peak_bytes(web)
    print(f"\npeak memory of the web process: {peak_bytes / 2**20:.0f} MiB")  # noqa: T201
    assert peak_bytes < MAX_MEMORY_BYTES


def _peak_bytes(process: psutil.Process) -> int:
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def _repeated(attacked: Attacked, attack: Callable[[], Any], *, n: int = 8) -> None:
    """Repeat an attack on several connections; every answer about the health comes in time."""
    ended = Event()

    def repeat() -> None:
        while not ended.is_set():
            with suppress(OSError, http.client.HTTPException):
                attack()

    threads = [Thread(target=repeat, daemon=True) for _ in range(n)]
    for thread in threads:
        thread.start()
    with httpx.Client(base_url=attacked.running.url, timeout=HEALTH_TIMEOUT_S) as anyone:
        for _ in range(int(ATTACK_S / 0.5)):
            assert anyone.get("/healthz").status_code == 200
            ended.wait(0.5)
    ended.set()
    for thread in threads:
        thread.join(PATIENCE_S)


def test_body_of_tiny_chunks_without_a_login(attacked: Attacked) -> None:
    head = b"POST /api/v1/auth/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    head += b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"

    def send() -> None:
        with socket.create_connection((attacked.host.host, attacked.host.port), PATIENCE_S) as client:
            client.sendall(head + b"1\r\nx\r\n" * 500_000 + b"0\r\n\r\n")
            client.recv(100)

    with _held(attacked):
        _repeated(attacked, send)


@pytest.mark.parametrize(
    "body",
    [
        "{" + ",".join(f'"k{i}":1' for i in range(150_000)) + "}",
        "[" + "[]," * 690_000 + "[]]",
        "[" * 100_000 + "]" * 100_000,
        "[" + "1.1," * 500_000 + "1]",
    ],
    ids=["fields", "lists", "deep", "numbers"],
)
@pytest.mark.parametrize("path", ["/api/v1/auth/login", "/api/v1/runs"])
def test_large_json_without_a_login(attacked: Attacked, path: str, body: str) -> None:
    data = body.encode()
    with _held(attacked):
        _repeated(attacked, lambda: attacked.post(path, data, {"Content-Type": "application/json"}))


def test_pings_of_a_viewer(attacked: Attacked) -> None:
    run = created_run(attacked.admin.post("/api/v1/runs", json=external_request()))
    token = attacked.token("viewer")["Authorization"]
    head = (
        f"GET /api/v1/runs/{run['id']}/live HTTP/1.1\r\nHost: 127.0.0.1:{attacked.host.port}\r\n"
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        f"Sec-WebSocket-Version: 13\r\nAuthorization: {token}\r\n\r\n"
    )
    pings = (bytes([0x89, 0x80 | 1]) + b"\0\0\0\0" + b"x") * 2_000

    def flood() -> None:
        with socket.create_connection((attacked.host.host, attacked.host.port), PATIENCE_S) as client:
            client.sendall(head.encode())
            client.recv(2_000)
            for _ in range(1_000):
                client.sendall(pings)

    with _held(attacked):
        _repeated(attacked, flood)


def test_grid_of_unknown_settings_of_a_viewer_that_leaves(attacked: Attacked) -> None:
    headers = attacked.token("viewer")
    config = {f"lr{i}": 1 for i in range(3_000)}
    grid = {"config.learning_rate": [i * 1e-6 for i in range(1, 101)]}
    body = json.dumps(CARTPOLE | {"config": config, "grid": grid}).encode()
    with _held(attacked):
        connections = [attacked.connection() for _ in range(40)]
        for connection in connections:
            connection.request("POST", "/api/v1/runs/estimate", body, headers)
        for connection in connections:
            connection.close()


@pytest.mark.parametrize("path", ["/api/v1/runs/estimate", "/api/v1/runs"])
def test_long_name_above_a_long_list(attacked: Attacked, path: str) -> None:
    config = '{"' + "k" * 75_000 + '":[' + ",".join(["0"] * 15_000) + "]}"
    body = f'{{"origin":"external","algorithm":"a","environment":"b","config":{config}}}'.encode()
    with _held(attacked):
        assert attacked.post(path, body, attacked.token("operator")) == 422


def test_long_configs_of_a_script_that_may_only_write_its_own_runs(attacked: Attacked) -> None:
    headers = attacked.token("operator", "--scope", "external_runs")
    config = {f"s{i:03}": ["x" * 990] * 4 for i in range(400)}
    body = json.dumps(external_request(config=config)).encode()
    with _held(attacked):
        for _ in range(20):
            assert attacked.post("/api/v1/runs", body, headers) == 422
        for _ in range(150):
            fitting = {f"s{i:03}": "x" * 900 for i in range(17)}
            small = json.dumps(external_request(config=fitting, notes="\u00e9" * 20_000)).encode()
            assert attacked.post("/api/v1/runs", small, headers) == 201
        for path in ("/api/v1/runs?limit=1000&spec=true", "/api/v1/runs/fields", "/api/v1/runs?limit=1000"):
            assert attacked.admin.get(path).status_code == 200


def test_filters_of_a_viewer_that_leaves(attacked: Attacked) -> None:
    headers = attacked.token("viewer")
    terms = " or ".join(f"config.s{i:03}=nothing" for i in range(17))
    with _held(attacked):
        path = str(httpx.URL("/api/v1/runs", params={"limit": 1, "filter": terms}))
        connections = [attacked.connection() for _ in range(40)]
        for connection in connections:
            connection.request("GET", path, headers=headers)
        for connection in connections:
            connection.close()


def test_answers_for_everybody(attacked: Attacked) -> None:
    with _held(attacked), httpx.Client(base_url=attacked.running.url, timeout=PATIENCE_S) as anyone:
        for path in ("/readyz", "/metrics", "/openapi.json"):
            _repeated(attacked, partial(anyone.get, path), n=20)


def test_points_of_thousands_of_metrics(attacked: Attacked) -> None:
    headers = attacked.token("operator", "--scope", "external_runs")
    run = created_run(attacked.admin.post("/api/v1/runs", json=external_request()))
    answer = httpx.post(
        f"{attacked.running.url}/api/v1/runs", json=external_request(), headers=headers, timeout=PATIENCE_S
    )
    flooded = created_run(answer)
    sequence = 0

    def send() -> None:
        nonlocal sequence
        series = [
            {"metric": f"m/{i}", "agent_steps": [sequence], "wall_time_s": [1.0], "value": [0.5]}
            for i in range(sequence % 10 * 250, sequence % 10 * 250 + 250)
        ]
        body = {"source": SOURCE, "sequence": sequence + 1, "series": series}
        path = f"/api/v1/runs/{flooded['id']}/points"
        if attacked.post(path, json.dumps(body).encode(), headers) == 200:
            sequence += 1

    ended = Event()

    def send_all() -> None:
        while not ended.is_set():
            send()

    flood = Thread(target=send_all, daemon=True)
    with _held(attacked):
        flood.start()
        until(lambda: sequence > 3)
        for n in range(10):
            answer = attacked.admin.patch(f"/api/v1/runs/{run['id']}", json={"name": f"x{n}"})
            assert answer.status_code == 200, answer.text
        ended.set()
        flood.join(PATIENCE_S)
