"""The service below a path of a proxy's host, whether the proxy passes that path on or takes it away."""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest
from pydantic import ValidationError
from websockets.sync.client import connect
from websockets.typing import Origin

from backend.http.base_path import page_below
from backend.platform.settings import Settings
from backend.specs.states import RunState
from tests.support.pages import session_headers
from tests.support.rows import make_run
from tests.support.service import RunningService, running_service
from tests.support.waiting import PATIENCE_S

_get = partial(httpx.get, timeout=PATIENCE_S)

INDEX = """<html><head>
<link rel="icon" href="/favicon.svg" /><script src="/color-scheme.js"></script>
<script type="module" src="/assets/index-abc.js"></script><a href="//other.example/">x</a>
</head></html>"""


@pytest.fixture
def below(sqlite_service: RunningService, redis_url: str, tmp_path: Path) -> Iterator[RunningService]:
    pages = tmp_path / "dist"
    (pages / "assets").mkdir(parents=True)
    (pages / "index.html").write_text(INDEX)
    (pages / "assets" / "index-abc.js").write_text("1")
    database = sqlite_service.settings.database
    with running_service(
        database, redis_url, tmp_path / "home", base_path="/lab/callboard/", frontend_dir=pages
    ) as service:
        yield service


@pytest.mark.service
def test_pages_api_documentation_and_probes_are_below_the_base_path(below: RunningService) -> None:
    for prefix in ("/lab/callboard", ""):  # a proxy may take it away
        page = _get(f"{below.url}{prefix}/runs/x")
        assert page.text == page_below(INDEX, "/lab/callboard")
        assert _get(f"{below.url}{prefix}/assets/index-abc.js").text == "1"
        assert _get(f"{below.url}{prefix}/healthz").json() == {"status": "ok"}
        assert _get(f"{below.url}{prefix}/api/v1/runs").status_code == 401
        assert _get(f"{below.url}{prefix}/help").headers["location"] == "/lab/callboard/help/"
    assert below.app.servers[0]["url"] == "/lab/callboard"
    assert _get(f"{below.url}/lab/callboard?a=1").headers["location"] == "/lab/callboard/?a=1"
    assert _get(f"{below.url}/lab/callboards/assets/index-abc.js").text != "1"


def test_page_names_its_files_below_the_base_path() -> None:
    page = page_below(INDEX, "/a")
    for part in (
        'href="/a/favicon.svg"',
        'src="/a/color-scheme.js"',
        'src="/a/assets/index-abc.js"',
        'href="//other.example/"',
        '<meta name="callboard-base" content="/a" />',
    ):
        assert page.count(part) == 1
    assert page.index("callboard-base") < page.index("<script")  # a script may run before the rest is parsed


def test_page_whose_scripts_do_not_load_names_the_setting_of_the_base_path() -> None:
    page = (Path(__file__).parents[3] / "frontend" / "index.html").read_text()
    _, _, root = page.partition('<div id="root">')  # which the scripts replace
    [sentence] = re.findall(r'<p id="late">(.+?)</p>.*?</div>', root, re.S)
    assert " ".join(sentence.split()) == (
        "The scripts of this page do not load. If a proxy shows Callboard below a path of its host, the "
        "server needs that path as <code>CALLBOARD_BASE_PATH</code>."
    )
    assert re.search(r"#late \{[^}]*visibility: hidden;[^}]*animation: late 0s 8s forwards;", root)


@pytest.mark.service
def test_session_is_of_the_base_path_and_opens_streams_there(below: RunningService) -> None:
    with below.new_client() as browser:
        opened = browser.get(
            "/lab/callboard/login", params={"token": below.login_link()}, follow_redirects=False
        )
        assert opened.headers["location"].startswith("/lab/callboard/#page_secret=")
        assert "path=/lab/callboard/;" in f"{opened.headers['set-cookie'].lower()};"
    expired = below.client.get("/login", params={"token": "x" * 43}, follow_redirects=False)
    assert expired.headers["location"] == "/lab/callboard/?login=expired"
    run = make_run(below.engine, RunState.RUNNING)
    address = f"{below.url.replace('http', 'ws')}/lab/callboard/api/v1/runs/{run.id}/live"
    headers = session_headers(below.client)
    with connect(
        address, additional_headers=headers, open_timeout=PATIENCE_S, origin=Origin(below.url)
    ) as socket:
        assert socket.response is not None
        assert socket.response.status_code == 101


@pytest.mark.parametrize(
    ("given", "kept"),
    [("/", "/"), ("/callboard", "/callboard/"), ("/a/b/", "/a/b/"), ("/~me/x.y/", "/~me/x.y/")],
)
def test_base_path_begins_and_ends_with_a_slash(tmp_path: Path, given: str, kept: str) -> None:
    assert Settings(home=tmp_path, base_path=given).base_path == kept


@pytest.mark.parametrize("given", ["callboard", "//x/", "/a//b/", "/a/../b/", '/"><b>/', "/a b/", "/?x/"])
def test_other_base_paths_are_refused(tmp_path: Path, given: str) -> None:
    with pytest.raises(ValidationError, match="must be a path such as /callboard/"):
        Settings(home=tmp_path, base_path=given)


@pytest.mark.parametrize("given", ["/api/", "/help", "/assets/x/"])
def test_base_path_is_no_path_of_the_service(tmp_path: Path, given: str) -> None:
    with pytest.raises(ValidationError, match="must not begin with a path of the service itself"):
        Settings(home=tmp_path, base_path=given)
