import csv
import io
import zipfile
from datetime import UTC, datetime

import pytest
from sqlalchemy import select

from backend.analysis.metrics import repository as metrics
from backend.db import ExperimentCell, LiveSettings, Run
from backend.db.engine import writing
from backend.experiments.experiments import service as experiments
from backend.runs.runs import service as runs
from backend.specs.events import PointsEvent
from backend.specs.states import RunState
from tests.backend.experiments.figures.finished import (
    ARMS,
    STUDIES,
    cells_of,
    figure,
    finish,
    numbers,
    started,
)
from tests.support.rows import PATHS
from tests.support.service import RunningService

pytestmark = pytest.mark.service


def test_run_that_was_resumed_with_another_limit_is_not_in(sqlite_service: RunningService) -> None:
    study = started(sqlite_service.client, {"kind": "table"}, {"kind": "curves"})
    finish(sqlite_service, study)
    with writing(sqlite_service.engine) as session:
        first, second = session.scalars(
            select(Run)
            .join(ExperimentCell, ExperimentCell.run_id == Run.id)
            .where(
                ExperimentCell.experiment_id == study,
                ExperimentCell.environment == "CartPole-v1",
                ExperimentCell.arm == 0,
            )
            .order_by(ExperimentCell.draw)
            .limit(2)
        )
        first.attempt = second.attempt = 2
        first.spec = first.spec | {"stop": first.spec["stop"] | {"agent_steps": 20_000}}
        first.score = 500.0
    answer = figure(sqlite_service.client, study)
    assert cells_of(answer["table"])["CartPole"] == [25.0, 21.0]
    assert (answer["n_in"], answer["n_planned"]) == (11, 12)
    curve = next(t for t in figure(sqlite_service.client, study, "f1")["figure"]["data"] if t.get("name"))
    assert set(numbers(curve["customdata"])) == {2}
    progress = sqlite_service.client.get(f"{STUDIES}/{study}").json()["progress"]
    assert next(group["score"] for group in progress if group["environment"] == "CartPole-v1") == 25.0


@pytest.mark.parametrize("state", [RunState.FINISHED, RunState.STOPPED])
def test_cell_of_a_changed_run_says_so_and_is_filled_again(
    sqlite_service: RunningService, state: RunState
) -> None:
    client = sqlite_service.client
    study = started(client, {"kind": "table"}, draws={"n": 1}, environments=["CartPole-v1"], arms=ARMS[:1])
    with writing(sqlite_service.engine) as session:
        run = session.scalars(select(Run)).one()
        for after in PATHS[state]:
            runs.transition(session, run, after, "for the test")
        run.score, run.agent_steps = 50.0, 10_000
        # Changed live and changed back: it has the specification of its cell again.
        for version in (1, 2):
            live = LiveSettings(run_id=run.id, version=version, requested_at=datetime.now(UTC), changes={})
            live.state, live.agent_steps = "applied", 100 * version
            session.add(live)
        changed = run.id
    assert figure(client, study)["n_in"] == 0
    assert client.get(f"{STUDIES}/{study}").json()["runs"] == {"changed": 1}
    with zipfile.ZipFile(io.BytesIO(client.get(f"{STUDIES}/{study}/export").content)) as archive:
        [name] = [name for name in archive.namelist() if name.endswith("/runs.csv")]
        [row] = csv.DictReader(io.StringIO(archive.read(name).decode()))
    assert row["changed"] == "True"
    with writing(sqlite_service.engine) as session:
        experiments.reconcile(session, study)
    retried = client.post(f"{STUDIES}/{study}/retry")
    assert retried.status_code == 200, retried.text
    with writing(sqlite_service.engine) as session:
        experiments.reconcile(session, study)
    [cell] = client.get(f"{STUDIES}/{study}/cells").json()["items"]
    assert (cell["state"], cell["run"] != changed) == ("queued", True)
    assert client.get(f"/api/v1/runs/{changed}").json()["state"] == state


def test_run_of_a_cell_that_an_earlier_version_planned_counts_after_a_second_attempt(
    sqlite_service: RunningService,
) -> None:
    study = started(sqlite_service.client, {"kind": "table"}, environments=["CartPole-v1"], concurrency=1)
    with writing(sqlite_service.engine) as session:
        cells = session.scalars(select(ExperimentCell).where(ExperimentCell.started.is_(False))).all()
        for cell in cells:
            cell.key = "0" * 32  # of the settings that the earlier version had
    while any(not cell.started for cell in cells):
        with writing(sqlite_service.engine) as session:
            run = session.scalars(select(Run).where(Run.state == RunState.QUEUED)).one()
            for after in PATHS[RunState.FINISHED]:
                runs.transition(session, run, after, "for the test")
            run.score, run.attempt = 1.0, 2
        with writing(sqlite_service.engine) as session:
            experiments.reconcile(session, study)
            cells = session.scalars(select(ExperimentCell)).all()
    assert figure(sqlite_service.client, study)["n_in"] == len(cells) - 1


def test_unfinished_runs_are_planned_and_not_in(service: RunningService) -> None:
    study = started(service.client, {"kind": "table"})
    empty = figure(service.client, study)
    assert (empty["n_in"], empty["n_planned"], empty["finding"]) == (0, 12, "")
    assert cells_of(empty["table"])["CartPole"] == [None, None]
    finish(service, study, skipped=4)
    part = figure(service.client, study)
    assert (part["n_in"], part["n_planned"]) == (8, 12)
    assert cells_of(part["table"])["CartPole"] == [15.0, 16.0]


def test_stopped_run_with_a_score_is_not_in(sqlite_service: RunningService) -> None:
    study = started(sqlite_service.client, {"kind": "table"})
    finish(sqlite_service, study)
    with writing(sqlite_service.engine) as session:
        first = ExperimentCell.experiment_id == study, ExperimentCell.number == 0
        cell = session.scalars(select(ExperimentCell).where(*first)).one()
        session.get_one(Run, cell.run_id).state = RunState.STOPPED
    cut_short = figure(sqlite_service.client, study)
    assert (cut_short["n_in"], cut_short["n_planned"]) == (11, 12)
    assert cells_of(cut_short["table"])["CartPole"] == [25.0, 21.0]


def test_time_that_was_read_before_is_that_of_the_points_that_came_since(service: RunningService) -> None:
    rule = {"rule": "time_to", "references": {"CartPole-v1": 40.0}, "source": "training"}
    wanted = {"kind": "table", "reduction": rule}
    study = started(service.client, wanted, environments=["CartPole-v1"], draws={"n": 1})
    finish(service, study)
    before = cells_of(figure(service.client, study)["table"])["CartPole"]
    with writing(service.engine) as session:
        cell = session.scalars(select(ExperimentCell).where(ExperimentCell.number == 0)).one()
        run = session.get_one(Run, cell.run_id)
        later = PointsEvent(
            metric="rollout/episode_return", source="", agent_steps=list(range(20_000, 20_100)),
            frames=list(range(20_000, 20_100)), wall_time_s=[float(at) for at in range(30, 130)],
            episodes=list(range(5, 105)), value=[50.0] * 100,
        )  # fmt: skip
        run.revision += 1
        metrics.append(session, run.id, 1, run.revision, [later])
    after = cells_of(figure(service.client, study)["table"])["CartPole"]
    assert (before[0], after[0], after[1]) == (None, 125.0, before[1])
