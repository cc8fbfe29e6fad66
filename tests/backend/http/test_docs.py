import re

import pytest

from tests.support.service import RunningService

pytestmark = pytest.mark.service


def test_docs_page_loads_every_asset_from_this_server(sqlite_service: RunningService) -> None:
    page = sqlite_service.client.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    parts = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert len(parts) == 4
    for part in parts:
        assert part.startswith("docs/")  # as from a page below a proxy's path
        assert sqlite_service.client.get(f"/{part}").status_code == 200
    assert "<script>" not in page.text
    assert sqlite_service.client.get("/docs/start.js").headers["content-type"].startswith("text/javascript")


def test_docs_returns_404_for_other_files_of_the_package(sqlite_service: RunningService) -> None:
    for name in ("core.py", "..%2fcore.py", "redoc.standalone.js", "x/y"):
        answer = sqlite_service.client.get(f"/docs/{name}")
        assert (answer.status_code, answer.json()["status"]) == (404, 404)
