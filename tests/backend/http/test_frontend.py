import asyncio
import gzip
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from backend.http import errors, frontend
from backend.http.routing import HttpMethods
from backend.platform.settings import Settings
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


def _get(app: FastAPI, path: str) -> httpx.Response:
    async def get() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://testserver", follow_redirects=True
        ) as client:
            return await client.get(path)

    return asyncio.run(get())


def test_documentation_is_served_below_help(tmp_path: Path, pages: Path) -> None:
    site = tmp_path / "site"
    (site / "guides").mkdir(parents=True)
    (site / "index.html").write_text("<title>Documentation</title>")
    (site / "guides" / "runs.html").write_text("<title>Runs</title>")
    app = FastAPI()
    frontend.install(app, pages, site)
    errors.install(app)
    app.state.methods = HttpMethods(app, catch_all=frontend.CATCH_ALL)
    for path, title in {
        "/help/": "Documentation",
        "/help": "Documentation",
        "/help/guides/runs.html": "Runs",
    }.items():
        answer = _get(app, path)
        assert (answer.status_code, answer.text) == (200, f"<title>{title}</title>")
        assert answer.headers["cache-control"] == "no-cache"
    for path in ("/help/none.html", "/help/../secret.txt", "/help/..%2fsecret.txt"):
        assert "secret" not in _get(app, path).text


@pytest.mark.parametrize("prefix", ["", "/callboard"])
def test_unknown_page_of_the_documentation_leads_to_its_start(
    tmp_path: Path, pages: Path, prefix: str
) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "index.html").write_text("<title>Documentation</title>")
    app = FastAPI()
    frontend.install(app, pages, site, prefix)
    errors.install(app)
    for path in ("/help/none.html", "/help/guides/none"):
        answer = _get(app, path)
        assert answer.status_code == 404
        assert answer.headers["content-type"].startswith("text/html")
        assert "no page at this address" in answer.text
        assert f'<a href="{prefix}/help/">' in answer.text
        assert "<script" not in answer.text  # the content security policy allows none in a page


def test_missing_documentation_says_how_to_build_it(tmp_path: Path, pages: Path) -> None:
    app = FastAPI()
    frontend.install(app, pages, tmp_path / "site")
    answer = _get(app, "/help")
    assert (answer.status_code, "make up" in answer.text) == (503, True)


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
        for refusal in ("identity", "br, gzip;q=0", "x-gzip-like"):
            plain = service.client.get("/assets/page-abc.js", headers={"Accept-Encoding": refusal})
            assert (plain.text, plain.headers.get("content-encoding")) == ("2", None)
        (pages / "index.html").unlink()
        assert service.client.get("/").status_code == 503
    finally:
        service.stop()
