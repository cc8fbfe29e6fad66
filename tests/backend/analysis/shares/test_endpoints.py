import json
import logging
import re
from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import Engine, update
from sqlalchemy.orm import Session

from backend.analysis.comparisons import service as comparisons
from backend.analysis.metrics import repository as series
from backend.analysis.shares import contents
from backend.analysis.shares import service as shares
from backend.analysis.shares.contents import Shown, page_of
from backend.analysis.shares.page import Page, compressed_script, plotly_script
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
from tests.support.rows import external_request, make_run
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


@pytest.mark.parametrize(
    ("by", "n_groups"), [("seed", 2), ("group", 2), ("config.learning_rate", 2), ("environment", 1)]
)
def test_page_of_selected_groups_has_the_runs_of_these_alone(
    sqlite_service: RunningService, by: str, n_groups: int
) -> None:
    client, engine = sqlite_service.client, sqlite_service.engine
    for rate, group in ((0.001, "a, b"), (0.5, None)):
        for seed in range(2):
            _train(engine, rate, group=group, seed=seed)
    groups = client.get("/api/v1/comparisons/groups", params={"by": by}).json()["items"]
    assert len(groups) == n_groups
    for row in groups:
        created = share(client, document={"grouping": by}, groups=[row["key"].replace(",", "%2C")])
        assert sorted(created["runs"]) == sorted(row["runs"])
    answer = client.post(API, json={"document": {"grouping": by}, "groups": ["none of them"]})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "document.filter")


def test_shared_page_is_drawn_once_for_some_seconds_and_its_library_compressed_once(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, engine = sqlite_service.client, sqlite_service.engine
    runs = [_train(engine, rate) for rate in (0.001, 0.5)]
    path = share(client, *runs)["path"]
    drawn: list[datetime] = []

    def draw(session: Session, shown: Shown) -> Page | None:
        drawn.append(shown.at)
        return page_of(session, shown)

    monkeypatch.setattr(shares, "page_of", draw)
    first = client.get(path)
    assert (client.get(path).text, len(drawn)) == (first.text, 1)
    # Not longer, and not with a run that was deleted since.
    monkeypatch.setattr(shares, "KEPT_S", 0.0)
    assert (client.get(path).status_code, len(drawn)) == (200, 2)
    monkeypatch.setattr(shares, "KEPT_S", 3_600.0)
    assert client.delete(f"/api/v1/runs/{runs[1]}").status_code in (200, 204)
    assert ("lr 0.5" in first.text, "lr 0.5" in client.get(path).text) == (True, False)
    assert len(drawn) == 3

    packed = client.get("/s/plotly.js")
    plain = client.get("/s/plotly.js", headers={"Accept-Encoding": "identity"})
    assert (packed.headers["content-encoding"], "content-encoding" in plain.headers) == ("gzip", False)
    assert packed.text == plain.text == plotly_script()
    assert compressed_script() is compressed_script()


def test_page_leaves_out_charts_beyond_a_bound_and_says_so(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, engine = sqlite_service.client, sqlite_service.engine
    environments = ("CartPole-v1", "Acrobot-v1")
    runs = [_train(engine, environment=environment) for environment in environments]
    panels = [{"kind": "lines", "metrics": ["rollout/episode_return"] * 2}]
    document = {"runs": runs, "panels": panels, "list": "beside"}
    for bound, n_charts, said in ((20, 4, ""), (3, 3, "1 further chart left out: a page has at most 3.")):
        monkeypatch.setattr(contents, "MAX_CHARTS", bound)
        text = client.get(share(client, document=document)["path"]).text
        assert (text.count("<div class=chart "), said in text) == (n_charts, True)


def test_verdict_is_better_only_on_the_side_that_the_test_finds_better(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, engine = sqlite_service.client, sqlite_service.engine
    runs = [_train(engine, rate, seed=seed) for rate in (0.001, 0.5) for seed in range(5)]
    compare = comparisons.compare
    path = f"{API}/frozen"
    body = {"document": {"runs": runs, "grouping": "seed"}}
    text = client.post(path, json=body).text
    assert "lr 0.5 is better than the baseline lr 0.001" in text

    def turned(*given: Any, **options: Any) -> Any:
        comparison = compare(*given, **options)
        [best] = comparison.best
        pairs = [pair.model_copy(update={"better": best.rival}) for pair in comparison.improvements]
        return comparison.model_copy(update={"improvements": pairs})

    monkeypatch.setattr(comparisons, "compare", turned)
    text = client.post(path, json=body).text
    assert "lr 0.5 is ahead of the baseline lr 0.001" in text
    assert "Not decided: the test finds lr 0.001 better." in text


def test_verdict_and_charts_call_a_config_the_same(sqlite_service: RunningService) -> None:
    client, engine = sqlite_service.client, sqlite_service.engine
    hidden = _train(engine, 0.1, environment_config={"max_episode_agent_steps": 100})
    runs = [_train(engine, rate) for rate in (0.001, 0.5)]
    rows = client.get("/api/v1/comparisons/groups", params={"by": "seed"}).json()["items"]
    [key] = [row["key"] for row in rows if row["runs"] == [hidden]]
    document = {"runs": [hidden, *runs], "grouping": "seed", "hidden": [key], "list": "beside"}
    text = client.post(f"{API}/frozen", json={"document": document}).text.replace(plotly_script(), "")
    verdict = re.search(r"<h2>Verdict</h2>\n<p>(.*?) is ahead of (?:the baseline )?(.*?)\. Not", text)
    assert verdict is not None
    charts = re.search('id="figures">(.*?)</script>', text)
    assert charts is not None
    names = {trace.get("name", "").partition(" (n = ")[0] for trace in json.loads(charts[1])[0]["data"]}
    assert set(verdict.groups()) <= names
