import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from tests.support.rows import make_run
from tests.support.service import RunningService
from tests.support.start_sets import add_game, mark_verified

pytestmark = pytest.mark.service

Callboard = Callable[..., Result]


def test_set_is_created_listed_exported_imported_and_deleted(
    callboard: Callboard, sqlite_service: RunningService, tmp_path: Path
) -> None:
    run = make_run(sqlite_service.engine, environment="ALE/Pong-v5")
    add_game(sqlite_service.engine, sqlite_service.artifacts, run, tmp_path)
    set_id = callboard("start-sets", "create", "pong", "--run", run.id, "--points", "5").output.strip()
    assert "pong@1: verifying" in callboard("start-sets", "show", set_id).output
    mark_verified(sqlite_service.engine, set_id)
    shown = callboard("start-sets", "show", set_id).output
    assert "pong@1: ready" in shown
    assert "ALE/Pong-v5: 5 starts from 1 game, 100 frames; small: fewer than 5 games" in shown
    assert "protocols: agent_starts:pong@1, agent_starts_greedy:pong@1" in shown
    file = tmp_path / "pong.json"
    assert callboard("start-sets", "export", set_id, "-o", str(file)).output == f"{file}\n"
    imported = callboard("start-sets", "import", str(file), "--name", "court").output.strip()
    listed = json.loads(callboard("start-sets", "list", "--json").output)
    assert [(row["id"], row["name"], row["version"]) for row in listed] == [
        (imported, "court", 1),
        (set_id, "pong", 1),
    ]
    assert callboard("start-sets", "delete", set_id).exit_code == 0
    table = callboard("start-sets", "list").output
    assert "court@1" in table
    assert "pong@1" not in table


def test_wrong_input_is_refused_with_one_line(
    callboard: Callboard, sqlite_service: RunningService, tmp_path: Path
) -> None:
    file = tmp_path / "set.json"
    file.write_text("{")
    for arguments, message in [
        (("create", "pong"), "give one of --run, --episode, --environment and --recording"),
        (("create", "pong", "--environment", "ALE/Pong-v5"), "nobody has played ALE/Pong-v5 here"),
        (("create", "pong", "--recording", "0" * 26), "recordings.0"),
        (("import", str(file)), "is not JSON"),
        (("import", str(tmp_path / "none.json")), "No such file"),
        (("show", "pong"), "is not the id of a set"),
    ]:
        refused = callboard("start-sets", *arguments)
        assert refused.exit_code == 2
        assert message in refused.output
    assert json.loads(callboard("start-sets", "list", "--json").output) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("train", "--algorithm", "paac", "--environment", "ALE/Pong-v5", "--agent-steps", "10", "--set",
             "evaluation_protocol=agent_starts:pong"),
            "config.evaluation_protocol: start sets belong to a server",
        ),
        (("studies", "start", "a3c-table-1", "--starts", "pong"), "--starts: give GAME=PROTOCOL"),
        (
            ("studies", "start", "gorila-table-2", "--scale", "hours", "--starts",
             "ALE/Assault-v5=agent_starts:a"),
            "has no set for ALE/RoadRunner-v5",
        ),
    ],
)  # fmt: skip
def test_start_sets_of_runs_and_studies_are_refused_where_they_cannot_be_used(
    callboard: Callboard, arguments: tuple[str, ...], message: str
) -> None:
    refused = callboard(*arguments)
    assert refused.exit_code == 2
    assert message in refused.output
