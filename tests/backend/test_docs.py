import re

import pytest

from tests.support.service import RunningService

pytestmark = pytest.mark.service


def test_the_docs_stand_on_this_server_alone(sqlite_service: RunningService) -> None:
    page = sqlite_service.client.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    parts = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert len(parts) == 4
    for part in parts:
        assert part.startswith("/docs/")
        assert sqlite_service.client.get(part).status_code == 200
    assert "<script>" not in page.text
    assert sqlite_service.client.get("/docs/start.js").headers["content-type"].startswith("text/javascript")


def test_nothing_else_of_the_package_is_served(sqlite_service: RunningService) -> None:
    for name in ("core.py", "..%2fcore.py", "redoc.standalone.js", "x/y"):
        answer = sqlite_service.client.get(f"/docs/{name}")
        assert (answer.status_code, answer.json()["status"]) == (404, 404)
