"""What the commands do about a database that is missing or cannot be reached."""

import shutil
from pathlib import Path

import pytest
import typer
from sqlalchemy import text
from typer.testing import CliRunner

from backend.db.engine import opened
from backend.db.migrate import upgrade
from backend.platform.settings import Settings
from callboard_cli import listening
from callboard_cli.database import require_schema
from callboard_cli.main import app


@pytest.mark.parametrize("command", [["web"], ["worker"], ["token", "create", "script"]])
def test_command_does_not_create_a_database_at_a_wrong_path(tmp_path: Path, command: list[str]) -> None:
    file = tmp_path / "mistyped" / "callboard.sqlite3"
    here = {"CALLBOARD_HOME": str(tmp_path / "home"), "CALLBOARD_DATABASE_URL": f"sqlite:///{file}"}
    result = CliRunner().invoke(app, command, env=here)
    assert (result.exit_code, result.output.count("\n")) == (1, 1)
    assert result.output.startswith(f"callboard: there is no database {file}: correct CALLBOARD_HOME or ")
    assert not file.parent.exists()


def test_worker_waits_for_a_database_that_cannot_be_reached(capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings(database_url="postgresql+psycopg://callboard:secret@127.0.0.1:1/callboard")
    require_schema(settings, allow_unreachable=True)
    with pytest.raises(typer.Exit):
        require_schema(settings)
    error = capsys.readouterr().err
    assert error.startswith("callboard: the database is not available: ")
    assert "secret" not in error


def test_open_address_is_refused_once_the_database_is_available(
    tmp_path: Path,
    sqlite_template: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Until then nothing is served: whether an admin has a password is not known."""
    file = tmp_path / "callboard.sqlite3"
    file.mkdir()  # which cannot be opened
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            file.rmdir()
            shutil.copyfile(sqlite_template, file)

    monkeypatch.setattr(listening, "sleep", wait)
    with pytest.raises(typer.Exit):
        listening.refuse_open_bind(Settings(database_url=f"sqlite:///{file}", host="0.0.0.0"))
    waiting, refused = capsys.readouterr().err.splitlines()
    assert waiting.startswith("callboard: waiting for the database, which is not available: unable to open ")
    assert refused.startswith("callboard: CALLBOARD_HOST=0.0.0.0 would admit other machines while no admin ")
    assert len(waits) == 2


def test_database_that_cannot_be_created_is_named_in_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "file" / "data"
    folder.parent.touch()
    file = folder / "callboard.sqlite3"
    url = f"sqlite:///{file}"
    result = CliRunner().invoke(app, ["db", "upgrade"], env={"CALLBOARD_DATABASE_URL": url})
    message = f"callboard: the database {file} cannot be created: Not a directory\n"
    assert (result.exit_code, result.stderr) == (1, message)


def test_database_whose_path_is_too_long_is_named_in_one_line() -> None:
    file = f"/{'a' * 300}"
    result = CliRunner().invoke(app, ["db", "upgrade"], env={"CALLBOARD_DATABASE_URL": f"sqlite:///{file}"})
    message = f"callboard: the database {file} cannot be read: File name too long\n"
    assert (result.exit_code, result.stderr) == (1, message)


def test_token_without_a_name_is_refused() -> None:
    result = CliRunner().invoke(app, ["token", "create", " "])
    assert (result.exit_code, result.stderr) == (2, "callboard: name: must not be empty\n")


@pytest.mark.parametrize("command", [["up"], ["web"], ["worker"], ["db", "upgrade"]])
@pytest.mark.parametrize(
    "revision", ["0009", *(pytest.param(revision, marks=pytest.mark.long) for revision in ("0162", "9999"))]
)  # the first is that of version 0.1.0
def test_home_of_another_schema_is_refused_in_one_line_and_left_as_it_is(
    tmp_path: Path, command: list[str], revision: str
) -> None:
    home = tmp_path / "home"
    file = home / "callboard.sqlite3"
    home.mkdir(mode=0o700)
    upgrade(f"sqlite:///{file}")
    with opened(f"sqlite:///{file}") as engine, engine.begin() as connection:
        connection.execute(text(f"UPDATE alembic_version SET version_num = '{revision}'"))
    before = {path.name: path.read_bytes() for path in home.iterdir()}
    result = CliRunner().invoke(app, command, env={"CALLBOARD_HOME": str(home)})
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert result.stderr.startswith(f"callboard: the database {file} has the schema {revision}, of another ")
    assert "set CALLBOARD_HOME to another folder" in result.stderr
    assert "export its runs with that version" in result.stderr
    assert {path.name: path.read_bytes() for path in home.iterdir()} == before
