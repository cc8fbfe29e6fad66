from typing import Any

import pytest

from backend.fleet.hosts import service as hosts
from backend.http.errors import STATUSES, HttpProblem, status_of
from backend.platform import errors
from backend.platform.errors import Invalid, Problem
from tests.support.service import RunningService


def test_every_error_of_services_has_a_status() -> None:
    kinds = {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Problem)}
    assert set(STATUSES) == kinds - {Problem}


def test_status_is_that_of_the_nearest_known_class() -> None:
    class StricterInvalid(Invalid):
        pass

    assert status_of(StricterInvalid.field("seed", "must be prime")) == 422
    assert status_of(HttpProblem("no")) == 400
    assert status_of(Problem("a bug")) == 500


@pytest.mark.service
def test_connection_ends_with_an_internal_error_and_the_client_is_told(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(hosts, "active_hosts", fail)
    for _ in range(20):
        answer = sqlite_service.client.get("/api/v1/hosts")
        assert (answer.status_code, answer.headers.get("connection")) == (500, "close")
        assert sqlite_service.client.get("/api/v1/runs").status_code == 200
