"""`callboard password` and `callboard token`."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import func, select
from typer.testing import CliRunner, Result

from backend.access.auth import repository
from backend.access.auth import service as auth
from backend.db import AuditEntry, LoginSession
from backend.db.engine import opened, reading, writing
from callboard_cli.main import app

PASSWORD = "seven unrelated walnuts"


def _set_password(home: Path, password: str, *options: str) -> Result:
    env = {"CALLBOARD_HOME": str(home)}
    return CliRunner().invoke(app, ["password", *options], input=f"{password}\n", env=env)


def test_too_long_password_is_refused_in_one_line(tmp_path: Path) -> None:
    home = tmp_path / "home"
    result = _set_password(home, f"{PASSWORD} " * 10)
    assert (result.exit_code, result.stderr) == (2, "callboard: password: must have 10 to 200 characters\n")
    assert not home.exists()


def test_new_password_ends_the_sessions_of_the_owner_and_if_unset_keeps_password_and_sessions(
    tmp_path: Path, sqlite_template: Path
) -> None:
    url = f"sqlite:///{shutil.copyfile(sqlite_template, tmp_path / 'callboard.sqlite3')}"
    assert _set_password(tmp_path, PASSWORD, "--if-unset").stdout == "password of owner changed\n"
    with opened(url) as engine:
        with writing(engine) as session:
            owner = repository.user_by_name(session, auth.OWNER)
            assert owner is not None
            auth.open_session(session, owner, "password", auth.Browser("192.0.2.1", "a browser"))
        kept = _set_password(tmp_path, "nine borrowed umbrellas", "--if-unset")
        assert (kept.exit_code, kept.stdout) == (0, "owner has a password already; nothing changed\n")
        with reading(engine) as session:
            assert auth.check_password(session, auth.OWNER, PASSWORD)
            assert session.scalar(select(func.count()).select_from(LoginSession)) == 1
        assert _set_password(tmp_path, "nine borrowed umbrellas").exit_code == 0
        with reading(engine) as session:
            assert session.scalar(select(func.count()).select_from(LoginSession)) == 0
            entries = session.scalars(select(AuditEntry)).all()
            by_command = ("change_password", "callboard password", {"user": "owner"}, None)
            assert [(row.action, row.path, row.body, row.address) for row in entries] == [by_command] * 2


def test_name_of_a_token_that_rest_refuses_is_refused_in_one_line() -> None:
    result = CliRunner().invoke(app, ["token", "create", "n" * 101])
    message = "callboard: name: must have at most 100 characters, has 101\n"
    assert (result.exit_code, result.stderr) == (2, message)


@pytest.mark.service
def test_tokens_are_listed_and_revoked(callboard: Callable[..., Result]) -> None:
    assert callboard("token", "create", "of a script", "--days", "3").exit_code == 0
    tokens = {token["name"]: token["id"] for token in json.loads(callboard("token", "list", "--json").output)}
    assert {*tokens} == {"of a script", "command line"}
    assert tokens["of a script"] in callboard("token", "list").output
    revoked = callboard("token", "revoke", tokens["of a script"])
    assert (revoked.exit_code, revoked.output) == (0, f"{tokens['of a script']}\n")
    assert "of a script" not in callboard("token", "list").output
    refused = callboard("token", "revoke", "../x")
    assert (refused.exit_code, "is not the id of a token" in refused.stderr) == (2, True)
