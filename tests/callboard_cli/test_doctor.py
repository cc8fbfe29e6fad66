import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from backend.coordination.context import Context
from callboard_cli.doctor import CHECKS
from callboard_cli.main import app
from tests.support.waiting import until
from workers.host_agent import HostAgent

pytestmark = pytest.mark.service

Doctor = Callable[..., tuple[Result, dict[str, dict[str, object]]]]


@pytest.fixture
def doctor(tmp_path: Path, database_url: str, redis_url: str) -> Doctor:
    """Return a function that runs the checks and returns the result and the findings by check."""
    (tmp_path / "worker").mkdir()
    pages = tmp_path / "dist"
    pages.mkdir()
    (pages / "index.html").write_text("<!doctype html>")
    here = {
        "CALLBOARD_HOME": str(tmp_path / "worker"),
        "CALLBOARD_DATABASE_URL": database_url,
        "CALLBOARD_REDIS_URL": redis_url,
        "CALLBOARD_FRONTEND_DIR": str(pages),
        "CALLBOARD_HOST_NAME": "a",
    }

    def run(*checks: str, **changed: str) -> tuple[Result, dict[str, dict[str, object]]]:
        options = [option for check in checks for option in ("--check", check)]
        result = CliRunner().invoke(app, ["doctor", "--json", *options], env=here | changed)
        return result, {finding["check"]: finding for finding in json.loads(result.stdout)}

    return run


@pytest.mark.long
def test_doctor_passes_every_check_of_a_running_installation(doctor: Doctor, context: Context) -> None:
    agent = HostAgent(context)
    agent.start()
    until(lambda: doctor("worker")[0].exit_code == 0)
    result, findings = doctor()
    agent.stop(8)
    assert list(findings) == list(CHECKS)
    assert [finding for finding in findings.values() if not finding["ok"]] == []
    assert result.exit_code == 0


def test_doctor_reports_a_worker_of_another_home(doctor: Doctor, context: Context, tmp_path: Path) -> None:
    agent = HostAgent(context)
    agent.start()
    until(lambda: doctor("worker")[0].exit_code == 0)
    result, findings = doctor("worker", CALLBOARD_HOME=str(tmp_path))
    agent.stop(8)
    assert result.exit_code == 1
    assert "a worker of another home runs under this name" in str(findings["worker"]["message"])


def test_doctor_says_when_the_worker_stopped(doctor: Doctor, context: Context) -> None:
    agent = HostAgent(context)
    agent.start()
    until(lambda: doctor("worker")[0].exit_code == 0)
    agent.stop(8)
    assert "a: stopped 2" in str(doctor("worker")[1]["worker"]["message"])


@pytest.mark.parametrize(
    ("check", "changed", "message"),
    [
        ("home", {"CALLBOARD_HOME": "/proc"}, "set CALLBOARD_HOME to another folder"),
        (
            "variables",
            {"CALLBOARD_HOSTNAME": "b"},
            "CALLBOARD_HOSTNAME is not a setting; did you mean CALLBOARD_HOST_NAME?",
        ),
        ("database", {"CALLBOARD_DATABASE_URL": "sqlite:////proc/no.sqlite3"}, "/proc/no.sqlite3"),
        ("redis", {"CALLBOARD_REDIS_URL": "unix:///nowhere.sock"}, "CALLBOARD_REDIS_URL"),
        (
            "redis",
            {"CALLBOARD_REDIS_URL": "redis://lab:s@cret@127.0.0.1:1/0?password=secret"},
            "redis://***@127.0.0.1:1/0?password=***: no answer",
        ),
        ("artifacts", {"CALLBOARD_ARTIFACTS_URL": "file:///proc/nowhere"}, "/proc/nowhere"),
        ("artifacts", {"CALLBOARD_ARTIFACTS_URL": "gcs://nowhere"}, "install gcsfs"),
        ("artifacts", {"CALLBOARD_ARTIFACTS_URL": "gcs://lab:secret@nowhere"}, "gcs://***@nowhere: "),
        ("pages", {"CALLBOARD_FRONTEND_DIR": "/nowhere"}, "make up"),
        ("worker", {"CALLBOARD_HOST_NAME": "b"}, "b: no heartbeat yet"),
    ],
)
def test_doctor_reports_failing_check_with_reason(
    doctor: Doctor, check: str, changed: dict[str, str], message: str
) -> None:
    result, findings = doctor(check, **changed)
    assert result.exit_code == 1
    assert list(findings) == [check]
    assert message in str(findings[check]["message"])


@pytest.mark.parametrize(("check", "printed"), [("variables", False), ("home", True)])
def test_doctor_names_a_misspelt_variable_once(doctor: Doctor, check: str, printed: bool) -> None:
    result, _ = doctor(check, CALLBOARD_HOSTNAME="b")
    message = "CALLBOARD_HOSTNAME is not a setting; did you mean CALLBOARD_HOST_NAME?"
    assert result.stderr == (f"callboard: {message}\n" if printed else "")


@pytest.mark.parametrize("check", ["database", "worker"])
def test_doctor_names_upgrade_command_for_empty_database(doctor: Doctor, tmp_path: Path, check: str) -> None:
    _, findings = doctor(check, CALLBOARD_DATABASE_URL=f"sqlite:///{tmp_path / 'empty.sqlite3'}")
    assert "callboard db upgrade" in str(findings[check]["message"])


def test_doctor_does_not_create_a_missing_home(doctor: Doctor, tmp_path: Path) -> None:
    _, findings = doctor("home", "artifacts", CALLBOARD_HOME=str(tmp_path / "mistyped"))
    for finding in findings.values():
        assert "mistyped does not exist: correct CALLBOARD_HOME" in str(finding["message"])
    assert not (tmp_path / "mistyped").exists()


def test_doctor_without_json_prints_one_line_per_check(doctor: Doctor, tmp_path: Path) -> None:
    here = {"CALLBOARD_HOME": str(tmp_path)}
    result = CliRunner().invoke(app, ["doctor", "--check", "python", "--check", "redis"], env=here)
    assert result.exit_code == 1
    good, bad = result.output.splitlines()
    assert good.startswith("ok     python")
    assert bad.startswith("FAIL   redis")
    assert CliRunner().invoke(app, ["doctor", "--check", "luck"]).exit_code == 2
