"""Users, rules, workers' rounds and a receiver for tests of alerts."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, Self

from sqlalchemy import Engine, select

from backend.access.auth import repository as auth_rows
from backend.alerts.rules import service as rules
from backend.alerts.rules.schemas import RuleRequest
from backend.coordination.alerting import raise_alerts
from backend.coordination.context import Context
from backend.db import Alert, AlertRule, User
from backend.db.base import new_id
from backend.db.engine import reading, writing
from backend.platform.principals import Credential, Principal, Role
from tests.support.service import RunningService
from tests.support.waiting import PATIENCE_S


def make_user(engine: Engine, role: Role = Role.OPERATOR) -> Principal:
    """Store a user."""
    with writing(engine) as session:
        user = auth_rows.add_user(session, f"{role} {new_id()}", role)
    return principal_of(user)


def principal_of(user: User) -> Principal:
    """A user, logged in."""
    return Principal(user.id, user.name, Role(user.role), Credential("session", "s"))


def make_rule(engine: Engine, owner: Principal, *kinds: str, **fields: Any) -> AlertRule:
    """Store a rule."""
    with writing(engine) as session:
        return rules.create(session, owner, RuleRequest.model_validate({"kinds": list(kinds)} | fields))


def evaluate(service: RunningService) -> None:
    """Do what a worker does every few seconds."""
    context = Context(service.settings, service.engine, service.artifacts, service.app_state.bus)
    raise_alerts(context, {})


def inbox(engine: Engine, owner: Principal | None = None) -> list[Alert]:
    """The alerts of a user or of all, oldest first."""
    alerts = select(Alert).order_by(Alert.id)
    if owner is not None:
        alerts = alerts.where(Alert.owner_id == owner.id)
    with reading(engine) as session:
        return list(session.scalars(alerts))


class Receiver:
    """A web server on this machine that keeps what it gets, and answers with the next of `answers`, then
    with 200, while `open` is set."""

    def __init__(self) -> None:
        self.received: list[dict[str, Any]] = []
        self.answers: list[int] = []
        self.open = Event()
        self.open.set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.received.append(json.loads(body))
                receiver.open.wait(PATIENCE_S)
                status = receiver.answers.pop(0) if receiver.answers else 200
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", receiver.url.replace("json", "http"))
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign] # its client was killed
        self.url = f"json://127.0.0.1:{self._server.server_port}/hook"

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.open.set()
        self._server.shutdown()
        self._server.server_close()
