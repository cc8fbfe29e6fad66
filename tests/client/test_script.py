"""The script `callboard`: the server's commands where it is installed, else the client's own."""

import json
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import backend
import callboard
from callboard.__main__ import GROUP, run_client
from callboard.commands import COMMANDS
from tests.client.support import Target


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
    assert f"'up' is no command of the client ({', '.join(COMMANDS)})" in message
    assert message.endswith("the package callboard, the other wheel of the server's release\n")


def test_commands_of_the_client_are_those_of_its_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["callboard", "--help"])
    with pytest.raises(SystemExit, match="0"):
        run_client()
    assert f"{{{','.join(COMMANDS)}}}" in capsys.readouterr().out


@pytest.mark.service
def test_client_alone_lists_shows_stops_and_imports_runs(
    target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def called(*arguments: object, status: int = 0) -> str:
        monkeypatch.setattr("sys.argv", ["callboard", *map(str, arguments)])
        assert run_client() == status
        return capsys.readouterr().out

    (tmp_path / "progress.csv").write_text("step,rollout/episode_return\n1,5\n2,7\n")
    options = ["--environment=CartPole-v1", "--algorithm=mine", "--seed=4", "--tag=a", "--tag=b"]
    done = json.loads(called("import", "csv", tmp_path, *options, "--json").splitlines()[0])
    assert (done["points"], done["problem"]) == (2, None)
    assert "unchanged" in called("import", "csv", tmp_path, *options)
    called("import", "csv", tmp_path / "none.csv", status=2)
    [run] = json.loads(called("runs", "list", "--json", "--filter", "tag:b"))
    assert (run["id"], run["seed"], run["environment"]) == (done["run"], 4, "CartPole-v1")
    head, row = called("runs", "list").splitlines()
    assert head.split() == ["id", "name", "state", "agent", "steps", *head.split()[5:]]
    assert row.startswith(f"{run['id']}  ")
    assert f"{'state':28} finished" in called("runs", "show", run["id"])
    called("runs", "show", "0" * 26, status=2)
    started = callboard.connect().start("paac", "CartPole-v1", stop={"agent_steps": 1_000_000})
    assert json.loads(called("runs", "stop", started[0].id, "--json"))["state"] == "stopped"


@pytest.mark.service
def test_client_alone_changes_compares_and_exports_runs(
    target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def called(*arguments: object, status: int = 0) -> str:
        monkeypatch.setattr("sys.argv", ["callboard", *map(str, arguments)])
        assert run_client() == status
        printed = capsys.readouterr()
        return printed.out or printed.err

    ids = []
    for seed, lr in ((0, 0.1), (1, 0.1), (0, 0.2), (1, 0.2)):
        with callboard.init(algorithm="a", environment="e", seed=seed, config={"lr": lr}) as run:
            for step in range(1, 5):
                run.episode(100 * lr + seed, 10, agent_steps=step)
        ids.append(run.id)
    assert called("runs", "tag", *ids, "--add", "night", "--remove", "x") == "".join(
        f"{run_id}  night\n" for run_id in ids
    )
    assert "not decided" in called("runs", "compare", "--filter", "tag:night")
    assert json.loads(called("runs", "compare", *ids, "--json"))["improvements"][0]["better"] is None
    assert "no run matches" in called("runs", "compare", "--filter", "tag:none", status=2)
    file = tmp_path / "points.csv"
    assert called("runs", "export", *ids, "--output", file) == f"{file}\n"
    assert "config.lr" in file.read_text().splitlines()[0]
    assert "file: must end in .csv" in called("runs", "export", *ids, "--output", "x.xlsx", status=2)
    lines = called("runs", "log", ids[0], "--follow").splitlines()
    assert lines == called("runs", "log", ids[0], "--last", 50).splitlines()
    assert len(called("runs", "archive", *ids[:2]).splitlines()) == 2
    assert len(called("runs", "list").splitlines()) == 3
    assert called("runs", "archive", "--undo", ids[0]).startswith(str(ids[0]))
    assert called("runs", "delete", *ids[:2]) == "".join(f"{run_id}  deleted: \n" for run_id in ids[:2])
    assert called("hosts").split()[0] == "host"
    assert "must be NAME=VALUE" in called("runs", "fork", ids[2], "--set", "lr", status=2)
    assert "trained elsewhere" in called("runs", "fork", ids[2], status=2)
    [token] = json.loads(called("token", "list", "--json"))
    assert token["role"] == "operator"
    assert "must be the id of a token" in called("token", "revoke", "../x", status=2)
    assert called("token", "revoke", token["id"]) == f"{token['id']}\n"
    called("runs", "list", status=2)
