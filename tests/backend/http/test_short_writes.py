"""What is done while a request holds SQLite's write lock: statements, and nothing that others would wait for.

Over every operation of the OpenAPI document and every role, none included.
"""

import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from backend.db.write_lock import WriteTurn
from backend.platform.principals import Role
from backend.specs.problems import FieldProblem, InvalidSpec
from backend.specs.states import RunState
from tests.support import external
from tests.support.rows import CARTPOLE, add_host, make_checkpoint, make_run
from tests.support.service import RunningService
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.service

WAITS = ("open", "os.", "shutil.", "socket.", "subprocess.", "time.sleep", "tempfile.", "urllib.")
"""Events of the interpreter that mean files, the network, other processes or a pause."""
STUDY = {
    "name": "methods",
    "arms": [{"label": "PAAC", "algorithm": "paac"}],
    "environments": ["CartPole-v1"],
    "draws": {"n": 1},
    "run": {"stop": {"agent_steps": 10_000}},
    "figures": [{"id": "scores", "title": "Scores", "kind": "table"}],
}
BODIES: dict[str, dict[str, Any]] = {
    "POST /api/v1/runs": CARTPOLE,
    "POST /api/v1/sweeps": {
        "name": "rates",
        "run": CARTPOLE,
        "space": {"config.learning_rate": {"values": [0.001, 0.01]}},
    },
    "POST /api/v1/studies": {"study": STUDY},
    "POST /api/v1/runs/{run_id}/points": external.batch(1, [0.5, 1.5]),
    "POST /api/v1/runs/{run_id}/episodes": external.episodes(1, [1.0, 2.0]),
}
"""Bodies that their schema alone does not give."""

WRONG_SPEC = CARTPOLE | {"config": {"no_such_setting": 1}}
WRONG_SPECS: dict[str, dict[str, Any]] = {
    "POST /api/v1/runs": WRONG_SPEC,
    "POST /api/v1/sweeps": BODIES["POST /api/v1/sweeps"] | {"run": WRONG_SPEC},
    "POST /api/v1/studies": {"study": STUDY | {"run": {"config": {"no_such_setting": 1}}}},
}
"""Bodies that their schema accepts, with a specification that is refused."""

WRONG: dict[str, Any] = {"no_such_field": {}}
"""A body that every route refuses."""


class Watch:
    """What the thread that holds the write lock does beside its statements."""

    def __init__(self) -> None:
        self.n_locks = 0
        self.problems: set[str] = set()
        self.request = ""
        self._holders: dict[int, WriteTurn] = {}

    def begin(self, turn: WriteTurn) -> None:
        """This thread has the lock."""
        self.n_locks += 1
        self._holders[threading.get_ident()] = turn

    def end(self, turn: WriteTurn) -> None:
        """Any thread releases the lock."""
        for thread, held in list(self._holders.items()):
            if held is turn:
                del self._holders[thread]

    def note(self, what: str) -> None:
        """Something happens in this thread."""
        if threading.get_ident() in self._holders:
            places = [
                f"{frame.filename.rpartition('/')[2]}:{frame.name}"
                for frame in traceback.extract_stack()
                if "/backend/" in frame.filename
            ]
            self.problems.add(f"{self.request}: {what} in {' > '.join(places[-3:])}")


_watching: list[Watch] = []
"""The watch of the test that runs: a hook for the interpreter's events cannot be removed."""


def _on_event(event: str, details: tuple[Any, ...]) -> None:
    if _watching and event.startswith(WAITS) and not str(details[:1]).endswith((".py',)", ".pyc',)")):
        _watching[0].note(f"{event} {str(details)[:60]}")


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    """Watches until the end of the test."""
    watch = Watch()
    begin, end, init = WriteTurn.begin, WriteTurn.end, InvalidSpec.__init__

    def begun(turn: WriteTurn, *given: Any) -> None:
        begin(turn, *given)
        watch.begin(turn)

    def ended(turn: WriteTurn) -> None:
        watch.end(turn)
        end(turn)

    def refused(error: InvalidSpec, problems: list[FieldProblem]) -> None:
        watch.note("a specification is refused")
        init(error, problems)

    monkeypatch.setattr(WriteTurn, "begin", begun)
    monkeypatch.setattr(WriteTurn, "end", ended)
    monkeypatch.setattr(InvalidSpec, "__init__", refused)
    sys.addaudithook(_on_event)
    _watching.append(watch)
    yield watch
    _watching.clear()


