"""`callboard password`."""

import shutil
from pathlib import Path

from sqlalchemy import func, select
from typer.testing import CliRunner, Result

from backend.auth import repository
from backend.auth import service as auth
from backend.db import LoginSession
from backend.db.engine import opened, reading, writing
from callboard_cli.main import app

PASSWORD = "seven unrelated walnuts"


def _set_password(home: Path, password: str) -> Result:
    return CliRunner().invoke(app, ["password"], input=f"{password}\n", env={"CALLBOARD_HOME": str(home)})


def test_too_long_password_is_refused_in_one_line(tmp_path: Path) -> None:
    home = tmp_path / "home"
    result = _set_password(home, f"{PASSWORD} " * 10)
    assert (result.exit_code, result.stderr) == (2, "callboard: password: must have 10 to 200 characters\n")
    assert not home.exists()


def test_another_password_ends_the_sessions_of_the_owner_and_the_same_one_does_not(
    tmp_path: Path, sqlite_template: Path
) -> None:
    url = f"sqlite:///{shutil.copyfile(sqlite_template, tmp_path / 'callboard.sqlite3')}"
    assert _set_password(tmp_path, PASSWORD).exit_code == 0
    n_sessions = []
    with opened(url) as engine:
        with writing(engine) as session:
            owner = repository.user_by_name(session, auth.OWNER)
            assert owner is not None
            auth.open_session(session, owner, "password", auth.Browser("192.0.2.1", "a browser"))
        for password in (PASSWORD, "nine borrowed umbrellas"):
            assert _set_password(tmp_path, password).exit_code == 0
            with reading(engine) as session:
                n_sessions.append(session.scalar(select(func.count()).select_from(LoginSession)))
    assert n_sessions == [1, 0]
