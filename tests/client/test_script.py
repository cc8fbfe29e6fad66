"""The script `callboard`: the server's commands where it is installed, else the client's own."""

import subprocess
import sys
from importlib.metadata import entry_points

import pytest

import backend
from callboard.__main__ import COMMANDS, GROUP, run_client


@pytest.mark.service
def test_installed_server_gives_the_script_its_commands() -> None:
    [script] = entry_points(group="console_scripts", name="callboard")
    assert (script.value, script.dist and script.dist.name) == ("callboard.__main__:main", "callboard-client")
    assert [point.value for point in entry_points(group=GROUP)] == ["callboard_cli.main:app"]
    done = subprocess.run([sys.executable, "-m", "callboard", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"callboard {backend.__version__}\n")


def test_client_alone_names_the_package_that_a_command_of_the_server_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["callboard", "--verbose", "up"])
    assert run_client() == 2
    message = capsys.readouterr().err
    assert "'up' is no command of the client (sync)" in message
    assert message.endswith("pip install callboard\n")


def test_commands_of_the_client_are_those_of_its_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["callboard", "--help"])
    with pytest.raises(SystemExit, match="0"):
        run_client()
    assert f"{{{','.join(COMMANDS)}}}" in capsys.readouterr().out
