import re
from pathlib import Path

import httpx
import pytest
from fastapi.routing import APIRoute, iter_route_contexts

from backend.app import create_app
from backend.http.parameters import parameters_of
from backend.platform.settings import Settings
from backend.specs.algorithms import ALGORITHMS
from tests.support.service import RunningService

METHODS = ("get", "post", "put", "patch", "delete")


@pytest.mark.service
@pytest.mark.parametrize(
    ("path", "field", "message"),
    [
        ("runs?page=2&limit=3", "page", "no such parameter; use one of "),
        ("runs?filtr=score>10", "filtr", "no such parameter; did you mean filter?"),
        ("hosts?page=2", "page", "no such parameter"),
        ("comparisons?filters=group:a", "filters", "no such parameter; "),
    ],
)
def test_unknown_query_parameter_is_refused(
    sqlite_service: RunningService, path: str, field: str, message: str
) -> None:
    answer = sqlite_service.client.get(f"/api/v1/{path}")
    assert answer.status_code == 422
    problems = {error["field"]: error["message"] for error in answer.json()["errors"]}
    assert problems[field].startswith(message)


@pytest.mark.service
@pytest.mark.parametrize(
    ("path", "detail"),
    [("play/xyz", 'session "xyz" does not exist'), ("sweeps/a%22b", 'sweep "a\\"b" does not exist')],
)
def test_what_has_no_such_id_is_named(sqlite_service: RunningService, path: str, detail: str) -> None:
    answer = sqlite_service.client.get(f"/api/v1/{path}")
    assert (answer.status_code, answer.json()["detail"]) == (404, detail)


@pytest.mark.service
def test_every_list_accepts_the_parameters_of_lists(sqlite_service: RunningService) -> None:
    for path in ("hosts", "algorithms", "environments", "runs"):
        assert sqlite_service.client.get(f"/api/v1/{path}?limit=2").status_code == 200
    # A short list has one page, whatever is asked for.
    algorithms = sqlite_service.client.get("/api/v1/algorithms?limit=1&cursor=x").json()["items"]
    assert len(algorithms) == len(ALGORITHMS)


@pytest.mark.service
@pytest.mark.parametrize("digits", ["9" * 400, "9" * 5_000, "-" + "9" * 5_000, "٣" * 5_000])
def test_number_of_any_length_is_refused_and_named(sqlite_service: RunningService, digits: str) -> None:
    for path, name in (("runs", "limit"), ("series", "points")):
        answer = sqlite_service.client.get(f"/api/v1/{path}", params={name: digits})
        assert answer.status_code == 422, answer.text
        assert name in {error["field"] for error in answer.json()["errors"]}


@pytest.mark.service
def test_answer_to_many_unknown_parameters_is_short(sqlite_service: RunningService) -> None:
    names = "&".join(str(n) for n in range(10_000))
    with httpx.Client(base_url=sqlite_service.url) as anyone:
        for unknown in (names, "x" * 60_000):
            answer = anyone.get(f"/api/v1/runs?{unknown}")
            assert answer.status_code == 422
            assert len(answer.content) < 10_000


def test_known_parameters_are_those_of_the_api_schema(tmp_path: Path) -> None:
    app = create_app(Settings(home=tmp_path, database_url=f"sqlite:///{tmp_path / 'db.sqlite3'}"))
    documented = {
        (path, method): [
            parameter["name"] for parameter in operation.get("parameters", []) if parameter["in"] == "query"
        ]
        for path, operations in app.openapi()["paths"].items()
        for method, operation in operations.items()
        if method in METHODS and path.startswith("/api/v1/")
    }
    known = {
        (re.sub(":[a-z]+}", "}", context.path or ""), method.lower()): parameters_of(context.original_route)
        for context in iter_route_contexts(app.routes)
        if isinstance(context.original_route, APIRoute)
        for method in context.methods or ()
    }
    assert {key: sorted(known[key]) for key in documented} == {
        key: sorted(names) for key, names in documented.items()
    }
