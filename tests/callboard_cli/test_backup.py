import os
import shutil
import signal
from pathlib import Path

import pytest
from sqlalchemy import text
from typer.testing import CliRunner

from backend.db.engine import make_engine, opened
from backend.db.migrate import upgrade
from backend.platform.settings import Settings
from backend.upkeep.backup import repository
from callboard_cli.installation import Installation
from callboard_cli.main import app
from tests.support.rows import make_checkpoint, make_run


@pytest.mark.long
def test_backup_and_restore_commands_and_their_errors(tmp_path: Path) -> None:
    def run(home: str, *arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, list(arguments), env={"CALLBOARD_HOME": str(tmp_path / home)})
        return done.exit_code, done.output

    url = f"sqlite:///{tmp_path / 'lab' / 'callboard.sqlite3'}"
    upgrade(url)
    engine = make_engine(url)
    run_row = make_run(engine)
    make_checkpoint(engine, run_row)
    with engine.begin() as connection:
        connection.execute(text("UPDATE runs SET tags = '{'"))
    engine.dispose()
    file = str(tmp_path / "lab.tar")
    code, output = run("lab", "backup", file)
    assert code == 0
    assert f"{file}: 1 run and 0 files" in output
    assert "callboard: 1 file listed in the database is missing or damaged" in output
    damaged = f'callboard: 1 damaged value in the database (runs "{run_row.id}": tags): '
    assert f"{damaged}a restore keeps them as they are" in output
    assert run("lab", "backup", file) == (1, f"callboard: {file} exists already: name another file\n")
    (tmp_path / "restored").mkdir()
    running = Installation(Settings(home=tmp_path / "restored"))
    assert running.acquire()
    code, output = run("restored", "restore", file)
    running.release()
    assert code == 1
    assert f"callboard: `callboard up` or a restore is running in {tmp_path / 'restored'}: stop it" in output
    code, output = run("restored", "restore", file)
    assert (code, output.splitlines()[-2:]) == (
        0,
        [
            f"restored 1 run and 0 files into {tmp_path / 'restored'}",
            f"{damaged}kept as in the backup, and shown as damaged",
        ],
    )
    code, output = run("restored", "restore", file)
    assert code == 1
    assert "is not empty: restore into an empty installation" in output.splitlines()[-1]
    assert run("x", "restore", str(tmp_path / "none"))[1].endswith(f"there is no file {tmp_path / 'none'}\n")


def test_backup_that_a_restore_refuses_is_written_and_exits_1(tmp_path: Path, sqlite_template: Path) -> None:
    home, file = tmp_path / "lab", tmp_path / "lab.tar"
    home.mkdir(mode=0o700)
    url = f"sqlite:///{shutil.copyfile(sqlite_template, home / 'callboard.sqlite3')}"
    with opened(url) as engine:
        make_run(engine)
        with engine.begin() as connection:
            connection.execute(text("UPDATE runs SET created_at = '9999-99-99 00:00:00'"))
    result = CliRunner().invoke(app, ["backup", str(file)], env={"CALLBOARD_HOME": str(home)})
    assert "callboard: a restore will refuse this backup: a row of its table runs" in result.stderr
    assert (result.exit_code, file.exists()) == (1, True)


def test_backup_that_is_asked_to_end_leaves_nothing(
    tmp_path: Path, sqlite_template: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, target = tmp_path / "lab", tmp_path / "backups"
    home.mkdir()
    target.mkdir()
    shutil.copyfile(sqlite_template, home / "callboard.sqlite3")
    written: list[list[Path]] = []

    def snapshot(*_: object) -> None:
        written.append(list(target.iterdir()))
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(repository, "snapshot", snapshot)
    former = signal.getsignal(signal.SIGTERM)
    arguments = ["backup", str(target / "x.tar")]
    done = CliRunner().invoke(app, arguments, env={"CALLBOARD_HOME": str(home)})
    assert done.exit_code == 128 + signal.SIGTERM, done.output
    assert len(written[0]) == 2
    assert list(target.iterdir()) == []
    assert signal.getsignal(signal.SIGTERM) == former
