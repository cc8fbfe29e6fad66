import logging
import re
from datetime import timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import Engine, update

from backend.analysis.metrics import repository as series
from backend.analysis.shares import service as shares
from backend.analysis.shares.contents import MAX_CHARTS
from backend.analysis.shares.page import plotly_script
from backend.db import Run, ScriptProcess, Share, StepNote
from backend.db.base import new_id
from backend.db.clock import database_now
from backend.db.engine import writing
from backend.http.dependencies import PAGE_SECRET_HEADER, TICKET
from backend.platform.principals import Role
from backend.specs.events import PointsEvent
from backend.specs.states import RunState
from tests.support.pages import session_cookie
from tests.support.routes import addresses
from tests.support.rows import external_request, make_fork, make_run
from tests.support.service import RunningService, created_run

pytestmark = pytest.mark.service

API = "/api/v1/shares"


def _train(engine: Engine, rate: float = 0.001, **fields: Any) -> str:
    """A finished run with a score."""
    run = make_run(engine, RunState.FINISHED, config={"learning_rate": rate}, **fields)
    add_points(engine, run.id, 1_000 * rate)
    return run.id


def add_points(engine: Engine, run_id: str, value: float) -> None:
    steps = [10 * (at + 1) for at in range(100)]
    points = PointsEvent(
        metric="rollout/episode_return",
        agent_steps=steps,
        frames=steps,
        wall_time_s=[float(step) for step in steps],
        episodes=list(range(100)),
        value=[value] * 100,
    )
    with writing(engine) as session:
        series.append(session, run_id, 1, 2, [points])


def share(client: httpx.Client, *runs: str, **fields: Any) -> dict[str, Any]:
    """A new link to a page of these runs."""
    answer = client.post(API, json={"title": "Ada’s page", "document": {"runs": runs}} | fields)
    assert answer.status_code == 201, answer.text
    created: dict[str, Any] = answer.json()
    return created


