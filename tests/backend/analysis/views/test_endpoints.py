from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from backend.analysis.views import service as views
from backend.db import View
from backend.db.engine import reading, writing
from backend.platform.principals import Role
from tests.support.service import RunningService

pytestmark = pytest.mark.service

API = "/api/v1/views"
BASELINES = {"filter": "tag:baseline", "grouping": "seed"}


@pytest.fixture
def ada(service: RunningService) -> Iterator[httpx.Client]:
    """A viewer."""
    with service.client_as(Role.VIEWER) as client:
        yield client


@pytest.fixture
def bob(service: RunningService) -> Iterator[httpx.Client]:
    """An operator."""
    with service.client_as(Role.OPERATOR) as client:
        yield client


def save(client: httpx.Client, name: str | None = "baselines", **fields: Any) -> dict[str, Any]:
    """A new view."""
    answer = client.post(API, json={"name": name, "document": BASELINES} | fields)
    assert answer.status_code == 201, answer.text
    view: dict[str, Any] = answer.json()
    return view


def names(client: httpx.Client, **params: str) -> list[str]:
    return [view["name"] for view in client.get(API, params=params).json()["items"]]


def test_viewer_keeps_private_views_that_nobody_else_sees(
    service: RunningService, ada: httpx.Client, bob: httpx.Client
) -> None:
    view = save(ada)
    path = f"{API}/{view['id']}"
    read = ada.get(path)
    assert (read.json(), read.headers["etag"]) == (view, '"1"')
    assert view["document"]["filter"] == "tag:baseline"
    assert (view["mine"], view["shared"], view["project"], view["read_only"]) == (True, False, None, False)
    for other in (bob, service.client):
        assert names(other) == []
        assert {other.get(path).status_code, other.get(f"{path}/states").status_code} == {404}
        assert other.patch(path, json={"name": "mine"}).status_code == 404
        assert other.delete(path).status_code == 404
    assert ada.patch(path, json={"shared": True}).status_code == 403
    assert ada.post(API, json={"name": "new", "shared": True, "document": {}}).status_code == 403
    assert ada.delete(path).status_code == 204
    assert names(ada) == []


def test_shared_view_is_changed_by_operators_and_deleted_by_its_owner_or_an_admin(
    service: RunningService, ada: httpx.Client, bob: httpx.Client
) -> None:
    with service.client_as(Role.OPERATOR) as carl:
        view = save(carl, shared=True)
        path = f"{API}/{view['id']}"
        assert names(ada) == ["baselines"]
        assert not ada.get(path).json()["mine"]
        assert ada.patch(path, json={"document": {}}).status_code == 403
        assert bob.patch(path, json={"document": {"filter": "tag:b"}}).json()["document"]["filter"] == "tag:b"
        assert {ada.delete(path).status_code, bob.delete(path).status_code} == {403}
        assert service.client.delete(path).status_code == 204
        other = save(carl, shared=True)
        assert carl.delete(f"{API}/{other['id']}").status_code == 204


def test_name_is_unique_for_owner_and_project(ada: httpx.Client, bob: httpx.Client) -> None:
    first = save(ada)
    save(ada, project="atari")
    save(bob)
    body = {"name": "baselines", "document": {}}
    for refused in (ada.post(API, json=body), ada.post(API, json=body | {"project": "atari"})):
        assert (refused.status_code, refused.json()["errors"][0]["field"]) == (409, "name")
    other = save(ada, "other")
    renamed = ada.patch(f"{API}/{other['id']}", json={"name": "baselines"})
    assert (renamed.status_code, renamed.json()["errors"][0]["field"]) == (409, "name")
    assert ada.patch(f"{API}/{first['id']}", json={"name": "baselines"}).status_code == 200
    assert names(ada, name="baselines", project="") == ["baselines"]
    assert names(ada, project="atari") == ["baselines"]


def test_stale_save_is_refused_and_changes_nothing(ada: httpx.Client) -> None:
    path = f"{API}/{save(ada)['id']}"
    saved = ada.patch(path, json={"document": {"filter": "a"}}, headers={"If-Match": '"1"'})
    assert (saved.status_code, saved.json()["version"], saved.headers["etag"]) == (200, 2, '"2"')
    for stale in ('"1"', 'W/"1", "7"', "nonsense"):
        refused = ada.patch(path, json={"document": {"filter": "b"}}, headers={"If-Match": stale})
        assert (refused.status_code, refused.json()["code"]) == (412, "precondition_failed")
    assert ada.get(path).json() == saved.json()
    for current in ('"2"', "*"):
        again = ada.patch(path, json={"document": {"filter": current}}, headers={"If-Match": current})
        assert again.status_code == 200


