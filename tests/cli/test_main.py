import pytest
from typer.testing import CliRunner

from backend.cli.main import app


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"LEASE_S": "inf"}, "CALLBOARD_LEASE_S: Input should be a finite number"),
        ({"RECONCILE_INTERVAL_S": "nan"}, "CALLBOARD_RECONCILE_INTERVAL_S: Input should be greater than 0"),
        (
            {"RECONCILE_INTERVAL_S": "6"},
            "CALLBOARD_RECONCILE_INTERVAL_S: at most a third of CALLBOARD_LEASE_S, which is 15: a worker "
            "that renews less often loses what it holds, and takes back nothing that others have lost",
        ),
        ({"PORT": "70000"}, "CALLBOARD_PORT: Input should be less than or equal to 65535"),
    ],
)
def test_wrong_settings_are_told_in_one_line(given: dict[str, str], told: str) -> None:
    env = {f"CALLBOARD_{name}": value for name, value in given.items()}
    result = CliRunner().invoke(app, ["db", "upgrade"], env=env)
    assert (result.exit_code, result.stderr) == (2, f"callboard: {told}\n")


def test_settings_that_fit_each_other_are_taken() -> None:
    env = {"CALLBOARD_LEASE_S": "30", "CALLBOARD_RECONCILE_INTERVAL_S": "10"}
    assert CliRunner().invoke(app, ["db", "--help"], env=env).exit_code == 0
