import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from backend.platform.settings import Settings
from callboard_cli import called_as
from callboard_cli.home import make_private
from callboard_cli.installation import Installation
from callboard_cli.main import app


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    """That of most systems, under which new files are readable by all."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _run(home: Path, *command: str) -> None:
    result = CliRunner().invoke(app, command, env={"CALLBOARD_HOME": str(home)})
    assert result.exit_code == 0, result.output


def test_first_command_creates_private_files_and_folders(tmp_path: Path) -> None:
    home = tmp_path / "new" / "home"
    _run(home, "db", "upgrade")
    assert _mode(home) == 0o700
    assert {_mode(path) for path in home.iterdir()} == {0o600}
    assert (home / "callboard.sqlite3").exists()


def test_readable_files_of_an_existing_home_become_private(tmp_path: Path) -> None:
    home = tmp_path / "home"
    _run(home, "db", "upgrade")
    (home / "logs").mkdir()
    (home / "logs" / "web.log").touch()
    (home / "notes.txt").touch()
    for path in (home, home / "logs"):
        path.chmod(0o755)
    for path in (home / "callboard.sqlite3", home / "logs" / "web.log", home / "notes.txt"):
        path.chmod(0o644)
    _run(home, "db", "upgrade")
    assert (_mode(home), _mode(home / "logs")) == (0o700, 0o700)
    assert (_mode(home / "callboard.sqlite3"), _mode(home / "logs" / "web.log")) == (0o600, 0o600)
    assert _mode(home / "notes.txt") == 0o644  # not Callboard's


@pytest.mark.parametrize(("mode", "file"), [(0o755, None), (0o1777, "callboard.sqlite3")])
def test_other_and_shared_folders_keep_their_permissions(tmp_path: Path, mode: int, file: str | None) -> None:
    if file is not None:
        (tmp_path / file).touch()
    tmp_path.chmod(mode)
    make_private(tmp_path)
    assert _mode(tmp_path) == mode


@pytest.mark.parametrize("command", [["token", "create", "script"], ["worker"]])
def test_command_without_a_schema_is_refused_in_one_line(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "callboard.sqlite3").touch()
    result = CliRunner().invoke(app, command, env={"CALLBOARD_HOME": str(tmp_path)})
    assert (result.exit_code, result.stderr) == (
        1,
        "callboard: the database has no schema, or one of another version: run `callboard db upgrade`\n",
    )


@pytest.mark.parametrize(
    ("failure", "hint"),
    [
        (errno.ENOLCK, "set CALLBOARD_HOME to a folder whose files can be locked"),
        (errno.ENOSYS, "set CALLBOARD_HOME to a folder whose files can be locked"),
        (errno.ENOSPC, "free some space"),
        (errno.EROFS, "make it writable"),
    ],
)
def test_home_that_cannot_be_locked_or_written_is_one_line_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, failure: int, hint: str
) -> None:
    def fails(*_: object) -> None:
        raise OSError(failure, os.strerror(failure))

    monkeypatch.setattr(fcntl, "flock", fails)
    monkeypatch.setattr(
        "backend.platform.logging.configure", lambda _: None
    )  # of this process, for all later tests
    result = CliRunner().invoke(app, ["up"], env={"CALLBOARD_HOME": str(tmp_path)})
    assert result.exit_code == 1
    assert f"{tmp_path}: {os.strerror(failure)}; {hint}" in " ".join(result.output.split())


@pytest.mark.parametrize("failure", [errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP])
def test_installation_does_not_run_where_no_file_can_be_locked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, failure: int
) -> None:
    def fails(*_: object) -> None:
        raise OSError(failure, os.strerror(failure))

    assert Installation(Settings(home=tmp_path)).running() is None
    (tmp_path / "up.json").touch()
    monkeypatch.setattr(fcntl, "flock", fails)
    assert Installation(Settings(home=tmp_path)).running() is None


def test_installation_that_has_not_written_its_address_yet_is_read_when_it_has(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = Settings(home=tmp_path)
    starting = Installation(settings)
    assert starting.acquire()
    (tmp_path / "up.json").write_text("")
    monkeypatch.setattr(time, "sleep", lambda _: starting.set_url("http://127.0.0.1:1"))
    try:
        running = Installation(settings).running()
        assert running is not None
        assert (running.pid, running.url) == (os.getpid(), "http://127.0.0.1:1")
        (tmp_path / "up.json").write_text("")
        monkeypatch.setattr(time, "sleep", lambda _: None)
        with pytest.raises(typer.Exit):
            Installation(settings).running()
    finally:
        starting.release()
    assert Installation(settings).running() is None


@pytest.mark.parametrize("command", [["login-link"], ["runs", "list"]])
def test_installation_whose_file_cannot_be_read_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: list[str]
) -> None:
    """As in the home of another user, who would get a link or answers of the default port."""
    (tmp_path / "up.json").touch()
    opened = Path.open

    def refused(path: Path, *arguments: Any, **more: Any) -> Any:
        if path.name == "up.json":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return opened(path, *arguments, **more)

    monkeypatch.setattr(Path, "open", refused)
    monkeypatch.setattr(
        "backend.platform.logging.configure", lambda _: None
    )  # of this process, for all later tests
    result = CliRunner().invoke(app, command, env={"CALLBOARD_HOME": str(tmp_path)})
    assert (result.exit_code, result.stderr) == (
        1,
        f"callboard: {tmp_path / 'up.json'}: Permission denied; "
        "set CALLBOARD_HOME to a folder that you can read\n",
    )


def test_a_command_names_itself_as_the_shell_finds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        program = tmp_path / folder / "callboard"
        program.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "a"))
    for folder, wanted in (("a", "callboard"), ("b", str(program))):
        monkeypatch.setattr("sys.argv", [str(tmp_path / folder / "callboard"), "up"])
        assert called_as() == wanted