def test_last_20_documents_are_kept_and_can_be_restored(ada: httpx.Client) -> None:
    path = f"{API}/{save(ada)['id']}"
    for n in range(25):
        ada.patch(path, json={"document": {"filter": f"seed={n}"}}).raise_for_status()
    ada.patch(path, json={"name": "renamed"}).raise_for_status()
    ada.patch(path, json={"document": {"filter": "seed=24"}}).raise_for_status()
    states = ada.get(f"{path}/states").json()["items"]
    assert [state["document"]["filter"] for state in states] == [f"seed={n}" for n in range(23, 3, -1)]
    restored = ada.patch(path, json={"document": states[-1]["document"]}).json()
    assert restored["document"]["filter"] == "seed=4"
    latest = ada.get(f"{path}/states").json()["items"][0]
    assert latest["document"]["filter"] == "seed=24"


def test_document_of_another_version_opens_read_only(service: RunningService, ada: httpx.Client) -> None:
    path = f"{API}/{save(ada)['id']}"
    with writing(service.engine) as session:
        row = session.scalars(select(View)).one()
        row.document = {"version": 9, "filter": "tag:a", "holograms": [1]}
    read = ada.get(path).json()
    assert (read["read_only"], read["document"]["filter"]) == (True, "tag:a")
    assert ada.patch(path, json={"document": BASELINES}).status_code == 409
    assert ada.patch(path, json={"name": "renamed"}).json()["name"] == "renamed"
    with reading(service.engine) as session:
        assert session.scalars(select(View)).one().document["holograms"] == [1]


def test_view_without_a_name_is_in_no_list_and_the_oldest_make_room(
    ada: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "MAX_UNNAMED", 2)
    named = save(ada)
    unnamed = [save(ada, None)["id"] for _ in range(3)]
    assert names(ada) == ["baselines"]
    assert [ada.get(f"{API}/{view_id}").status_code for view_id in unnamed] == [404, 200, 200]
    path = f"{API}/{unnamed[-1]}"
    assert ada.patch(path, json={"document": {}}).status_code == 200
    assert ada.get(f"{path}/states").json()["items"] == []
    assert ada.patch(path, json={"name": "kept"}).json()["name"] == "kept"
    assert ada.get(f"{API}/{named['id']}").status_code == 200


def test_views_of_a_removed_user_pass_to_an_admin(service: RunningService, bob: httpx.Client) -> None:
    save(service.client)
    mine = save(bob, shared=True)
    private = save(bob, "mine")
    save(bob, None)
    me = bob.get("/api/v1/auth/me").json()
    assert service.client.delete(f"/api/v1/users/{me['id']}").status_code == 204
    assert set(names(service.client)) == {"baselines", f"baselines ({me['name']})", "mine"}
    for view in (mine, private):
        read = service.client.get(f"{API}/{view['id']}").json()
        assert (read["owner"], read["mine"], read["version"]) == ("owner", True, 2)
        assert service.client.patch(f"{API}/{view['id']}", json={"document": {}}).status_code == 200
    with reading(service.engine) as session:
        assert len(session.scalars(select(View)).all()) == 3


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "a/b", "document": {}}, "name"),
        ({"name": "..", "document": {}}, "name"),
        ({"name": "0" * 26, "document": {}}, "name"),
        ({"name": "a", "project": " ", "document": {}}, "project"),
        ({"name": "a", "document": {"version": 2}}, "document.version"),
        ({"name": "a", "document": {"filtr": "x"}}, "document.filtr"),
        ({"name": "a"}, "document"),
    ],
)
def test_wrong_view_is_refused_and_names_the_field(
    sqlite_service: RunningService, body: dict[str, Any], field: str
) -> None:
    answer = sqlite_service.client.post(API, json=body)
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == [field]


def test_named_views_are_audited_and_addresses_are_not(sqlite_service: RunningService) -> None:
    client = sqlite_service.client
    unnamed = save(client, None)
    client.patch(f"{API}/{unnamed['id']}", json={"document": {}}).raise_for_status()
    save(client)
    entries = client.get("/api/v1/audit").json()["items"]
    assert [entry["action"] for entry in entries if "view" in entry["action"]] == ["create_view"]
