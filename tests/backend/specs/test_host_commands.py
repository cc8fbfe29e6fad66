from pathlib import Path
from typing import Any

import pytest

from backend.specs.host_commands import CommandsError, parse_command_spec, read_commands
from backend.specs.problems import InvalidSpec
from tests.support import commands


def test_each_parameter_is_one_argument(tmp_path: Path) -> None:
    entry = read_commands(commands.write(tmp_path))["train"]
    assert entry.argument_list({"mode": "-v--help", "lr": 1, "resume": True}, 7)[1:] == [
        "train.py", "--lr=1.0", "--layers=2", "--mode=-v--help", "--optimizer=adam", "--resume=true",
        "--seed=7",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"mode": "a\n"}, "config.mode: must match pattern"),
        ({"mode": "a b"}, "config.mode: must match pattern"),
        ({"lr": 1.5}, "config.lr: must be at most 1, got 1.5"),
        ({"lr": True}, "config.lr: must be a number"),
        ({"layers": 2.5}, "config.layers: must be an integer"),
        ({"optimizer": "lion"}, "config.optimizer: must be adam or sgd"),
        ({"resume": "yes"}, "config.resume: must be true or false"),
        ({"layer": 3}, "config.layer: no such field; did you mean layers"),
        ({"seed": 3}, "config.seed: no such field"),
    ],
)
def test_invalid_value_has_a_problem_that_names_it(
    tmp_path: Path, config: dict[str, Any], message: str
) -> None:
    [definition] = commands.published(tmp_path)
    with pytest.raises(InvalidSpec, match=message):
        parse_command_spec({"command": "train", "definition": definition, "config": config})


def test_text_with_a_line_end_is_refused_whatever_its_pattern(tmp_path: Path) -> None:
    anything = '\n[any]\narguments = ["true"]\nfolder = "/"\n'
    anything += 'parameters.text = { type = "text", default = "", pattern = "(?s).*" }\n'
    definition = commands.published(tmp_path, anything)[1]
    with pytest.raises(InvalidSpec, match=r"config.text: must be one line"):
        parse_command_spec({"command": "any", "definition": definition, "config": {"text": "a\nb"}})


def test_pattern_is_matched_in_linear_time(tmp_path: Path) -> None:
    """With backtracking this would not end."""
    slow = '\n[slow]\narguments = ["true"]\nfolder = "/"\n'
    slow += 'parameters.text = { type = "text", default = "a", pattern = "(a+)+" }\n'
    definition = commands.published(tmp_path, slow)[1]
    with pytest.raises(InvalidSpec):
        parse_command_spec({"command": "slow", "definition": definition, "config": {"text": "a" * 999 + "b"}})


def test_fields_of_own_runs_are_refused(tmp_path: Path) -> None:
    [definition] = commands.published(tmp_path)
    body = {"command": "train", "definition": definition, "algorithm": "paac", "stop": {"agent_steps": 1}}
    with pytest.raises(InvalidSpec, match=r"algorithm: a command has none.*stop: a command has none"):
        parse_command_spec(body)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('[Big]\narguments = ["a"]\nfolder = "/"', r"Big.name: must have up to 40 lower-case letters"),
        ('[a]\nfolder = "/"', r"a.arguments: is required"),
        ('[a]\narguments = ["a"]\nfolder = 3', r"a.folder: "),
        ('[a]\narguments = "a b"\nfolder = "/"', r"a.arguments: must be a list"),
        ('[a]\narguments = ["a"]\nfolder = "/"\nshell = true', r"a.shell: no such field"),
        ('[a]\narguments = ["a"]\nfolder = "/"\nvariables = ["A=B"]', r"a.variables.0: must be the name"),
        ('[a]\narguments = ["a"]\nfolder = "/"\nvariables = ["CALLBOARD_TOKEN"]', r"is the worker's own"),
        ('[a]\narguments = ["a"]\nfolder = "/"\nparameters.seed = {}', r"a.parameters.seed"),
        (
            '[a]\narguments = ["a"]\nfolder = "/"\nparameters.n = { type = "integer", default = 1 }',
            r"a.parameters.n: needs minimum and maximum",
        ),
        (
            '[a]\narguments = ["a"]\nfolder = "/"\n'
            'parameters.n = { type = "integer", default = 3, minimum = 0, maximum = 2 }',
            r"a.parameters.n: default: must be at most 2, got 3",
        ),
        (
            '[a]\narguments = ["a"]\nfolder = "/"\n'
            'parameters.n = { type = "number", default = 3, minimum = 0, maximum = inf }',
            r"commands.toml: a.parameters.n.maximum: must be a finite number",
        ),
        (
            '[a]\narguments = ["a"]\nfolder = "/"\n'
            'parameters.n = { type = "integer", default = 3, minimum = nan, maximum = 9 }',
            r"commands.toml: a.parameters.n.minimum: must be a finite number",
        ),
        (
            '[a]\narguments = ["a"]\nfolder = "/"\n'
            'parameters.n = { type = "number", default = nan, minimum = 0, maximum = 9 }',
            r"commands.toml: a.parameters.n.default: must be a boolean, a finite number or a text",
        ),
        (
            '[a]\narguments = ["a"]\nfolder = "/"\nparameters.t = { type = "text", default = "" }',
            r"a.parameters.t: needs either pattern",
        ),
        (
            '[a]\narguments = ["a"]\nfolder = "/"\n'
            'parameters.t = { type = "text", default = "", pattern = \'(?=a)\' }',
            r"a.parameters.t: pattern .* is no regular expression",
        ),
        ('[a]\narguments = ["a"]\nfolder = "/"\nname = "b"', r"a: has a field of its own for name"),
        ("a = 1", r"a: must be a table"),
        ("[a", r"commands.toml: "),
    ],
)
def test_invalid_file_is_refused_naming_the_field(tmp_path: Path, lines: str, message: str) -> None:
    file = tmp_path / "commands.toml"
    file.write_text(lines)
    with pytest.raises(CommandsError, match=message):
        read_commands(file)


def test_digest_depends_on_what_stays_on_the_host(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    [here], [elsewhere] = commands.published(tmp_path), commands.published(tmp_path / "other")
    assert here["definition"] != elsewhere["definition"]
    assert here.keys().isdisjoint({"arguments", "folder", "variables"})
