"""`callboard train` and `callboard evaluate`, as a person or a script calls them."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch


def callboard(home: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "backend.cli.main", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "CALLBOARD_HOME": str(home)},
    )


def done(home: Path, *arguments: str) -> tuple[int, str, str]:
    process = callboard(home, *arguments)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


without_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="has a GPU")

CARTPOLE = ("train", "--algorithm", "paac", "--environment", "CartPole-v1", "--set", "evaluation_episodes=0")


def test_json_reports_then_a_summary_and_an_ordinary_run_directory(tmp_path: Path) -> None:
    code, out, err = done(tmp_path, *CARTPOLE, "--agent-steps", "8000", "--json")
    assert (code, err) == (0, "")
    *reports, summary = [json.loads(line) for line in out.splitlines()]
    assert list(summary) == [
        "state",
        "agent_steps",
        "frames",
        "updates",
        "wall_time_s",
        "agent_steps_per_s",
        "episodes",
        "mean_return_100",
        "best_return",
        "run_directory",
    ]
    assert summary["state"] == "finished"
    assert summary["agent_steps"] == summary["frames"] == 8000
    assert summary["updates"] == 8000 // (16 * 5)
    assert reports[-1]["agent_steps"] == 8000
    folder = Path(summary["run_directory"])
    assert folder.parent == tmp_path / "runs"
    assert (folder / "spec.json").exists()
    assert (folder / "attempts" / "1" / "events.log").exists()
    code, out, err = done(tmp_path, "evaluate", str(folder), "--episodes", "3", "--json")
    assert (code, err) == (0, "")
    score = json.loads(out)
    assert score["protocol"] == "plain"
    assert len(score["returns"]) == 3


def test_a_terminal_shows_where_the_run_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    code, out, err = done(tmp_path, *CARTPOLE, "--agent-steps", "2000", "--run-directory", str(folder))
    assert (code, out) == (0, "")
    assert "training paac on CartPole-v1" in err
    assert f"finished: reached 2,000 agent steps; kept in {folder}" in err.replace("\n", " ")


def test_control_c_keeps_a_checkpoint_and_the_same_command_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    command = (*CARTPOLE, "--run-directory", str(folder), "--json")
    first = callboard(tmp_path, *command, "--wall-time-s", "300")
    assert first.stdout is not None
    json.loads(first.stdout.readline())
    first.send_signal(signal.SIGINT)
    out, _ = first.communicate(timeout=60)
    summary = json.loads(out.splitlines()[-1])
    assert first.returncode == 0
    assert summary["state"] == "stopped"
    bound = str(summary["agent_steps"] + 4000)
    code, out, _ = done(tmp_path, *command, "--agent-steps", bound)
    assert code == 0
    assert json.loads(out.splitlines()[0])["agent_steps"] > summary["agent_steps"]
    assert sorted(p.name for p in (folder / "attempts").iterdir()) == ["1", "2"]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("--algorithm", "ppo", "--environment", "CartPole-v1"), "algorithm"),
        (("--algorithm", "paac", "--environment", "ALE/Poong-v5"), "environment"),
        (("--algorithm", "paac", "--environment", "os:system"), "environment"),
        ((*CARTPOLE[1:], "--set", "n_e=1000000000"), "config.n_e"),
        ((*CARTPOLE[1:], "--set", "n_environments=3"), "config.n_environments"),
        ((*CARTPOLE[1:], "--set", "gamma=two"), "config.gamma"),
        ((*CARTPOLE[1:], "--set", "gamma=NaN"), "config.gamma"),
        ((*CARTPOLE[1:], "--set", "gamma"), "--set gamma"),
        ((*CARTPOLE[1:], "--set-environment", "noop_max=3"), "environment_config.noop_max"),
        ((*CARTPOLE[1:], "--seed", "-1"), "seed"),
        ((*CARTPOLE[1:], "--device", "tpu"), "device"),
        pytest.param((*CARTPOLE[1:], "--device", "cuda"), "device", marks=without_gpu),
        ((*CARTPOLE[1:], "--preset", "one-gpu-farm"), "preset"),
        ((*CARTPOLE[1:], "--algorithm", "a3c", "--preset", "labyrinth"), "preset"),
        ((*CARTPOLE[1:], "--run-directory", "/proc/nowhere"), "run_directory"),
    ],
)
def test_bad_input_is_one_line_that_names_the_field(
    tmp_path: Path, arguments: tuple[str, ...], field: str
) -> None:
    code, out, err = done(tmp_path, "train", *arguments, "--agent-steps", "1000")
    assert (code, out) == (2, "")
    assert err.startswith(f"callboard: {field}")
    assert len(err.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_a_run_without_a_bound_is_refused(tmp_path: Path) -> None:
    code, _, err = done(tmp_path, *CARTPOLE)
    assert code == 2
    assert "stop: give at least one bound" in err


def test_another_runs_directory_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    done(tmp_path, *CARTPOLE, "--agent-steps", "500", "--run-directory", str(folder))
    before = (folder / "spec.json").read_text()
    code, _, err = done(
        tmp_path, *CARTPOLE, "--agent-steps", "500", "--seed", "3", "--run-directory", str(folder)
    )
    assert code == 2
    assert "holds a run with other settings" in err
    assert (folder / "spec.json").read_text() == before


def test_a_torn_run_directory_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "spec.json").write_text('{"algorithm": "pa')
    for command in (
        (*CARTPOLE, "--agent-steps", "500", "--run-directory", str(folder)),
        ("evaluate", str(folder)),
    ):
        code, out, err = done(tmp_path, *command)
        assert (code, out) == (2, "")
        assert err.startswith("callboard: run_directory:")
        assert "no readable spec.json" in err
    assert [path.name for path in folder.iterdir()] == ["spec.json"]


def test_evaluate_names_what_is_missing(tmp_path: Path) -> None:
    code, _, err = done(tmp_path, "evaluate", str(tmp_path / "absent"))
    assert code == 2
    assert err.startswith("callboard: run_directory:")
    folder = tmp_path / "mine"
    done(tmp_path, *CARTPOLE, "--agent-steps", "500", "--run-directory", str(folder))
    code, _, err = done(tmp_path, "evaluate", str(folder), "--checkpoint", "../../etc/passwd")
    assert code == 2
    assert err.startswith("callboard: checkpoint:")
