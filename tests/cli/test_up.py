import signal
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from tests.support.databases import short_folder
from tests.support.installation import CALLBOARD, Installation, environment, installation
from tests.workers.support import until

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
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def _ready(running: Installation) -> bool:
    try:
        return running.client.get("/readyz").status_code == 200
    except httpx.HTTPError:
        return False


def _of_home(home: Path) -> list[psutil.Process]:
    """Every process that belongs to an installation, whoever its parent is now."""
    found = []
    for process in psutil.process_iter():
        try:
            # Redis writes its title over its environment.
            mine = str(home) in f"{process.environ().get('CALLBOARD_HOME')} {process.cmdline()}"
            if mine and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


@pytest.fixture(scope="module")
def running() -> Iterator[Installation]:
    """One installation for all that leave it running."""
    with short_folder() as folder, installation(folder / "home") as running:
        yield running


def test_the_link_opens_it(running: Installation) -> None:
    assert running.home.stat().st_mode & 0o777 == 0o700
    assert _ready(running)
    assert running.client.get("/api/v1/runs").status_code == 401
    assert running.log_in().get("/api/v1/runs").status_code == 200
    assert set(running.family()) == {"redis", "web", "worker"}
    until(lambda: running.client.get("/api/v1/hosts").json()["items"])


def test_a_second_up_greets_with_a_fresh_link(running: Installation) -> None:
    status, said = _callboard(running.home, "up")
    assert status == 0
    assert f"already runs here, as process {running.process.pid}" in said
    link = next(word for word in said.split() if "/login?token=" in word)
    assert link.startswith(running.url)
    assert link != running.login_url
    assert httpx.get(link).is_redirect
    assert _callboard(running.home, "login-link")[1].startswith(f"{running.url}/login?token=")
    assert running.process.poll() is None


@pytest.mark.parametrize("name", ["redis", "web", "worker"])
def test_a_child_that_dies_is_started_again(running: Installation, name: str) -> None:
    before = running.family()[name]
    before.kill()
    until(lambda: running.family().get(name, before).pid != before.pid)
    until(lambda: _ready(running))
    assert set(running.family()) == {"redis", "web", "worker"}


def test_killed_itself_it_leaves_nothing_behind_and_nor_does_control_c(home: Path) -> None:
    with installation(home) as running:
        assert len(_of_home(home)) >= 4
        running.process.kill()
        running.process.wait()
        until(lambda: not _of_home(home))
    with installation(home) as again:  # and the next one is not in its way
        assert _ready(again)
        assert again.stop(signal.SIGINT) == 0
    assert _of_home(home) == []
    assert not (home / "redis.sock").exists()


def test_a_taken_port_is_one_clear_line(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        status, said = _callboard(home, "up", port=port)
    assert status == 2
    assert said.startswith(f"callboard: port {port} of 127.0.0.1: Address already in use;")
    assert said.count("\n") == 1


def test_a_long_home_still_has_its_redis(home: Path) -> None:
    with installation(home / ("long" * 30)) as running:
        assert _ready(running)


def test_no_wide_bind_without_a_password(home: Path) -> None:
    for command in ("up", "web"):
        status, said = _callboard(home, command, host="0.0.0.0")
        assert (status, said.count("\n")) == (2, 1)
        assert "callboard password" in said
    assert _callboard(home, "password", given="short\n")[0] == 2
    assert _callboard(home, "password", given="long enough by far\n")[0] == 0
    with installation(home, host="0.0.0.0") as running:
        assert _ready(running)


def test_db_upgrade_makes_the_database(home: Path) -> None:
    for _ in range(2):
        assert "the database is at the newest schema" in _callboard(home, "db", "upgrade")[1]
    assert (home / "callboard.sqlite3").exists()


def test_a_database_of_a_newer_version_is_one_clear_line(home: Path) -> None:
    _callboard(home, "db", "upgrade")
    with sqlite3.connect(home / "callboard.sqlite3") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    for command in (["up"], ["db", "upgrade"]):
        status, said = _callboard(home, *command)
        assert status == 1
        assert "another version of Callboard" in said.splitlines()[-1]
