"""Scripts in pages of listed origins use the API with a token; nothing allows a cookie."""

from functools import partial
from pathlib import Path

import httpx
import pytest
from pydantic import ValidationError

from backend.platform.principals import Role
from backend.platform.settings import Settings
from tests.support.service import RunningServer, RunningService
from tests.support.waiting import PATIENCE_S

_get = partial(httpx.get, timeout=PATIENCE_S)
_options = partial(httpx.options, timeout=PATIENCE_S)
_post = partial(httpx.post, timeout=PATIENCE_S)

LISTED = "https://notebooks.example:8888"
ALLOWED = "access-control-allow-origin"
QUESTION = {"Origin": LISTED, "Access-Control-Request-Method": "POST"}


@pytest.mark.service
def test_nothing_is_allowed_by_default(sqlite_service: RunningService) -> None:
    with sqlite_service.client_as(Role.VIEWER) as script:
        token = {"Authorization": script.headers["Authorization"], "Origin": LISTED}
        answers = [
            _options(f"{sqlite_service.url}/api/v1/runs", headers=QUESTION),
            _get(f"{sqlite_service.url}/api/v1/runs", headers=token),
        ]
    assert answers[1].status_code == 200
    assert not [name for answer in answers for name in answer.headers if name.startswith("access-control")]


@pytest.mark.service
def test_listed_origin_reads_answers_to_a_token_and_never_to_a_cookie(
    sqlite_service: RunningService, redis_url: str, tmp_path: Path
) -> None:
    database = sqlite_service.settings.database
    settings = Settings(
        home=tmp_path, database_url=database, redis_url=redis_url, port=0, cors_origins=[LISTED]
    )
    with RunningServer(settings) as url, sqlite_service.client_as(Role.OPERATOR) as script:
        token = {"Authorization": script.headers["Authorization"]}
        asked = _options(f"{url}/api/v1/runs", headers=QUESTION)
        assert (asked.status_code, asked.headers[ALLOWED], asked.content) == (204, LISTED, b"")
        for name in ("Authorization", "Callboard-Source", "Callboard-Sequence"):
            assert name in asked.headers["access-control-allow-headers"]
        assert "DELETE" in asked.headers["access-control-allow-methods"]
        assert asked.headers["x-content-type-options"] == "nosniff"
        read = _get(f"{url}/api/v1/runs", headers=token | {"Origin": LISTED})
        assert (read.status_code, read.headers[ALLOWED]) == (200, LISTED)
        assert "ETag" in read.headers["access-control-expose-headers"]
        refused = _post(
            f"{url}/api/v1/runs", json={}, headers={"Origin": LISTED, "Authorization": "Bearer wrong"}
        )
        assert (refused.status_code, refused.headers[ALLOWED]) == (401, LISTED)
        answers = [asked, read, refused]
        for origin in ("https://notebooks.example", "http://notebooks.example:8888", "null", "*"):
            foreign = [
                _options(f"{url}/api/v1/runs", headers=QUESTION | {"Origin": origin}),
                _get(f"{url}/api/v1/runs", headers=token | {"Origin": origin}),
            ]
            assert not [answer for answer in foreign if ALLOWED in answer.headers]
            answers += foreign
        for path in ("/metrics", "/healthz", "/"):
            page = _get(url + path, headers=token | {"Origin": LISTED})
            assert ALLOWED not in page.headers
        cookies = _get(
            f"{url}/api/v1/runs", headers={"Origin": LISTED}, cookies=dict(sqlite_service.client.cookies)
        )
        assert ALLOWED not in cookies.headers
        changed = _post(
            f"{url}/api/v1/runs",
            json={},
            headers={"Origin": LISTED},
            cookies=dict(sqlite_service.client.cookies),
        )
        assert (changed.status_code, ALLOWED in changed.headers) == (403, False)
        answers += [cookies, changed]
        assert not [answer for answer in answers if "access-control-allow-credentials" in answer.headers]
        assert all("origin" in answer.headers["vary"].lower() for answer in answers)


@pytest.mark.parametrize(
    "origin", ["*", "notebooks.example", "https://a.example/", "https://u@a.example", "ftp://a.example", ""]
)
def test_entry_that_is_no_origin_is_refused(tmp_path: Path, origin: str) -> None:
    with pytest.raises(ValidationError, match="entry 2 is not an origin"):
        Settings(home=tmp_path, cors_origins=[LISTED, origin])