def _example(schema: dict[str, Any], schemas: dict[str, Any], name: str = "") -> Any:
    """The least value of a schema: its required fields."""
    if "$ref" in schema:
        return _example(schemas[schema["$ref"].rpartition("/")[2]], schemas, name)
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    if "enum" in schema:
        return schema["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            return _example(schema[key][0], schemas, name)
    kind = schema.get("type", "object")
    if kind == "object":
        required = schema.get("required", [])
        return {field: _example(schema["properties"][field], schemas, field) for field in required}
    if kind == "array":
        return [_example(schema["items"], schemas, name)] * max(1, schema.get("minItems", 0))
    if kind in ("integer", "number"):
        return max(schema.get("minimum", 1), 1)
    if kind == "boolean":
        return False
    return external.SOURCE if "source" in name or "pattern" in schema else "a long text of this test"


def _operations(
    document: dict[str, Any], ids: dict[str, str]
) -> Iterator[tuple[str, str, str, dict[str, Any] | None]]:
    """Method, path, address and least body of what changes something; what deletes comes last."""
    schemas = document["components"]["schemas"]
    operations = [
        (method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if path.startswith("/api/") and method in ("post", "put", "patch", "delete")
    ]
    for method, path, operation in sorted(operations, key=lambda operation: operation[0] == "DELETE"):
        address = path
        for name, value in ids.items():
            address = address.replace(name, value)
        while "{" in address:
            address = address[: address.index("{")] + "0" * 26 + address[address.index("}") + 1 :]
        content = operation.get("requestBody", {}).get("content", {}).get("application/json")
        body = None
        if content is not None:
            body = BODIES.get(f"{method} {path}") or _example(content["schema"], schemas)
        yield method, path, address, body


def _ids(service: RunningService) -> dict[str, str]:
    engine = service.engine
    add_host(engine, "a")
    run = make_run(engine, RunState.STOPPED)
    checkpoint = make_checkpoint(engine, run)
    return {
        "{run_id}": run.id,
        "{checkpoint_id}": str(checkpoint.id),
        "{host_id}": "a",
        "{host}": "a",
        "{name}": "a",
    }


@contextmanager
def _client(service: RunningService, role: str) -> Iterator[httpx.Client]:
    """A client of a role; of `script`, with a token for external runs, and of `nobody`, without one."""
    if role == "nobody":
        client = service.new_client()
    elif role == "script":
        body = {"name": role, "role": "operator", "scope": "external_runs"}
        token = service.client.post("/api/v1/tokens", json=body).json()["token"]
        headers = {"Authorization": f"Bearer {token}"}
        client = httpx.Client(base_url=service.url, headers=headers, timeout=PATIENCE_S)
    else:
        client = service.client_as(Role(role))
    with client:
        yield client


@pytest.mark.parametrize(
    ("role", "least_accepted"),
    [
        pytest.param("nobody", 0, marks=pytest.mark.long),
        pytest.param("viewer", 2, marks=pytest.mark.long),
        pytest.param("operator", 8, marks=pytest.mark.long),
        ("admin", 8),
        ("script", 4),
    ],
)
def test_nothing_but_statements_happens_while_a_request_holds_the_write_lock(
    sqlite_service: RunningService, watch: Watch, role: str, least_accepted: int
) -> None:
    document = sqlite_service.client.get("/openapi.json").json()
    ids = _ids(sqlite_service)
    n_accepted = 0
    with _client(sqlite_service, role) as client:
        if role == "script":
            ids["{run_id}"] = external.create(client)["id"]
        for method, path, address, body in _operations(document, ids):
            watch.request = f"{method} {path}"
            answer = client.request(method, address, json=body)
            assert answer.status_code < 500, (watch.request, answer.text)
            n_accepted += answer.status_code < 300
            if wrong := WRONG_SPECS.get(watch.request):
                answer = client.request(method, address, json=wrong)
                assert answer.status_code in (401, 403, 422), (watch.request, answer.text)
    assert not watch.problems, "\n".join(sorted(watch.problems))
    assert n_accepted >= least_accepted
    assert n_accepted == 0 or role != "nobody"


@pytest.mark.parametrize(
    "role",
    [
        "nobody",
        pytest.param("viewer", marks=pytest.mark.long),
        pytest.param("operator", marks=pytest.mark.long),
        "admin",
        pytest.param("script", marks=pytest.mark.long),
    ],
)
def test_no_request_that_its_schema_refuses_takes_the_write_lock(
    sqlite_service: RunningService, watch: Watch, role: str
) -> None:
    document = sqlite_service.client.get("/openapi.json").json()
    ids = _ids(sqlite_service)
    n_refused = 0
    with _client(sqlite_service, role) as client:
        n_before = watch.n_locks
        for method, path, address, body in _operations(document, ids):
            if body is None:
                continue
            answer = client.request(method, address, json=WRONG)
            assert answer.status_code in (401, 403, 422), (method, path, answer.text)
            assert watch.n_locks == n_before, (method, path)
            n_refused += 1
    assert n_refused > 35
