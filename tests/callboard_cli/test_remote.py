import json
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from backend.platform.settings import Settings
from callboard_cli.installation import Installation
from callboard_cli.main import app
from callboard_cli.remote import Remote


class Breaking(ThreadingHTTPServer):
    """A server that closes its first connections without a response."""

    def __init__(self, breaks: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.breaks = breaks
        self.keys: list[str | None] = []
        self.states: list[str | int | None] = []
        """Responses to GET: a state, a status, or None for a broken connection; without any it is no JSON."""

    @property
    def settings(self) -> Settings:
        return Settings(url=f"http://127.0.0.1:{self.server_port}", token="t")


class _Handler(BaseHTTPRequestHandler):
    server: Breaking

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.keys.append(self.headers["Idempotency-Key"])
        if len(self.server.keys) <= self.server.breaks:
            return
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def do_GET(self) -> None:
        state = self.server.states.pop(0) if self.server.states else "<html>"
        if state is None:
            return
        body = b"<html>" if state == "<html>" else json.dumps({"state": state}).encode()
        self.send_response(state if isinstance(state, int) else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@pytest.fixture
def breaking(request: pytest.FixtureRequest) -> Iterator[Breaking]:
    with Breaking(request.param) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.mark.parametrize("breaking", [1], indirect=True)
def test_remote_repeats_request_with_same_key_after_broken_connection(breaking: Breaking) -> None:
    with Remote(breaking.settings) as remote:
        assert remote.request("POST", "/runs", body={}) == {}
        assert remote.request("POST", "/runs", body={}) == {}
    first, again, another = breaking.keys
    assert first == again != another
    assert first


@pytest.mark.parametrize("breaking", [2], indirect=True)
def test_remote_exits_when_every_connection_breaks(breaking: Breaking) -> None:
    with Remote(breaking.settings) as remote, pytest.raises(typer.Exit):
        remote.request("POST", "/runs", body={})
    assert len(breaking.keys) == 2


@pytest.mark.parametrize("breaking", [0], indirect=True)
def test_wait_for_an_end_outlasts_a_restart_of_the_server(
    breaking: Breaking, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("callboard_cli.remote.WAIT_INTERVAL_S", 0.0)
    breaking.states = [503, None, 502, "running", 429, "finished"]
    with Remote(breaking.settings) as remote:
        row = remote.wait_until(lambda row: row["state"] == "finished", "/runs/x")
        assert row == {"state": "finished"}
        assert capsys.readouterr().err.count("; waiting\n") == 2, "once for each outage"
        monkeypatch.setattr("callboard_cli.remote.MAX_OUTAGE_S", 0.0)
        breaking.states += 10 * [503]
        with pytest.raises(typer.Exit) as ended:
            remote.wait_until(bool, "/runs/x")
    assert ended.value.exit_code == 3


def proxied(settings: Settings) -> list[str]:
    """The kinds of addresses that commands ask a proxy for."""
    with Remote(settings) as remote:
        mounts = remote._client._mounts  # noqa: SLF001 - httpx has no public name for it
        return [pattern.pattern for pattern in mounts]


def test_address_of_this_machine_is_never_asked_for_from_a_proxy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "")
    published = "http://lab-3.invalid:8642"
    given = Settings(home=tmp_path, url=published, token="t")
    assert proxied(given) == ["http://"]
    installation = Installation(given)
    assert installation.acquire()
    try:
        installation.set_url(published)
        assert proxied(given) == proxied(Settings(home=tmp_path, token="t")) == []
        assert proxied(Settings(home=tmp_path, url="http://192.0.2.1:8642", token="t")) == ["http://"]
    finally:
        installation.release()


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("0.0.0.0", "http://localhost:8642"),
        ("::", "http://localhost:8642"),
        ("::1", "http://[::1]:8642"),
        ("lab.example", "http://lab.example:8642"),
    ],
)
def test_commands_and_login_link_use_an_address_at_which_the_web_process_can_be_reached(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sqlite_template: Path, host: str, url: str
) -> None:
    shutil.copyfile(sqlite_template, tmp_path / "callboard.sqlite3")
    monkeypatch.setattr(
        "backend.platform.logging.configure", lambda _: None
    )  # of this process, for all later tests
    env = {"CALLBOARD_HOME": str(tmp_path), "CALLBOARD_HOST": host, "CALLBOARD_PORT": "8642"}
    link = CliRunner().invoke(app, ["login-link"], env=env)
    assert link.stdout.startswith(f"{url}/login?token="), link.output
    with Remote(Settings(home=tmp_path, host=host, port=8642, token="t")) as remote:
        assert str(remote._client.base_url) == f"{url}/api/v1/"  # noqa: SLF001


@pytest.mark.parametrize("breaking", [0], indirect=True)
def test_response_of_another_server_is_refused_in_one_line(
    breaking: Breaking, capsys: pytest.CaptureFixture[str]
) -> None:
    with Remote(breaking.settings) as remote, pytest.raises(typer.Exit):
        remote.request("GET", "/runs")
    error = capsys.readouterr().err
    assert "the response is not JSON; CALLBOARD_URL must be" in error
    assert error.count("\n") == 1
