"""Bodies of requests are bounded alike on every route, before anything is built from them."""

import json
import tracemalloc

import pytest

from backend.app import OPEN_PATHS
from backend.http import bodies
from backend.http.bodies import MAX_BODY_BYTES, MAX_SMALL_BODY_BYTES
from backend.http.errors import MAX_DOCUMENT_BYTES, respond
from backend.http.json_bounds import MAX_DEPTH, MAX_KEY
from backend.platform.errors import Invalid
from backend.platform.principals import Role
from backend.platform.text import unstorable_paths
from backend.specs.problems import MAX_PROBLEMS, FieldProblem
from tests.support.routes import addresses
from tests.support.rows import CARTPOLE, make_run
from tests.support.service import RunningService
from tests.support.sockets import connected, status_of
from tests.support.waiting import rounds, until

JSON = {"Content-Type": "application/json"}
EXCESSIVE = {
    "values": b"[" + b"[]," * 70_000 + b"[]]",
    "depth": b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1),
    "names": json.dumps({"k" * (MAX_KEY + 1): 1}).encode(),
    "encoding": json.dumps({"a": 1}).encode("utf-16"),
}
HOSTILE = [
    json.dumps(
        dict.fromkeys(("name", "algorithm", "state"), "é" * 100000)
        | {f"{i:03}" + "\U0001f600" * 190: 1 for i in range(200)}
        | {f"k{i}": 1 for i in range(5_000)}
    ).encode(),
    json.dumps(["x" * 1_000] * 500).encode(),
]


@pytest.mark.service
def test_every_route_authenticates_before_it_reads_a_body(sqlite_service: RunningService) -> None:
    """The body of these requests never comes."""
    n_routes = 0
    for method, path in addresses(sqlite_service, make_run(sqlite_service.engine).id):
        if method == "GET" or path in OPEN_PATHS:
            continue
        for credential in ("X-Nothing: x", "Authorization: Bearer cb_x", "Cookie: callboard_session=x"):
            head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n"
            head += f"{credential}\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n"
            with connected(sqlite_service.url, head.encode() + b"[[") as (client,):
                assert status_of(client) == 401, (method, path, credential)
        n_routes += 1
    assert n_routes > 40


@pytest.mark.service
def test_routes_without_login_read_little(sqlite_service: RunningService) -> None:
    with sqlite_service.new_client() as anyone:
        for path in OPEN_PATHS:
            answer = anyone.post(path, content=b" " * (MAX_SMALL_BODY_BYTES + 1), headers=JSON)
            assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")


@pytest.mark.service
def test_every_route_refuses_excessive_json(sqlite_service: RunningService) -> None:
    for method, path in addresses(sqlite_service, make_run(sqlite_service.engine).id):
        if method not in ("POST", "PUT", "PATCH"):
            continue
        for name, body in EXCESSIVE.items():
            if path in OPEN_PATHS and len(body) > MAX_SMALL_BODY_BYTES:
                continue
            answer = sqlite_service.client.request(method, path, content=body, headers=JSON)
            assert answer.status_code == 422, (method, path, name, answer.text)
            assert answer.json()["errors"][0]["field"] == "body", (method, path, name)


