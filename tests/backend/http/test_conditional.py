"""A script that asks for a list again gets 304 until it has changed; changes depend on no tag."""

import pytest

from backend.platform.principals import Role
from tests.support.rows import make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.service


def test_list_has_a_tag_that_changes_with_it(sqlite_service: RunningService) -> None:
    make_run(sqlite_service.engine)
    with sqlite_service.client_as(Role.VIEWER) as client:
        for path in ("/api/v1/runs", "/api/v1/studies", "/api/v1/sweeps", "/api/v1/hosts"):
            first = client.get(path)
            tag = first.headers["etag"]
            for given in (tag, tag.removeprefix("W/"), f'"other", {tag}', "*"):
                again = client.get(path, headers={"If-None-Match": given})
                assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
                assert "content-type" not in again.headers
            other = client.get(path, headers={"If-None-Match": '"other"'})
            assert (other.status_code, other.content) == (200, first.content)
            plain = client.get(path, headers={"Accept-Encoding": "identity"})
            assert plain.headers["etag"] == tag
        tag = client.get("/api/v1/runs").headers["etag"]
        make_run(sqlite_service.engine)
        changed = client.get("/api/v1/runs", headers={"If-None-Match": tag})
        assert (changed.status_code, changed.json()["total"]) == (200, 2)
        assert client.head("/api/v1/runs").headers["etag"] == changed.headers["etag"]
        assert "etag" not in client.get("/api/v1/runs/none").headers
        assert "etag" not in client.post("/api/v1/runs", json={}).headers


def test_change_that_depends_on_a_tag_is_refused_and_not_made(sqlite_service: RunningService) -> None:
    run = make_run(sqlite_service.engine)
    path = f"/api/v1/runs/{run.id}"
    tag = sqlite_service.client.get(path).headers["etag"]
    for given in (tag, '"other"', f'{tag}, "other"'):
        refused = sqlite_service.client.patch(path, json={"notes": "new"}, headers={"If-Match": given})
        assert (refused.status_code, refused.json()["code"]) == (412, "precondition_failed")
        assert "`expected`" in refused.json()["detail"]
    assert sqlite_service.client.get(path).headers["etag"] == tag
    changed = sqlite_service.client.patch(path, json={"notes": "new"}, headers={"If-Match": "*"})
    assert (changed.status_code, changed.json()["notes"]) == (200, "new")