def test_link_shows_its_runs_alone_and_its_token_is_accepted_by_no_operation(
    service: RunningService, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    shown, other = _train(service.engine, name="shown"), _train(service.engine, 0.5, name="stranger")
    created = share(service.client, shown)
    token = created["path"].removeprefix("/s/")
    assert re.fullmatch(r"[\w-]{43}", token)
    with service.new_client() as anybody:
        page = anybody.get(created["path"])
        assert page.status_code == 200
        assert ("shown" in page.text, "Ada’s page" in page.text) == (True, True)
        assert [text for text in ("stranger", other, "learning_rate=0.5") if text in page.text] == []
        assert page.headers["referrer-policy"] == "no-referrer"
        assert page.headers["cache-control"] == "no-store"
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert anybody.get("/s/plotly.js").text == plotly_script()
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            assert anybody.request(method, created["path"]).status_code in (403, 405)

    bearer, cookie = service.client_with(token), service.new_client()
    cookie.cookies.set(session_cookie(service.address), token, domain="127.0.0.1")
    n_operations = 0
    for method, path in addresses(service, shown, **{"share_id:ulid": created["id"]}):
        if path in ("/api/v1/auth/login", "/api/v1/auth/methods"):
            continue  # for everybody
        n_operations += 1
        for client, headers, params in (
            (bearer, {}, {}),
            (cookie, {PAGE_SECRET_HEADER: token}, {}),
            (cookie, {}, {TICKET: token}),
        ):
            answer = client.request(method, path, headers=headers, params=params)
            assert answer.status_code == 401, (method, path)
    assert n_operations > 150

    # Neither the log nor the audit trail has the secret.
    records = [record for record in caplog.records if record.name.startswith("backend")]
    log = "".join(str(vars(record)) for record in records)
    assert "/s/…" in log
    audit = service.client.get("/api/v1/audit").text
    assert '"create_share"' in audit
    assert [text for text in (log, audit) if token in text] == []

    assert service.client.delete(f"{API}/{created['id']}").status_code == 204
    assert '"revoke_share"' in service.client.get("/api/v1/audit").text
    gone = service.new_client().get(created["path"])
    assert (gone.status_code, "does not work" in gone.text) == (404, True)


def test_links_end_with_their_time_their_runs_and_their_owner(service: RunningService) -> None:
    client, run = service.client, _train(service.engine)
    created = [share(client, run, expires_in_days=90) for _ in range(2)]
    paths = [item["path"] for item in created]
    assert client.post(API, json={"document": {"runs": [run]}, "expires_in_days": 91}).status_code == 422
    with writing(service.engine) as session:
        past = database_now(session) - timedelta(seconds=1)
        session.execute(update(Share).where(Share.id == created[0]["id"]).values(expires_at=past))
    assert [client.get(path).status_code for path in paths] == [404, 200]
    assert [item["id"] for item in client.get(API).json()["items"]] == [created[1]["id"]]

    body = {"name": "bob", "password": "correct horse battery", "role": "operator"}
    user = client.post("/api/v1/users", json=body).json()
    with service.new_client() as bob:
        login = bob.post("/api/v1/auth/login", json={"name": "bob", "password": body["password"]})
        bob.headers[PAGE_SECRET_HEADER] = login.json()["page_secret"]
        bobs = share(bob, run)
        assert bob.delete(f"{API}/{created[1]['id']}").status_code == 404
        assert bob.get(API, params={"everyone": True}).status_code == 403
        assert [item["owner"] for item in bob.get(API).json()["items"]] == ["bob"]
    assert len(client.get(API, params={"everyone": True}).json()["items"]) == 2
    assert client.get(bobs["path"]).status_code == 200
    assert client.delete(f"/api/v1/users/{user['id']}").status_code == 204
    assert client.get(bobs["path"]).status_code == 404

    assert client.delete(f"/api/v1/runs/{run}").status_code in (200, 204)
    assert client.get(paths[1]).status_code == 404


def test_only_operators_in_a_browser_create_links_within_bounds(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, client = sqlite_service, sqlite_service.client
    runs = [_train(service.engine, tags=["a"]) for _ in range(3)]
    document = {"filter": "tag:a"}
    for role in (Role.VIEWER, Role.OPERATOR):
        with service.client_as(role) as script:
            assert script.post(API, json={"document": document}).status_code == 403
            assert script.post(f"{API}/frozen", json={"document": document}).status_code == 200
    assert share(client, document=document)["runs"] == runs
    for wrong, field in (
        ({"filter": "tag:b"}, "document.filter"),
        ({"runs": ["0" * 26]}, "document.runs"),
        ({"filter": "nonsense=1"}, "filter"),
    ):
        answer = client.post(API, json={"document": wrong})
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)
    monkeypatch.setattr(shares, "MAX_RUNS", 2)
    answer = client.post(API, json={"document": document})
    assert "3 runs match; a page shows at most 2" in answer.json()["detail"]
    monkeypatch.setattr(shares, "MAX_SHARES", 1)
    assert client.post(API, json={"document": {"runs": runs[:1]}}).status_code == 409


def test_page_without_names_has_settings_and_scores_but_nobodys_name(service: RunningService) -> None:
    engine, client = service.engine, service.client
    ours = _train(engine, name="zebra", group="giraffe", tags=["lion"], notes="by ada at the tiger")
    config = {"lr": 0.25, "data": "/home/panther/x", "author": "made by quagga", "optimiser": "adam"}
    theirs = created_run(client.post("/api/v1/runs", json=external_request(config=config, name="ocelot")))
    config |= {"lr": 0.5, "data": "/home/panther/y", "author": "somebody else"}
    config |= {"exp": "ocelot_7", "sweep": "giraffe-x", "machine": "xcheetah2", "kind": "tagged lion"}
    third = created_run(client.post("/api/v1/runs", json=external_request(config=config)))
    body = {"name": "quagga", "password": "correct horse battery", "role": "viewer"}
    client.post("/api/v1/users", json=body).raise_for_status()
    with writing(engine) as session:
        session.get_one(Run, ours).host = "leopard"
        provenance = {"host": "cheetah", "command": ["python", "/home/serval/train.py"]}
        session.add(ScriptProcess(run_id=theirs["id"], source=new_id(), provenance=provenance))
        note = StepNote(
            id=new_id(), run_id=ours, agent_steps=500, text="bobcat", created_at=database_now(session)
        )
        session.add(note)
    add_points(engine, theirs["id"], 123.0)
    hidden = ("zebra", "giraffe", "lion", "tiger", "panther", "quagga", "ocelot", "leopard", "cheetah",
              "serval", "bobcat", "Ada")  # fmt: skip
    for grouping in (None, "seed"):
        document = {"runs": [ours, theirs["id"], third["id"]], "grouping": grouping, "list": "beside"}
        named = client.get(share(client, document=document)["path"]).text
        assert {"zebra", "serval", "panther", "quagga"} <= {word for word in hidden if word in named}
        created = share(client, document=document, names=False)
        text = client.get(created["path"]).text
        assert [word for word in hidden if word in text] == []
        assert [word for word in ("my_ppo", "lr 0.25", "123.0", "PAAC") if word not in text] == []
    # What is stored stays.
    assert client.get(f"/api/v1/runs/{ours}").json()["name"] == "zebra"


def test_command_says_what_it_cannot_repeat_and_charts_are_bounded(service: RunningService) -> None:
    engine, client = service.engine, service.client
    parent = _train(engine)
    run = make_fork(engine, parent, 4_000, config={"learning_rate": 0.01}, annealing_agent_steps=123_000)
    panels = [{"kind": "lines", "metrics": ["rollout/episode_return"]}] * (MAX_CHARTS + 2)
    document = {"runs": [parent, run.id], "panels": panels}
    page = client.post(f"{API}/frozen", json={"document": document}).text
    assert "without what it began from: another run at 4,000 agent steps" in page
    assert "without its annealing, over 123,000 agent steps" in page
    assert "2 further charts left out" in page


def test_frozen_page_is_one_file_in_which_nothing_is_code_but_its_own(
    sqlite_service: RunningService,
) -> None:
    client, engine = sqlite_service.client, sqlite_service.engine
    name = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    run = _train(engine, name=name)
    answer = client.post(f"{API}/frozen", json={"title": name[:99], "document": {"runs": [run]}})
    assert answer.headers["content-disposition"].startswith("attachment")
    page = answer.text.replace(plotly_script(), "")
    assert re.findall(r"<script[^>]*>", page) == [
        '<script type="application/json" id="figures">', "<script>", "<script>"
    ]  # fmt: skip
    assert re.findall(r"<(?:img|link|iframe|base)\b|\bsrc=[^x]|href=", page) == []
    assert "script-src 'sha256-" in page
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in page
    assert "callboard train --algorithm paac --environment CartPole-v1 --agent-steps 10000" in page
