import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from backend.cli.doctor import CHECKS
from backend.cli.main import app
from tests.workers.support import until
from workers.context import Context
from workers.host_agent import HostAgent

pytestmark = pytest.mark.service

Doctor = Callable[..., tuple[Result, dict[str, dict[str, object]]]]


@pytest.fixture
def doctor(tmp_path: Path, database_url: str, redis_url: str) -> Doctor:
    """Runs the checks; gives the result, and the findings by check."""
    pages = tmp_path / "dist"
    pages.mkdir()
    (pages / "index.html").write_text("<!doctype html>")
    here = {
        "CALLBOARD_HOME": str(tmp_path / "home"),
        "CALLBOARD_DATABASE_URL": database_url,
        "CALLBOARD_REDIS_URL": redis_url,
        "CALLBOARD_FRONTEND_DIR": str(pages),
        "CALLBOARD_HOST_NAME": "a",
    }

    def run(*checks: str, **changed: str) -> tuple[Result, dict[str, dict[str, object]]]:
        options = [option for check in checks for option in ("--check", check)]
        result = CliRunner().invoke(app, ["doctor", "--json", *options], env=here | changed)
        return result, {finding["check"]: finding for finding in json.loads(result.output)}

    return run


def test_all_is_well(doctor: Doctor, context: Context) -> None:
    agent = HostAgent(context)
    agent.start()
    until(lambda: doctor("worker")[0].exit_code == 0)
    result, findings = doctor()
    agent.stop(8)
    assert list(findings) == list(CHECKS)
    assert [finding for finding in findings.values() if not finding["ok"]] == []
    assert result.exit_code == 0


@pytest.mark.parametrize(
    ("check", "changed", "told"),
    [
        ("home", {"CALLBOARD_HOME": "/proc/nowhere"}, "CALLBOARD_HOME"),
        ("database", {"CALLBOARD_DATABASE_URL": "sqlite:////proc/no.sqlite3"}, "unable to open"),
        ("redis", {"CALLBOARD_REDIS_URL": "unix:///nowhere.sock"}, "CALLBOARD_REDIS_URL"),
        ("artifacts", {"CALLBOARD_ARTIFACTS_URL": "file:///proc/nowhere"}, "/proc/nowhere"),
        ("artifacts", {"CALLBOARD_ARTIFACTS_URL": "nosuch://x"}, "nosuch"),
        ("pages", {"CALLBOARD_FRONTEND_DIR": "/nowhere"}, "make up"),
        ("worker", {"CALLBOARD_HOST_NAME": "b"}, "b: never heard of"),
    ],
)
def test_what_is_wrong_is_told(doctor: Doctor, check: str, changed: dict[str, str], told: str) -> None:
    result, findings = doctor(check, **changed)
    assert result.exit_code == 1
    assert list(findings) == [check]
    assert told in str(findings[check]["told"])


def test_a_database_that_was_never_upgraded(doctor: Doctor, tmp_path: Path) -> None:
    _, findings = doctor("database", CALLBOARD_DATABASE_URL=f"sqlite:///{tmp_path / 'empty.sqlite3'}")
    assert "callboard db upgrade" in str(findings["database"]["told"])


def test_for_people(doctor: Doctor, tmp_path: Path) -> None:
    here = {"CALLBOARD_HOME": str(tmp_path)}
    result = CliRunner().invoke(app, ["doctor", "--check", "python", "--check", "redis"], env=here)
    assert result.exit_code == 1
    good, bad = result.output.splitlines()
    assert good.startswith("ok     python")
    assert bad.startswith("WRONG  redis")
    assert CliRunner().invoke(app, ["doctor", "--check", "luck"]).exit_code == 2
