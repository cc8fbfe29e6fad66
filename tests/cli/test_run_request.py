import pytest
import typer
from typer.testing import CliRunner

from backend.cli.main import app
from backend.cli.run_request import run_request, whole_number


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
        stop={},
        settings=["config.n_e=4", "gamma=0.9"],
        environment_settings=["environment_config.frame_skip=2"],
    )
    assert request["config"] == {"n_e": 4, "gamma": 0.9}
    assert request["environment_config"] == {"frame_skip": 2}


def test_setting_that_is_given_twice_is_refused() -> None:
    given = ["train", "--algorithm", "paac", "--environment", "CartPole-v1", "--agent-steps", "9"]
    result = CliRunner().invoke(app, [*given, "--set", "n_e=1", "--set", "config.n_e=2"])
    assert (result.exit_code, result.stderr) == (2, "callboard: --set n_e: is given twice\n")


def test_setting_that_a_sweep_varies_cannot_be_set_too() -> None:
    given = ["sweeps", "start", "--algorithm", "paac", "--environment", "CartPole-v1", "--agent-steps", "9"]
    result = CliRunner().invoke(app, [*given, "--vary", "gamma=0.8,0.9", "--set", "gamma=0.7"])
    message = "callboard: --vary gamma: is also set by --set: give it once\n"
    assert (result.exit_code, result.stderr) == (2, message)


def test_misspelt_range_of_a_sweep_is_refused() -> None:
    given = ["sweeps", "start", "--algorithm", "paac", "--environment", "CartPole-v1", "--agent-steps", "9"]
    result = CliRunner().invoke(app, [*given, "--vary", "gamma=loguniform:0.8:0.9"])
    message = 'gamma=loguniform:0.8:0.9: unknown range "loguniform"; did you mean log_uniform?'
    assert (result.exit_code, result.stderr) == (2, f"callboard: {message}\n")
