import pytest
from typer.testing import CliRunner

from backend.cli.main import app


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"LEASE_S": "inf"}, "CALLBOARD_LEASE_S: Input should be a finite number"),
        (
            {"HOME": ""},
            "CALLBOARD_HOME: it is set but empty, which would mean the current folder; set it to a folder, "
            "or unset it for ~/.callboard",
        ),
        ({"RECONCILE_INTERVAL_S": "nan"}, "CALLBOARD_RECONCILE_INTERVAL_S: Input should be greater than 0"),
        (
            {"RECONCILE_INTERVAL_S": "6"},
            "CALLBOARD_RECONCILE_INTERVAL_S: must be at most a third of CALLBOARD_LEASE_S (15): otherwise "
            "leases expire between renewals, and expired leases of other workers are found too late",
        ),
        (
            {"OIDC_ROLES": "lab=operator"},
            'CALLBOARD_OIDC_ROLES: is not JSON; write a list as ["a", "b"] and a mapping as {"a": "b"}',
        ),
        (
            {"OIDC_ISSUER": "https://id.example", "OIDC_DEFAULT_ROLE": "viewer"},
            "CALLBOARD_OIDC_CLIENT_ID: is needed with CALLBOARD_OIDC_ISSUER: the id of Callboard at the "
            "provider",
        ),
        ({"PORT": "70000"}, "CALLBOARD_PORT: Input should be less than or equal to 65535"),
    ],
)
def test_invalid_settings_print_one_line_and_exit_2(given: dict[str, str], message: str) -> None:
    env = {f"CALLBOARD_{name}": value for name, value in given.items()}
    result = CliRunner().invoke(app, ["db", "upgrade"], env=env)
    assert (result.exit_code, result.stderr) == (2, f"callboard: {message}\n")


def test_consistent_settings_are_accepted() -> None:
    env = {"CALLBOARD_LEASE_S": "30", "CALLBOARD_RECONCILE_INTERVAL_S": "10"}
    assert CliRunner().invoke(app, ["db", "--help"], env=env).exit_code == 0
