"""HEAD of every address that has a GET."""

import pytest

from tests.support.routes import addresses
from tests.support.rows import make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.service

VARYING = {"date", "x-request-id", "content-length", "transfer-encoding", "connection", "set-cookie"}
"""Headers that another request has other values of; an answer of unknown length has others."""


@pytest.mark.long
def test_head_answers_every_get_without_its_content(service: RunningService) -> None:
    run = make_run(service.engine)
    client = service.client
    paths = [path for method, path in addresses(service, run.id) if method == "GET"]
    paths += ["/healthz", "/readyz", "/metrics", "/openapi.json", "/docs", "/", "/runs", f"/runs/{run.id}"]
    for path in paths:
        head = client.head(path)
        assert head.content == b"", path
        if path == "/api/v1/events":  # endless
            assert (head.status_code, head.headers["content-type"]) == (
                200,
                "text/event-stream; charset=utf-8",
            )
            continue
        got = client.get(path)
        assert head.status_code == got.status_code, path
        names = (head.headers.keys() | got.headers.keys()) - VARYING
        assert {name: head.headers.get(name) for name in names} == {
            name: got.headers.get(name) for name in names
        }, path
    assert len(paths) > 60


def test_head_of_an_export_frees_its_slot_and_reads_nothing(service: RunningService) -> None:
    run = make_run(service.engine)
    for _ in range(20):
        answer = service.client.head(f"/api/v1/runs/{run.id}/export", params={"format": "npz"})
        assert (answer.status_code, answer.headers["content-type"]) == (200, "application/vnd.numpy.npz")
    assert service.client.get(f"/api/v1/runs/{run.id}/export").status_code == 200


def test_head_is_allowed_where_get_is(service: RunningService) -> None:
    run = make_run(service.engine)
    refused = service.client.delete(f"/api/v1/runs/{run.id}/log")
    assert refused.status_code == 405
    assert {"GET", "HEAD"} <= set(refused.headers["allow"].split(", "))
    assert service.client.head("/api/v1/auth/logout").status_code == 405
    with service.new_client() as nobody:
        assert nobody.head("/api/v1/runs").status_code == 401
