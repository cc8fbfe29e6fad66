import pytest
import typer
from typer.testing import CliRunner

from callboard_cli.main import app
from callboard_cli.run_request import run_request, whole_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("12", 12),
        ("1e6", 1_000_000),
        ("2.5e3", 2_500),
        ("1_000", 1_000),
        ("9007199254740993.0", 2**53 + 1),
        ("1e23", 10**23),
    ],
)
def test_agent_steps_may_be_written_with_an_exponent(text: str, number: int) -> None:
    assert whole_number(text) == number


@pytest.mark.parametrize("text", ["1.5", "many", "", "inf", "nan", "1e999999999"])
def test_agent_steps_must_be_whole(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="is not a whole number, such as 1000000 or 1e6"):
        whole_number(text)


def test_invalid_agent_steps_name_the_option() -> None:
    given = ["train", "--algorithm", "paac", "--environment", "CartPole-v1", "--agent-steps", "1.5"]
    result = CliRunner().invoke(app, given)
    assert result.exit_code == 2
    assert '"1.5" is not a whole number' in result.stderr


def test_settings_may_have_the_name_of_their_section() -> None:
    request = run_request(
        "paac",
        "ALE/Pong-v5",
        preset=None,
        stop={"agent_steps": 9},
        settings=["config.n_e=4", "gamma=0.9"],
        environment_settings=["environment_config.frame_skip=2"],
    )
    assert request["config"] == {"n_e": 4, "gamma": 0.9}
    assert request["environment_config"] == {"frame_skip": 2}


TRAIN = ("train", "--algorithm", "paac", "--environment", "CartPole-v1", "--agent-steps", "9")
SWEEP = ("sweeps", "start", *TRAIN[1:])
RANGES = "use one of uniform, log_uniform, integer, log_integer"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*TRAIN, "--set", "n_e=1", "--set", "config.n_e=2"), "--set n_e: is given twice"),
        ((*TRAIN, "--set", "stop.agent_steps=7"), "--set stop.agent_steps: use --agent-steps 7"),
        ((*TRAIN, "--set", "stop.score=7"), "--set stop.score: use --score 7"),
        (
            (*TRAIN, "--set", "stop.agent_step=7"),
            "--set stop.agent_step: use --agent-steps or --wall-time-s or --score",
        ),
        (
            (*SWEEP, "--vary", "beta=1,2", "--set", "stop.score=7"),
            "--set stop.score: use --agent-steps or --wall-time-s",
        ),
        (
            (*TRAIN, "--set", "environment_config.frame_skip=2"),
            "--set environment_config.frame_skip: use --set-environment frame_skip=2",
        ),
        ((*TRAIN, "--set-environment", "config.n_e=2"), "--set-environment config.n_e: use --set n_e=2"),
        ((*SWEEP, "--vary", "beta=1,2", "--vary", "config.beta=3"), "--vary beta: is given twice"),
        (
            ("sweeps", "extend", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "--add", "beta=1", "--add", "beta=2"),
            "--add beta: is given twice",
        ),
        (
            ("sweeps", "extend", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "--add", "beta=normal:0:1"),
            "beta=normal:0:1: expected values separated by commas",
        ),
        (
            (*SWEEP, "--vary", "gamma=0.8,0.9", "--set", "config.gamma=0.7"),
            "--vary gamma: is also set by --set: give it once",
        ),
        (
            (*SWEEP, "--vary", "environment_config.x=1,2", "--set-environment", "x=3"),
            "--vary environment_config.x: is also set by --set-environment: give it once",
        ),
        (
            (*SWEEP, "--vary", "stop.agent_steps=10,20"),
            "--vary stop.agent_steps: is also set by --agent-steps: give it once",
        ),
        (
            (*SWEEP, "--wall-time-s", "9", "--vary", "stop.wall_time_s=10,20"),
            "--vary stop.wall_time_s: is also set by --wall-time-s: give it once",
        ),
        (
            (*SWEEP, "--vary", "gamma=loguniform:0.8:0.9"),
            f'gamma=loguniform:0.8:0.9: unknown range "loguniform"; {RANGES}',
        ),
        (
            (*SWEEP, "--vary", "gamma=normal:0:1"),
            f'gamma=normal:0:1: unknown range "normal"; {RANGES}',
        ),
    ],
)
def test_ambiguous_or_misplaced_setting_is_refused(arguments: tuple[str, ...], message: str) -> None:
    result = CliRunner().invoke(app, arguments)
    assert (result.exit_code, result.stderr) == (2, f"callboard: {message}\n")