@pytest.mark.service
def test_every_route_refuses_a_body_that_is_too_long(sqlite_service: RunningService) -> None:
    def parts() -> list[bytes]:
        return [b" " * 100_000] * (MAX_BODY_BYTES // 100_000 + 1)

    for method, path in addresses(sqlite_service, make_run(sqlite_service.engine).id):
        if method in ("POST", "PUT", "PATCH"):
            answer = sqlite_service.client.request(method, path, content=iter(parts()), headers=JSON)
            assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large"), (method, path)


@pytest.mark.service
def test_every_problem_document_is_short(sqlite_service: RunningService) -> None:
    for method, path in addresses(sqlite_service, make_run(sqlite_service.engine).id):
        for place, body in enumerate(HOSTILE):
            if method not in ("POST", "PUT", "PATCH"):
                continue
            answer = sqlite_service.client.request(method, path, content=body, headers=JSON)
            if answer.status_code >= 400:
                document = answer.json()
                assert len(answer.content) <= MAX_DOCUMENT_BYTES, (method, path, place)
                assert len(document["errors"]) <= MAX_PROBLEMS, (method, path, place)
                assert answer.status_code < 500, (method, path, place, document)


@pytest.mark.parametrize("text", ["\U0001f600" * 5_000, '"' * 5_000, "x" * 100])
def test_problem_document_is_short_whatever_the_problems_are(text: str) -> None:
    problem = Invalid([FieldProblem(field=f"{i}{text}", message=text) for i in range(MAX_PROBLEMS)])
    content = bytes(respond(problem, None).body)
    assert len(content) <= MAX_DOCUMENT_BYTES
    assert json.loads(content)["errors"]


@pytest.mark.service
def test_a_grid_of_unknown_settings_is_refused_once(sqlite_service: RunningService) -> None:
    config = {f"lr{i}": 1 for i in range(3_000)}
    grid = {"config.learning_rate": [i * 1e-6 for i in range(1, 101)]}
    answer = sqlite_service.client.post(
        "/api/v1/runs/estimate", json=CARTPOLE | {"config": config, "grid": grid}
    )
    errors = answer.json()["errors"]
    assert (answer.status_code, len(errors)) == (422, MAX_PROBLEMS)
    assert len({error["field"] for error in errors}) == MAX_PROBLEMS


def test_places_of_bad_text_need_little_memory() -> None:
    value = {"k" * 75_000: [0] * 40_000, "bad": ["\0"] * 100}
    tracemalloc.start()
    paths = unstorable_paths(value)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert paths == sorted(f"bad.{i}" for i in range(80, 100))
    assert peak_bytes < 50 * 2**20


def _slow_body(service: RunningService, n_bytes: int) -> bytes:
    """The head of a request of the owner's, and a part of its body."""
    request = {"name": "slow", "role": "operator"}
    token = service.client.post("/api/v1/tokens", json=request).json()["token"]
    head = f"POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
    return f"{head}Content-Length: {n_bytes + 10_000}\r\n\r\n".encode() + bytes(n_bytes)


@pytest.mark.service
def test_large_bodies_of_all_requests_in_progress_are_bounded(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "MAX_BODIES_BYTES", 100_000)
    large, small = CARTPOLE | {"notes": "x" * 50_000}, CARTPOLE | {"notes": 1}
    body = _slow_body(sqlite_service, 60_000)
    with sqlite_service.client_as(Role.OPERATOR) as other:
        for _ in rounds():
            with connected(sqlite_service.url, body) as (slow,):
                answer = other.post("/api/v1/runs", json=large)
                if answer.status_code != 503:  # it came before the slow body
                    continue
                assert int(answer.headers["Retry-After"]) > 0
                assert other.post("/api/v1/runs", json=small).status_code == 422
                slow.close()
                until(lambda: other.post("/api/v1/runs", json=large).status_code == 422)
                break


@pytest.mark.service
def test_bodies_count_for_their_user_and_never_for_their_address(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "MAX_BODIES_BYTES_OF_USER", 100_000)
    head = b"POST /api/v1/auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 16000\r\n\r\n"
    large = CARTPOLE | {"notes": "x" * 50_000}
    body = _slow_body(sqlite_service, 60_000)
    with (
        connected(sqlite_service.url, head + bytes(15_000), n=40),
        sqlite_service.client_as(Role.OPERATOR) as other,
        sqlite_service.new_client() as nobody,
    ):
        for _ in rounds():
            with connected(sqlite_service.url, body):
                if sqlite_service.client.post("/api/v1/runs", json=large).status_code != 503:
                    continue  # it came before the slow body
                assert other.post("/api/v1/runs", json=large).status_code == 422
                login = {"name": "x", "password": "y"}
                assert nobody.post("/api/v1/auth/login", json=login).status_code == 401
                break
