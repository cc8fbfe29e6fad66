import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import select
from typer.testing import Result

from backend.db import Experiment, ExperimentCell, Run
from backend.db.engine import reading
from tests.support.service import RunningService
from tests.support.waiting import until
from workers.host_agent import HostAgent

pytestmark = pytest.mark.service

Callboard = Callable[..., Result]
NOTES = json.dumps({"step_s": 0, "score": "learning_rate"})
STUDY = {
    "name": "two methods",
    "arms": [{"label": "PAAC", "algorithm": "paac"}, {"label": "A3C", "algorithm": "a3c"}],
    "environments": ["CartPole-v1", "Acrobot-v1"],
    "draws": {"n": 1},
    "run": {"stop": {"agent_steps": 3}, "notes": NOTES},
}


@pytest.fixture
def body(tmp_path: Path) -> str:
    path = tmp_path / "study.json"
    path.write_text(json.dumps(STUDY))
    return str(path)


def test_study_is_run_to_its_end_by_a_worker_and_extended(
    callboard: Callboard, worker: HostAgent, sqlite_service: RunningService, body: str
) -> None:
    study_id = callboard("studies", "start", "--file", body).output.strip()

    def ended() -> bool:
        with reading(sqlite_service.engine) as session:
            return session.get_one(Experiment, study_id).state == "finished"

    until(ended)
    table = callboard("studies", "show", study_id).output
    assert "two methods: finished, its runs have ended" in table
    assert table.count("1 finished") == 4
    extended = callboard("studies", "extend", study_id, "--draws", "2", "--wait").output
    assert "finished: its runs have ended" in extended
    with reading(sqlite_service.engine) as session:
        filled = session.scalars(
            select(ExperimentCell.run_id).where(ExperimentCell.experiment_id == study_id)
        ).all()
        assert set(filled) == set(session.scalars(select(Run.id)))
        assert len(set(filled)) == 8
    sqlite_service.client.delete(f"/api/v1/runs/{filled[0]}").raise_for_status()
    assert "finished: its runs have ended" in callboard("studies", "retry", study_id, "--wait").output
    with reading(sqlite_service.engine) as session:
        again = session.scalars(
            select(ExperimentCell.run_id).where(ExperimentCell.experiment_id == study_id)
        ).all()
        assert filled[0] not in again
        assert set(filled[1:]) < set(again) == set(session.scalars(select(Run.id)))
    assert study_id in callboard("studies", "list").output
    saved = Path(body).with_name("study.zip")
    assert callboard("studies", "export", study_id, "-o", str(saved)).output == f"{saved}\n"
    assert zipfile.is_zipfile(saved)
    assert f"{study_id} study two methods" in callboard("experiments", "list").output.replace("  ", " ")
    assert callboard("experiments", "delete", study_id).exit_code == 0
    missing = callboard("experiments", "show", study_id)
    assert missing.output == f"callboard: sweep or study {study_id} does not exist or has been deleted\n"


def test_item_is_estimated_started_and_stopped(callboard: Callboard) -> None:
    cost = callboard("studies", "start", "a3c-figure-2", "--estimate").output
    assert cost.startswith("runs: 24\nagent steps: 960,000\ntime: not measured here yet: a3c on ")
    started = json.loads(callboard("studies", "start", "a3c-figure-2", "--json").output)
    assert (started["name"], started["n_runs"]) == ("A3C Figure 2, minutes", 24)
    stopped = json.loads(callboard("studies", "stop", started["id"], "--json").output)
    assert stopped["state"] == "stopped"
    items = callboard("studies", "list", "--papers").output
    assert "a3c-figure-2" in items
    assert "paac-figure-3" in items


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("start",), "give an item, such as a3c-figure-2, or --file"),
        (("start", "a3c-figure-9"), "item: unknown figure or table"),
        (("show", "abc"), "is not the id of a study"),
        (("start", "--file", "/none.json"), "--file: No such file or directory"),
    ],
)
def test_wrong_input_is_one_line_and_exit_2(
    callboard: Callboard, arguments: tuple[str, ...], message: str
) -> None:
    wrong = callboard("studies", *arguments)
    assert (wrong.exit_code, wrong.output.count("\n")) == (2, 1)
    assert message in wrong.output
