"""`callboard train` and `callboard evaluate`, called as commands."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from backend.specs.algorithms import ALGORITHMS
from backend.specs.environments.custom import FILE_VARIABLE
from backend.specs.events import EvaluationEvent
from backend.specs.run import parse_run_spec
from callboard_cli.main import app
from callboard_cli.run_directory import occupying
from callboard_cli.training_terminal import TrainingTerminal
from tests.support import custom_environment
from tests.support.waiting import PATIENCE_S


def callboard(home: Path, *arguments: str, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "callboard_cli.main", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "CALLBOARD_HOME": str(home)},
        **options,
    )


def done(home: Path, *arguments: str) -> tuple[int, str, str]:
    process = callboard(home, *arguments)
    out, err = process.communicate(timeout=PATIENCE_S)
    return process.returncode, out, err


without_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="has a GPU")

PAAC = ("train", "--algorithm", "paac", "--environment", "CartPole-v1")
CARTPOLE = (*PAAC, "--set", "evaluation_episodes=0", "--set", "n_w=1")
GORILA_ON_PONG = ("--algorithm", "gorila_dqn", "--environment", "ALE/Pong-v5")


@pytest.mark.long
@pytest.mark.service
def test_train_json_prints_reports_evaluations_and_summary_and_writes_run_directory(tmp_path: Path) -> None:
    scored = ("--set", "evaluation_episodes=2", "--set", "evaluation_interval_agent_steps=4000")
    code, out, err = done(tmp_path, *PAAC, *scored, "--agent-steps", "8000", "--json")
    assert (code, err) == (0, "")
    *lines, summary = [json.loads(line) for line in out.splitlines()]
    reports = [line for line in lines if line["type"] == "report"]
    evaluations = [line for line in lines if line["type"] == "evaluation"]
    assert len(reports) + len(evaluations) == len(lines)
    assert [(evaluation["agent_steps"], len(evaluation["returns"])) for evaluation in evaluations] == [
        (4000, 2),
        (8000, 2),
    ]
    assert {"protocol", "seed", "mean_return", "lengths_frames", "checkpoint"} <= set(evaluations[0])
    assert summary["evaluation"] | {"type": "evaluation"} == evaluations[-1]
    assert len({report["agent_steps"] for report in reports}) < len(reports), "one has no new agent steps"
    assert all(report["agent_steps_per_s"] > 0 for report in reports)
    assert list(summary) == [
        "type",
        "state",
        "reason",
        "agent_steps",
        "frames",
        "updates",
        "wall_time_s",
        "agent_steps_per_s",
        "episodes",
        "mean_return_100",
        "best_return",
        "evaluation",
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
    assert (score["protocol"], score["seed"], score["max_frames"]) == ("plain", 0, None)
    # Of CartPole, a return is the episode's length: each belongs to its episode.
    assert score["returns"] == score["lengths_frames"]
    assert len(set(score["seeds"])) == len(score["returns"]) == 3
    assert score["environment_config"] == {"max_episode_agent_steps": 500}
    options = ("--episodes", "3", "--seed", "4", "--protocol", "plain_greedy", "--json")
    code, out, err = done(tmp_path, "evaluate", str(folder), *options)
    assert (code, err) == (0, "")
    other = json.loads(out)
    assert (other["protocol"], other["seed"]) == ("plain_greedy", 4)
    assert not set(other["seeds"]) & set(score["seeds"])
    code, out, err = done(tmp_path, "evaluate", str(folder), "--protocol", "noop_starts")
    assert (code, out) == (2, "")
    assert 'protocol: CartPole-v1 has no protocol "noop_starts": use one of plain, plain_greedy' in err


def test_train_json_summary_is_null_where_nothing_ended_or_was_evaluated(tmp_path: Path) -> None:
    command = (*CARTPOLE, "--agent-steps", "80", "--json")
    trained = CliRunner().invoke(app, command, env={"CALLBOARD_HOME": str(tmp_path)})
    assert trained.exit_code == 0, trained.output
    summary = json.loads(trained.stdout.splitlines()[-1])
    assert (summary["type"], summary["agent_steps"], summary["episodes"]) == ("summary", 80, 0)
    assert [summary[name] for name in ("mean_return_100", "best_return", "evaluation")] == [None] * 3


@pytest.mark.service
def test_train_json_prints_each_evaluation_and_the_last_in_its_summary(tmp_path: Path) -> None:
    scored = (
        "--set",
        "evaluation_episodes=1",
        "--set",
        "evaluation_interval_agent_steps=80",
        "--set",
        "n_w=1",
    )
    home = {"CALLBOARD_HOME": str(tmp_path)}
    trained = CliRunner().invoke(app, (*PAAC, *scored, "--agent-steps", "160", "--json"), env=home)
    assert trained.exit_code == 0, trained.output
    *lines, summary = map(json.loads, trained.stdout.splitlines())
    evaluations = [line for line in lines if line["type"] == "evaluation"]
    assert [(evaluation["agent_steps"], len(evaluation["returns"])) for evaluation in evaluations] == [
        (80, 1),
        (160, 1),
    ]
    assert summary["evaluation"] | {"type": "evaluation"} == evaluations[-1]


@pytest.mark.service
def test_evaluate_json_has_seeds_lengths_and_the_cap_of_the_protocol(tmp_path: Path) -> None:
    folder = tmp_path / "pong"
    small = [
        f"--set={assignment}" for assignment in ("n_e=2", "n_w=1", "network=compact", "evaluation_episodes=0")
    ]
    command = ["train", "--algorithm=paac", "--environment=ALE/Pong-v5", *small, "--agent-steps=20"]
    trained = CliRunner().invoke(app, [*command, f"--run-directory={folder}"])
    assert trained.exit_code == 0, trained.output
    options = ["--episodes=1", "--seed=4", "--protocol=noop_starts_5min_greedy", "--json"]
    evaluated = CliRunner().invoke(app, ["evaluate", str(folder), *options])
    assert evaluated.exit_code == 0, evaluated.output
    score = json.loads(evaluated.stdout)
    assert (score["protocol"], score["seed"], score["max_frames"]) == ("noop_starts_5min_greedy", 4, 18_000)
    assert len(score["returns"]) == len(score["seeds"]) == len(score["lengths_frames"]) == 1
    assert score["returns"][0] >= -21
    assert 0 < score["lengths_frames"][0] <= 18_000


@pytest.mark.long
@pytest.mark.service
def test_train_prints_run_directory_which_rejects_other_settings_and_checkpoints(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    code, out, err = done(tmp_path, *CARTPOLE, "--agent-steps", "2000", "--run-directory", str(folder))
    assert (code, out) == (0, "")
    assert "training paac on CartPole-v1" in err
    last = err.replace("\n", " ").partition("finished: ")[2]
    assert re.fullmatch(
        rf"reached 2,000 agent steps; mean return of the last 100 episodes [\d.]+; saved in {folder} ?", last
    ), err

    before = (folder / "spec.json").read_text()
    for other, message in [
        (("--seed", "3"), f"run_directory: {folder} contains another run: seed is 0, not 3: choose"),
        (
            ("--set", "n_e=7"),
            f"run_directory: {folder} contains another run: config.n_e is 16, not 7: choose",
        ),
        ((), "stop.agent_steps: the run has completed 2,000 already: set a higher limit"),
    ]:
        command = (*CARTPOLE, "--agent-steps", "500", *other, "--run-directory", str(folder))
        refused = CliRunner().invoke(app, command)
        assert refused.exit_code == 2
        assert refused.stderr.startswith(f"callboard: {message}")
        assert (folder / "spec.json").read_text() == before
    refused = CliRunner().invoke(app, ["evaluate", str(folder), "--checkpoint", "../../etc/passwd"])
    assert refused.exit_code == 2
    assert refused.stderr.startswith("callboard: checkpoint:")


def test_second_command_in_a_run_directory_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    arguments = [*CARTPOLE, "--agent-steps", "50", "--run-directory", str(folder)]
    with occupying(folder):
        refused = CliRunner().invoke(app, arguments, env={"CALLBOARD_HOME": str(tmp_path)})
        assert (refused.exit_code, list(folder.iterdir())) == (2, [])
        assert refused.output.startswith(f"callboard: run_directory: another process trains in {folder}: ")
    assert not folder.exists()


@pytest.mark.long
@pytest.mark.service
def test_interrupted_train_is_resumed_by_same_command(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    command = (*CARTPOLE, "--run-directory", str(folder), "--json")
    first = callboard(tmp_path, *command, "--wall-time-s", "300")
    assert first.stdout is not None
    json.loads(first.stdout.readline())
    first.send_signal(signal.SIGINT)
    out, _ = first.communicate(timeout=PATIENCE_S)
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
        (("--algorithm", "none", "--environment", "CartPole-v1"), "algorithm"),
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
        ((*CARTPOLE[1:], "--algorithm", "gorila_dqn", "--preset", "two-cpu-cores"), "preset"),
        ((*CARTPOLE[1:], "--run-directory", "/proc/nowhere"), "run_directory"),
        ((*GORILA_ON_PONG, "--set", "n_actors=1024", "--set", "n_learners=1024"), "config: it needs about"),
    ],
)
def test_train_with_invalid_input_prints_one_line_with_field(
    tmp_path: Path, arguments: tuple[str, ...], field: str
) -> None:
    refused = CliRunner().invoke(
        app, ["train", *arguments, "--agent-steps", "1000"], env={"CALLBOARD_HOME": str(tmp_path)}
    )
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr.startswith(f"callboard: {field}")
    assert len(refused.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_train_names_file_of_custom_environments_that_is_unset_or_lacks_the_id(tmp_path: Path) -> None:
    def refused(environment: str, **variables: str) -> str:
        command = ["train", "--algorithm", "paac", "--environment", environment, "--agent-steps", "1000"]
        env = {"CALLBOARD_HOME": str(tmp_path / "home")} | variables
        result = CliRunner().invoke(app, command, env=env)
        assert result.exit_code == 2
        return result.stderr

    unset = refused("Custom/Line-v0")
    assert unset == (
        f"callboard: environment: Custom/Line-v0: {FILE_VARIABLE} is not set, and no distribution has it; "
        "this host has no custom environments\n"
    )
    file = custom_environment.write(tmp_path)
    mistyped = refused("Custom/Lien-v0", **{FILE_VARIABLE: str(file)})
    assert mistyped == (
        f"callboard: environment: Custom/Lien-v0: not in {file}, and no distribution has it; this host has "
        "Custom/Line-v0, Custom/Frames-v1\n"
    )


@pytest.mark.service
def test_train_refuses_a_custom_environment_with_unsupported_observations_in_one_line(tmp_path: Path) -> None:
    file = custom_environment.write(tmp_path, custom_environment.UNSUITABLE)
    (tmp_path / "beside_the_file.py").write_text(custom_environment.BESIDE_THE_FILE)
    command = ["train", "--algorithm", "paac", "--environment", "Custom/Dict-v0", "--agent-steps", "1000"]
    env = {"CALLBOARD_HOME": str(tmp_path / "home"), FILE_VARIABLE: str(file)}
    result = CliRunner().invoke(app, command, env=env)
    assert result.exit_code == 2
    [line] = result.stderr.splitlines()
    assert line.startswith("callboard: environment: Custom/Dict-v0: observation space Dict(")


@pytest.mark.service
def test_evaluate_names_an_environment_that_is_not_known_here(tmp_path: Path) -> None:
    folder, home = tmp_path / "run", {"CALLBOARD_HOME": str(tmp_path / "home")}
    known = home | {FILE_VARIABLE: str(custom_environment.write(tmp_path))}
    command = ["train", "--algorithm", "paac", "--environment", "Custom/Line-v0", "--set", "n_w=1"]
    command += ["--agent-steps", "80", "--set", "evaluation_episodes=0", "--run-directory", str(folder)]
    trained = CliRunner().invoke(app, command, env=known)
    assert trained.exit_code == 0, trained.output
    refused = CliRunner().invoke(app, ["evaluate", str(folder), "--episodes", "1"], env=home)
    assert (refused.exit_code, refused.stdout) == (2, "")
    [line] = refused.stderr.splitlines()
    assert line.startswith("callboard: environment: ")
    assert "Custom/Line-v0" in line


@pytest.mark.service
def test_train_on_a_full_disk_names_the_command_that_resumes(tmp_path: Path) -> None:
    command = (*CARTPOLE, "--agent-steps", "20000", "--run-directory", str(tmp_path / "run"))
    limited = callboard(
        tmp_path, *command, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))
    )
    _, err = limited.communicate(timeout=PATIENCE_S)
    assert limited.returncode == 1
    resume = f"once that is repaired, resume with --run-directory {tmp_path / 'run'}"
    assert f"callboard: run_directory: File too large; {resume}\n" in err
    assert "Traceback" not in err
    assert done(tmp_path, *command)[0] == 0


def test_train_help_lists_every_algorithm() -> None:
    text = " ".join(CliRunner().invoke(app, ["train", "--help"]).stdout.split())
    assert f"Algorithm id: {', '.join(ALGORITHMS)}." in text


def test_train_without_stop_bound_is_rejected(tmp_path: Path) -> None:
    refused = CliRunner().invoke(app, CARTPOLE, env={"CALLBOARD_HOME": str(tmp_path)})
    assert refused.exit_code == 2
    assert refused.stderr == "callboard: set at least one limit: --agent-steps or --wall-time-s or --score\n"


@pytest.mark.service
def test_resume_with_larger_bound_keeps_or_extends_an_annealed_learning_rate(tmp_path: Path) -> None:
    command = (
        *CARTPOLE,
        "--set",
        "learning_rate_schedule=linear",
        "--run-directory",
        str(tmp_path / "mine"),
        "--agent-steps",
    )

    def trained(*arguments: str) -> tuple[int | None, str]:
        result = CliRunner().invoke(app, [*command, *arguments], env={"CALLBOARD_HOME": str(tmp_path)})
        assert result.exit_code == 0, result.output
        spec = json.loads((tmp_path / "mine" / "spec.json").read_text())
        return spec["annealing_agent_steps"], result.stderr

    refused = CliRunner().invoke(
        app, [*command, "400", "--annealing", "keep"], env={"CALLBOARD_HOME": str(tmp_path)}
    )
    assert (refused.exit_code, refused.stderr.startswith("callboard: annealing: ")) == (2, True)
    assert trained("400")[0] is None
    kept, reported = trained("800", "--annealing", "keep")
    assert (kept, "see --annealing" in reported) == (400, False)
    extended, reported = trained("1200", "--annealing", "extend")
    assert extended is None
    assert "at 800 it changes from 0% to 33% of its initial value; see --annealing" in reported


@pytest.mark.long
@pytest.mark.service
@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ('{"algorithm": "pa', "Unterminated string"),
        ('{"algorithm": "pa"}', 'algorithm: unknown algorithm "pa"'),
    ],
)
def test_train_and_evaluate_reject_directory_with_invalid_spec(
    tmp_path: Path, spec: str, reason: str
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "spec.json").write_text(spec)
    for command in (
        (*CARTPOLE, "--agent-steps", "500", "--run-directory", str(folder)),
        ("evaluate", str(folder)),
    ):
        code, out, err = done(tmp_path, *command)
        assert (code, out) == (2, "")
        assert err.startswith("callboard: run_directory:")
        assert f"spec.json in it is not valid: {reason}" in err
    assert [path.name for path in folder.iterdir()] == ["spec.json"]


def test_evaluate_names_missing_directory(tmp_path: Path) -> None:
    refused = CliRunner().invoke(app, ["evaluate", str(tmp_path / "absent")])
    folder = tmp_path / "absent"
    message = f"callboard: run_directory: {folder} does not exist: check the path\n"
    assert (refused.exit_code, refused.stderr) == (2, message)
    folder.mkdir()
    refused = CliRunner().invoke(app, ["evaluate", str(folder)])
    message = f"callboard: run_directory: {folder} is not the directory of a run: it has no spec.json\n"
    assert (refused.exit_code, refused.stderr) == (2, message)


def test_evaluation_in_the_summary_is_of_the_last_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    spec = parse_run_spec({"algorithm": "dqn", "environment": "CartPole-v1", "stop": {"agent_steps": 2_000}})

    def evaluation(agent_steps: int, checkpoint: str) -> EvaluationEvent:
        return EvaluationEvent(
            protocol="plain",
            agent_steps=agent_steps,
            frames=agent_steps,
            wall_time_s=1.0,
            checkpoint=checkpoint,
            seed=1,
            returns=[1.0],
            lengths_frames=[1],
            mean_return=1.0,
        )

    terminal = TrainingTerminal(spec, as_json=True)
    # At its end DQN evaluates its best parameters again.
    for event in (evaluation(1_000, "best"), evaluation(2_000, "last"), evaluation(2_000, "best")):
        terminal.on_event(event)
    assert terminal.evaluation is not None
    assert terminal.evaluation.checkpoint == "last"
    assert len(capsys.readouterr().out.splitlines()) == 3
