"""Access of every role to every route, derived from the application's own routes."""

from collections.abc import Iterator

import httpx
import pytest
from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIWebSocketRoute, iter_route_contexts
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from backend.app import OPEN_PATHS
from backend.http.access import RequireRole
from backend.platform.principals import Role
from tests.support import external
from tests.support.playing import open_session
from tests.support.routes import addresses
from tests.support.rows import add_host, make_run
from tests.support.service import RunningService
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.service

EXCEPTIONS = {
    "/api/v1/alerts/{alert_id}": Role.VIEWER,
    "/api/v1/alerts/{alert_id}/read-until": Role.VIEWER,
    "/api/v1/alert-rules": Role.VIEWER,
    "POST /api/v1/alert-targets": Role.ADMIN,
    "/api/v1/alert-targets/{target_id}": Role.ADMIN,
    "/api/v1/alert-targets/{target_id}/trial": Role.ADMIN,
    "/api/v1/alert-rules/{rule_id}": Role.VIEWER,
    "/api/v1/audit": Role.ADMIN,
    "/api/v1/audit/actions": Role.ADMIN,
    "/api/v1/audit/export": Role.ADMIN,
    "/api/v1/auth/logout": Role.VIEWER,
    "/api/v1/auth/password": Role.VIEWER,
    "/api/v1/auth/sessions": Role.VIEWER,
    "/api/v1/auth/sessions/{session_id}": Role.VIEWER,
    "/api/v1/retention/installation": Role.ADMIN,
    "/api/v1/runs/estimate": Role.VIEWER,  # stores nothing
    "/api/v1/runs/names": Role.VIEWER,  # stores nothing
    "/api/v1/studies/estimate": Role.VIEWER,  # stores nothing
    "/api/v1/studies/draft": Role.VIEWER,  # stores nothing
    "/api/v1/shares/frozen": Role.VIEWER,  # stores nothing
    "/api/v1/shares/{share_id:ulid}": Role.VIEWER,  # of one's own
    "/api/v1/tokens": Role.VIEWER,
    "/api/v1/tokens/{token_id}": Role.VIEWER,
    "/api/v1/users": Role.ADMIN,
    "/api/v1/views": Role.VIEWER,  # of one's own
    "/api/v1/views/{view_id:ulid}": Role.VIEWER,
    "/api/v1/users/{user_id}": Role.ADMIN,
}
"""Routes, or methods of routes, that break the rule that viewers read and operators change."""

BROWSER_ONLY = {
    "/api/v1/auth/password",
    "/api/v1/auth/sessions",
    "/api/v1/auth/sessions/{session_id}",
    "POST /api/v1/shares",
}
"""Routes, or methods of routes, that reject tokens of every role."""


def _needed(path: str, method: str) -> Role | None:
    if path in OPEN_PATHS or not path.startswith("/api/"):
        return None
    rule = Role.VIEWER if method == "GET" else Role.OPERATOR
    return EXCEPTIONS.get(f"{method} {path}", EXCEPTIONS.get(path, rule))


def _routes(app: FastAPI) -> Iterator[tuple[str, str, Dependant]]:
    for route in iter_route_contexts(app.routes):
        if route.path and route.methods and getattr(route, "dependant", None) is not None:
            for method in route.methods:
                yield route.path, method, route.dependant


def test_every_route_declares_the_role_it_needs(sqlite_service: RunningService) -> None:
    n_routes = 0
    for path, method, dependant in _routes(sqlite_service.app):
        guards = [d.call.role for d in dependant.dependencies if isinstance(d.call, RequireRole)]
        needed = _needed(path, method)
        expected = [] if needed is None else [needed]
        assert guards == expected, f"{method} {path}: a route that breaks the rule is named in EXCEPTIONS"
        n_routes += 1
    assert n_routes > 40


def test_every_route_accepts_or_rejects_each_role(service: RunningService, subtests: pytest.Subtests) -> None:
    run = make_run(service.engine)
    known = {"{run_id}": run.id, "{environment_id:path}": "CartPole-v1", "{algorithm_id}": "paac"}
    clients: dict[Role | None, httpx.Client] = {None: service.new_client()}
    clients |= {role: service.client_as(role) for role in Role}
    for path, method, _ in _routes(service.app):
        needed = _needed(path, method)
        if path == "/api/v1/events":
            continue  # an endless stream, tested in live/test_endpoints.py
        url = path
        for name, value in known.items():
            url = url.replace(name, value)
        url = url.replace("{path:path}", "x")
        while "{" in url:
            url = url[: url.index("{")] + "0" * 26 + url[url.index("}") + 1 :]
        for role, client in clients.items():
            with subtests.test(route=f"{method} {path}", role=role):
                # Every route with a body rejects an empty object, but only after the role check.
                status = client.request(method, url, json={} if method != "GET" else None).status_code
                if needed is None:
                    # An empty login body is invalid, not unauthenticated.
                    assert status in (200, 303, 404, 422, 503)
                elif role is None:
                    assert status == 401
                elif not role.covers(needed) or not BROWSER_ONLY.isdisjoint((path, f"{method} {path}")):
                    assert status == 403
                else:
                    assert status not in (401, 403)
                    assert status < 500
    for client in clients.values():
        client.close()


BODIES = {"broken": "{", "deep": "[" * 50 + "]" * 50, "of no object": "7"}
"""JSON that every route refuses."""


@pytest.mark.long
def test_who_may_not_send_a_request_is_told_before_its_body_is_read(sqlite_service: RunningService) -> None:
    body = {"name": "script", "role": "operator", "scope": "external_runs"}
    token = sqlite_service.client.post("/api/v1/tokens", json=body).json()["token"]
    script = httpx.Client(
        base_url=sqlite_service.url, headers={"Authorization": f"Bearer {token}"}, timeout=60
    )
    n_refused = 0
    with script, sqlite_service.client_as(Role.VIEWER) as viewer:
        run = external.create(script)
        for client in (script, viewer):
            for method, path in addresses(sqlite_service, run["id"]):
                if method == "GET":
                    continue
                refused = client.request(method, path, json={}).status_code == 403
                n_refused += refused
                for kind, content in BODIES.items():
                    headers = {"Content-Type": "application/json"}
                    status = client.request(method, path, content=content, headers=headers).status_code
                    assert (status == 403) == refused, (method, path, kind)
    assert n_refused > 60


def test_every_websocket_accepts_every_role_and_rejects_anonymous(
    sqlite_service: RunningService, subtests: pytest.Subtests
) -> None:
    run = make_run(sqlite_service.engine)
    add_host(sqlite_service.engine, "a")
    session = open_session(sqlite_service.client, "ALE/Breakout-v5")
    base = sqlite_service.url.replace("http", "ws")
    routes = iter_route_contexts(sqlite_service.app.routes)
    paths = [route.path or "" for route in routes if isinstance(route.original_route, APIWebSocketRoute)]
    assert paths
    for path in paths:
        url = base + path.replace("{run_id:ulid}", run.id).replace("{session_id:ulid}", session["id"])
        with (
            subtests.test(route=path, role=None),
            pytest.raises(InvalidStatus, match="403"),
            connect(url, open_timeout=PATIENCE_S),
        ):
            pass
        for role in Role:
            with subtests.test(route=path, role=role), sqlite_service.client_as(role) as script:
                headers = {"Authorization": script.headers["Authorization"]}
                with connect(url, additional_headers=headers, open_timeout=PATIENCE_S):
                    pass
