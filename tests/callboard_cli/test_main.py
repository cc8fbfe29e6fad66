from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

from callboard_cli.main import app


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"LEASE_S": "inf"}, "CALLBOARD_LEASE_S: must be a finite number"),
        (
            {"HOME": ""},
            "CALLBOARD_HOME: it is set but empty, which would mean the current folder; set it to a folder, "
            "or unset it for ~/.callboard",
        ),
        ({"RECONCILE_INTERVAL_S": "nan"}, "CALLBOARD_RECONCILE_INTERVAL_S: must be greater than 0"),
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
        (
            {"DATABASE_URL": "postgresql+psycopg2://lab:secret@db/runs"},
            "CALLBOARD_DATABASE_URL: must begin with sqlite:/// or postgresql+psycopg://",
        ),
        (
            {"REDIS_URL": "localhost:6379"},
            "CALLBOARD_REDIS_URL: must begin with redis://, rediss:// or unix://",
        ),
        (
            {"ARTIFACTS_URL": "foo://bucket"},
            "CALLBOARD_ARTIFACTS_URL: must begin with a protocol that fsspec knows, such as file:// or s3://",
        ),
        (
            {"ARTIFACTS_URL": "artifacts"},
            "CALLBOARD_ARTIFACTS_URL: must begin with a protocol that fsspec knows, such as file:// or s3://",
        ),
        (
            {"URL": "http://me:secret@lab.example"},
            "CALLBOARD_URL: must be a URL such as https://callboard.example, without a user name, ? and #",
        ),
        (
            {"URL": "http://lab.example:86 42"},
            "CALLBOARD_URL: must be a URL such as https://callboard.example, without a user name, ? and #",
        ),
        (
            {"TRUSTED_PROXIES": '["192.0.2.1", "proxy"]'},
            "CALLBOARD_TRUSTED_PROXIES: entry 2 is not an address or a network: use one such as "
            "172.18.0.0/16",
        ),
        ({"LOG_FORMAT": "xml"}, "CALLBOARD_LOG_FORMAT: must be console or json"),
        (
            {"LOG_LEVEL": "loud"},
            "CALLBOARD_LOG_LEVEL: must be DEBUG, INFO, WARNING, ERROR or CRITICAL",
        ),
        (
            {"OIDC_CLIENT_ID": "my id"},
            "CALLBOARD_OIDC_CLIENT_ID: must have printable ASCII characters only, and no spaces",
        ),
        (
            {"HOST_NAME": "lab/gpu"},
            "CALLBOARD_HOST_NAME: must be printable and have no slashes, since it is part of addresses",
        ),
        ({"HOST_NAME": ".."}, "CALLBOARD_HOST_NAME: must not be . or .., which addresses cannot hold"),
        (
            {"HOME": "/" + "a" * 300},
            f"CALLBOARD_HOME: /{'a' * 300} cannot be read: File name too long",
        ),
        (
            {"HOME": "~nobody-of-this-name"},
            "CALLBOARD_HOME: ~nobody-of-this-name is the home of no user of this machine",
        ),
        ({"HOME": __file__}, f"CALLBOARD_HOME: {__file__} is not a folder"),
        ({"PORT": "web"}, "CALLBOARD_PORT: must be an integer"),
        ({"PORT": "70000"}, "CALLBOARD_PORT: must be at most 65,535"),
    ],
)
def test_invalid_settings_print_one_line_and_exit_2(given: dict[str, str], message: str) -> None:
    env = {f"CALLBOARD_{name}": value for name, value in given.items()}
    result = CliRunner().invoke(app, ["db", "upgrade"], env=env)
    assert (result.exit_code, result.stderr) == (2, f"callboard: {message}\n")


def test_home_that_cannot_be_created_is_named_in_one_line(tmp_path: Path) -> None:
    home = tmp_path / "file" / "home"
    home.parent.touch()
    password = "seven unrelated walnuts\n"
    result = CliRunner().invoke(app, ["password"], input=password, env={"CALLBOARD_HOME": str(home)})
    message = f"callboard: CALLBOARD_HOME: {home} cannot be created: Not a directory\n"
    assert (result.exit_code, result.stderr) == (2, message)


def test_misspelt_setting_is_named_and_others_are_not() -> None:
    env = {"CALLBOARD_SLOT": "2", "CALLBOARD_SOMETHING_ELSE": "2"}
    result = CliRunner().invoke(app, ["runs", "show", "x"], env=env)
    first, _, rest = result.stderr.partition("\n")
    assert first == "callboard: CALLBOARD_SLOT is not a setting; did you mean CALLBOARD_SLOTS?"
    assert "SOMETHING" not in rest


def test_consistent_settings_are_accepted() -> None:
    env = {
        "CALLBOARD_LEASE_S": "30",
        "CALLBOARD_RECONCILE_INTERVAL_S": "10",
        "CALLBOARD_DATABASE_URL": "postgresql+psycopg://lab@/runs?host=/run/postgresql",
        "CALLBOARD_REDIS_URL": "rediss://cache:6380/0",
        "CALLBOARD_ARTIFACTS_URL": "/srv/artifacts",
    }
    assert CliRunner().invoke(app, ["db", "--help"], env=env).exit_code == 0


def test_version_is_printed() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"callboard {version('callboard')}\n")


@pytest.mark.parametrize(
    "command",
    [["train", "--algorithm", "paac", "--environment", "CartPole-v1"], ["evaluate", "."], ["worker"]],
)
def test_training_without_its_packages_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setattr("callboard_cli.find_spec", lambda name: None)
    result = CliRunner().invoke(app, command)
    message = "callboard: this installation cannot train: install Callboard with [worker]\n"
    assert (result.exit_code, result.stderr) == (1, message)


@pytest.mark.parametrize(
    "group", ["", "db", "runs", "experiments", "sweeps", "studies", "start-sets", "token", "import"]
)
def test_help_lists_each_command_with_a_whole_sentence(group: str) -> None:
    output = CliRunner().invoke(app, [*group.split(), "--help"], terminal_width=80).output
    _, listed = output.split("Commands:\n")
    assert "..." not in listed
    assert max(map(len, output.splitlines())) <= 80


def test_commands_are_completed_in_a_shell() -> None:
    words = {"_CALLBOARD_COMPLETE": "complete_bash", "COMP_WORDS": "callboard runs fo", "COMP_CWORD": "2"}
    completed = CliRunner().invoke(app, [], env=words, prog_name="callboard")
    assert completed.output == "fork\n"
