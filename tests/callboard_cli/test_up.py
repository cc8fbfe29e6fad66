import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import Any
from urllib.parse import quote

import httpx
import psutil
import pytest
import typer

import callboard
from backend.db.engine import opened
from backend.db.migrate import upgrade
from backend.platform.settings import Settings
from callboard_cli import up
from callboard_cli.serve import await_name, host_name_lock
from callboard_cli.up import StopSignals, WorkerHeartbeat
from tests.support.databases import short_folder
from tests.support.installation import CALLBOARD, Installation, environment, installation
from tests.support.rows import add_host
from tests.support.service import RunningService
from tests.support.waiting import PATIENCE_S, until
from workers.host_agent import HostAgent

pytestmark = pytest.mark.service


@pytest.fixture
def home() -> Iterator[Path]:
    with short_folder() as folder:
        yield folder / "home"


def _callboard(home: Path, *arguments: str, given: str = "", **settings: object) -> tuple[int, str]:
    done = subprocess.run(
        [*CALLBOARD, *arguments],
        env=environment(home, **settings),
        input=given,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def _ready(running: Installation) -> bool:
    try:
        return running.client.get("/readyz").status_code == 200
    except httpx.HTTPError:
        return False


def _of_home(home: Path) -> list[psutil.Process]:
    """Every process of an installation, whatever its parent is now."""
    children = []
    for process in psutil.process_iter():
        try:
            # Redis overwrites its environment with its process title.
            mine = str(home) in f"{process.environ().get('CALLBOARD_HOME')} {process.cmdline()}"
            if mine and process.status() != psutil.STATUS_ZOMBIE:
                children.append(process)
        except psutil.Error:
            continue
    return children


@pytest.fixture(scope="module")
def running() -> Iterator[Installation]:
    """One installation for every test that leaves it running."""
    # Some characters mean something else in a URL.
    with short_folder() as folder, installation(folder / "my höme %20#") as running:
        yield running


@pytest.mark.long
def test_login_link_opens_running_installation(running: Installation) -> None:
    assert running.home.stat().st_mode & 0o777 == 0o700
    until(lambda: _ready(running))
    assert running.client.get("/api/v1/runs").status_code == 401
    assert running.log_in().get("/api/v1/runs").status_code == 200
    until(lambda: set(running.children()) == {"redis", "web", "worker"})
    until(lambda: running.client.get("/api/v1/hosts").json()["items"])


@pytest.mark.long
def test_python_client_finds_running_installation(
    running: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CALLBOARD_URL", "CALLBOARD_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CALLBOARD_HOME", str(running.home))
    token = running.home / "command-line-key"
    assert token.stat().st_mode & 0o777 == 0o600
    with callboard.connect() as client:
        assert len(client.runs()) == 0


@pytest.mark.long
def test_second_up_prints_new_login_link(running: Installation) -> None:
    status, output = _callboard(running.home, "up")
    assert status == 0
    assert f"already running here, as process {running.process.pid}" in output
    link = next(word for word in output.split() if "/login?token=" in word)
    assert link.startswith(running.url)
    assert link != running.login_url
    assert httpx.get(link, timeout=PATIENCE_S).is_redirect
    _, printed = _callboard(running.home, "login-link")
    assert printed.startswith(f"{running.url}/login?token=")
    assert len(printed.splitlines()) == 1
    assert running.process.poll() is None


def test_handler_of_a_signal_can_be_interrupted_anywhere_by_another_one() -> None:
    stop, n_interrupted = StopSignals(), 0

    def interrupt(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal n_interrupted
        if event == "line":
            n_interrupted += 1
            stop.handle(signal.SIGTERM, None)
        return interrupt

    def handle() -> None:
        sys.settrace(interrupt)
        stop.handle(signal.SIGTERM, None)
        sys.settrace(None)

    handling = Thread(target=handle, daemon=True)
    handling.start()
    handling.join(PATIENCE_S)
    assert not handling.is_alive()
    assert n_interrupted > 2
    assert stop.wait(PATIENCE_S)


def test_hangup_that_the_process_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    kept = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    try:
        stop = StopSignals()
        stop.install()
        signal.raise_signal(signal.SIGHUP)
        assert not stop.wait(0.0)
        signal.raise_signal(signal.SIGTERM)
        assert stop.wait(PATIENCE_S)
    finally:
        for number, handler in zip(
            (signal.SIGHUP, signal.SIGINT, signal.SIGTERM), (before, *kept), strict=True
        ):
            signal.signal(number, handler)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HTTP_PROXY", "http://127.0.0.1:9"),
        ("ALL_PROXY", "socks5h://127.0.0.1:9"),
        ("SSL_CERT_FILE", "/none"),
    ],
)
def test_up_and_commands_reach_this_machine_without_the_proxy_of_the_environment(
    home: Path, name: str, value: str
) -> None:
    variables = environment(home) | {name: value}
    with (home.parent / "output").open("w+b") as output:
        up = subprocess.Popen([*CALLBOARD, "up"], env=variables, stdout=output, stderr=subprocess.STDOUT)
        try:
            until(lambda: b"Callboard is ready" in (home.parent / "output").read_bytes())
            listed = subprocess.run(
                [*CALLBOARD, "runs", "list"], env=variables, capture_output=True, text=True, check=False
            )
        finally:
            up.terminate()
            up.wait(PATIENCE_S)
    assert listed.returncode == 0, listed.stderr


@pytest.mark.long
@pytest.mark.parametrize("command", [("up",), ("login-link",), ("runs", "list")])
def test_command_is_refused_with_another_database_than_the_running_one(
    running: Installation, tmp_path: Path, command: tuple[str, ...]
) -> None:
    # The same file under another name is no other database.
    (tmp_path / "link").symlink_to(running.home)
    same = quote(f"{tmp_path / 'link' / 'callboard.sqlite3'}")
    assert _callboard(running.home, *command, database_url=f"sqlite:///{same}")[0] == 0
    another = f"sqlite:///{tmp_path / 'another.sqlite3'}"
    status, output = _callboard(running.home, *command, database_url=another)
    assert (status, output.count("\n")) == (2, 1)
    assert f"CALLBOARD_DATABASE_URL: process {running.process.pid} runs in" in output
    assert not (tmp_path / "another.sqlite3").exists()


@pytest.mark.long
def test_second_worker_of_the_same_name_is_refused(running: Installation) -> None:
    until(lambda: running.log_in().get("/api/v1/hosts").json()["items"])
    status, output = _callboard(running.home, "worker")
    assert (status, output.count("\n")) == (1, 1)
    assert "CALLBOARD_HOST_NAME: a worker named" in output


def test_worker_waits_for_the_name_of_one_that_stops(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, host_name="lab")
    code = (
        "import sys; from callboard_cli.serve import host_name_lock\n"
        "from backend.platform.settings import Settings\n"
        "with host_name_lock(Settings(home=sys.argv[1], host_name='lab'), 0):\n"
        "    print('held', flush=True); input()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(typer.Exit), host_name_lock(settings, 0):
            pass
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(_take, settings)
            other.communicate("\n")
            waiting.result()


def _take(settings: Settings) -> None:
    with host_name_lock(settings, PATIENCE_S):
        pass


def test_worker_of_another_home_is_refused_while_one_of_its_name_runs(
    worker: HostAgent, sqlite_service: RunningService, tmp_path: Path
) -> None:
    until(lambda: sqlite_service.client.get("/api/v1/hosts").json()["items"])
    settings = sqlite_service.settings.model_copy(update={"host_name": "a"})
    another = settings.model_copy(update={"home_dir": tmp_path / "another"})
    await_name(settings)
    with pytest.raises(typer.Exit):
        await_name(another)
    worker.stop(8)
    await_name(another)


@pytest.mark.long
@pytest.mark.parametrize("name", ["redis", "web", "worker"])
def test_killed_child_is_restarted(running: Installation, name: str) -> None:
    before = until(lambda: running.children().get(name))
    before.kill()
    until(lambda: running.children().get(name, before).pid != before.pid)
    until(lambda: _ready(running))
    until(lambda: set(running.children()) == {"redis", "web", "worker"})


@pytest.mark.long
def test_hung_worker_is_restarted(home: Path) -> None:
    # Failed checks for four leases are a hang: longer than a start takes on a slow machine.
    with installation(home, lease_s=5, reconcile_interval_s=0.5) as running:
        client = running.log_in()
        until(lambda: client.get("/api/v1/hosts").json()["items"])
        hung = until(lambda: running.children().get("worker"))
        hung.suspend()
        until(lambda: running.children().get("worker", hung).pid != hung.pid)
        until(lambda: client.get("/api/v1/hosts").json()["items"][0]["alive"])


def test_worker_is_not_restarted_while_the_database_is_locked(sqlite_template: Path, tmp_path: Path) -> None:
    database = tmp_path / "callboard.sqlite3"
    shutil.copyfile(sqlite_template, database)
    settings = Settings(home=tmp_path, database_url=f"sqlite:///{database}", host_name="h")
    with opened(settings.database) as engine:
        add_host(engine, "h")
    with closing(WorkerHeartbeat(settings)) as heartbeat:
        assert heartbeat.is_recent()
    with closing(WorkerHeartbeat(settings.model_copy(update={"host_name": "silent"}))) as silent:
        assert not silent.is_recent()
        with closing(sqlite3.connect(database, isolation_level=None)) as other_process:
            other_process.execute("BEGIN IMMEDIATE")
            assert silent.is_recent()
        assert not silent.is_recent()


@pytest.mark.long
def test_killed_or_interrupted_up_leaves_no_process(home: Path) -> None:
    with installation(home) as running:
        assert (home / "command-line-key").read_text(), "a script may start once `up` has printed its link"
        until(lambda: len(_of_home(home)) >= 4)
        running.process.kill()
        running.process.wait()
        until(lambda: not _of_home(home))
    with installation(home) as again:  # a second installation starts in the same home
        until(lambda: _ready(again))
        assert again.stop(signal.SIGINT) == 0
    until(lambda: not _of_home(home))
    assert not (home / "redis.sock").exists()


@pytest.mark.long
@pytest.mark.parametrize("command", ["up", "web"])
def test_used_port_is_refused_in_one_line(home: Path, command: str) -> None:
    home.mkdir(mode=0o700)
    upgrade(Settings(home=home).database)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        status, output = _callboard(home, command, port=port)
    assert status == 2
    assert output.startswith(f"callboard: port {port} of 127.0.0.1: Address already in use;")
    assert output.count("\n") == 1


@pytest.mark.long
def test_public_host_needs_password_and_long_home_path_needs_nothing(home: Path) -> None:
    home /= "long" * 30  # longer than a socket's name may be
    for command in ("up", "web"):
        status, output = _callboard(home, command, host="0.0.0.0")
        assert (status, output.count("\n")) == (2, 1)
        assert "callboard password" in output
    assert _callboard(home, "password", given="short\n")[0] == 2
    assert _callboard(home, "password", given="long enough by far\n")[0] == 0
    with installation(home, host="0.0.0.0") as running:
        until(lambda: _ready(running))


@pytest.mark.long
def test_db_upgrade_creates_database(home: Path) -> None:
    assert _callboard(home, "db", "upgrade")[1].endswith(f"created {home / 'callboard.sqlite3'}\n")
    assert "the database has the latest schema" in _callboard(home, "db", "upgrade")[1]


def test_what_the_web_process_answers_is_reported_once_while_it_is_not_ready(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a proxy or another program has the port."""
    monkeypatch.setattr(up, "QUIET_S", 0.0)
    n_asked = 0

    class _Starting(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            nonlocal n_asked
            n_asked += 1
            self.send_response(200 if n_asked > 3 else 502)
            self.end_headers()
            self.wfile.write(b"no upstream")

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with HTTPServer(("127.0.0.1", 0), _Starting) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        up.wait_until_ready([], url, StopSignals())
        server.shutdown()
    reported = f"Waiting for the web process. So far: {url}/readyz: 502 no upstream\n"
    assert (n_asked, capsys.readouterr().err) == (4, reported)
