import gzip
from pathlib import Path

import httpx
import pytest

from backend.settings import Settings
from tests.support.service import RunningService

pytestmark = pytest.mark.service


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    folder = tmp_path / "dist"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<title>Callboard</title>")
    (folder / "icon.svg").write_text("<svg/>")
    (folder / "assets" / "index-abc.js").write_text("1")
    (folder / "assets" / "page-abc.js").write_text("2")
    (folder / "assets" / "page-abc.js.gz").write_bytes(gzip.compress(b"2"))
    (tmp_path / "secret.txt").write_text("secret")
    return folder


@pytest.fixture
def client(pages: Path, sqlite_service: RunningService) -> httpx.Client:
    sqlite_service.app.state.frontend = pages
    return sqlite_service.client


def test_every_page_address_returns_index_html(client: httpx.Client) -> None:
    for path in ("/", "/runs", "/runs/abc?tab=log", "/login", "/index.html", "/a.b/c"):
        answer = client.get(path)
        assert (answer.status_code, answer.text) == (200, "<title>Callboard</title>")
        assert answer.headers["cache-control"] == "no-cache"


def test_root_folder_files_are_served(client: httpx.Client) -> None:
    assert client.get("/icon.svg").text == "<svg/>"


def test_files_outside_the_folder_are_not_served(client: httpx.Client) -> None:
    for path in ("/../secret.txt", "/..%2fsecret.txt", "/assets/..%2f..%2fsecret.txt", "/%2e%2e/secret.txt"):
        assert "secret" not in client.get(path).text


def test_unknown_api_and_asset_addresses_return_404(client: httpx.Client) -> None:
    for path in ("/api/v1/none", "/api", "/assets/none.js", "/metrics/x"):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["status"]) == (404, 404)


def test_hashed_files_are_cached_as_immutable_and_served_compressed(
    pages: Path, tmp_path: Path, redis_url: str
) -> None:
    from backend.db.migrate import upgrade

    settings = Settings(home=tmp_path / "home", redis_url=redis_url, port=0, frontend_dir=pages)
    upgrade(settings.database)
    service = RunningService(settings)
    try:
        answer = service.client.get("/assets/index-abc.js")
        assert answer.text == "1"
        assert "immutable" in answer.headers["cache-control"]
        assert "content-encoding" not in answer.headers
        packed = service.client.get("/assets/page-abc.js")
        assert (packed.text, packed.headers["content-encoding"]) == ("2", "gzip")
        assert packed.headers["content-type"].startswith("text/javascript")
        assert "immutable" in packed.headers["cache-control"]
        plain = service.client.get("/assets/page-abc.js", headers={"Accept-Encoding": "identity"})
        assert (plain.text, plain.headers.get("content-encoding")) == ("2", None)
        (pages / "index.html").unlink()
        assert service.client.get("/").status_code == 503
    finally:
        service.stop()
