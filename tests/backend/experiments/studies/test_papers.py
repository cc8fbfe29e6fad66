"""Every figure and table of the papers, from finished runs to the drawn files of its export."""

import io
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select

from backend.analysis.metrics import repository as metrics
from backend.db import Experiment, ExperimentCell, Run
from backend.db.engine import writing
from backend.experiments.cells.protocols import protocols_of
from backend.experiments.definitions import DEFINITIONS
from backend.experiments.experiments.stored import study_spec
from backend.experiments.experiments.study import run_spec_of
from backend.specs.events import PointsEvent
from backend.specs.states import RunState
from tests.support.rows import evaluation_row
from tests.support.service import RunningService

pytestmark = [pytest.mark.service, pytest.mark.long]

ITEMS = [name for name, (_, definition) in DEFINITIONS.items() if "minutes" in definition.scales]


def curve(metric: str, last: float) -> PointsEvent:
    """Values that rise to the last one within 20,000 agent steps and 20 s."""
    steps = [50 * (at + 1) for at in range(400)]
    return PointsEvent(
        metric=metric, source="", agent_steps=steps, frames=steps, episodes=steps,
        wall_time_s=[step / 1_000 for step in steps], value=[float(v) for v in np.linspace(0, last, 400)],
    )  # fmt: skip


def finish(service: RunningService, study_id: str) -> None:
    """Fill every cell with a finished run that has what the study's figures are made of."""
    rng = np.random.default_rng(0)
    with writing(service.engine) as session:
        study = session.get_one(Experiment, study_id)
        spec = study_spec(study.spec)
        shown = {metric for figure in spec.figures for metric in figure.metrics}
        protocols = protocols_of(spec, 0)
        for cell in session.scalars(
            select(ExperimentCell).where(ExperimentCell.experiment_id == study_id)
        ).all():
            run_spec = run_spec_of(
                spec, cell.arm, cell.environment, cell.draw, cell.settings, study.spec["custom"]
            )
            score = float(rng.uniform(80, 100))
            run = Run(
                id=f"01{cell.number:024d}", created_at=study.created_at, name="r", queue="cpu", tags=[],
                algorithm=run_spec.algorithm, environment=cell.environment, seed=cell.seed,
                spec=run_spec.model_dump(mode="json"), memory_estimate_bytes=1, state=RunState.FINISHED,
                score=score, agent_steps=20_000, frames=20_000, wall_time_s=20.0,
            )  # fmt: skip
            session.add(run)
            session.flush()
            curves = [curve("rollout/episode_return", score), *(curve(metric, 0.3) for metric in shown)]
            protocol = protocols[cell.environment]
            kept = curve(f"eval/{protocol}/best_kept_return", score)
            metrics.append(session, run.id, 1, 1, [*curves, kept])
            for steps in (10_000, 20_000):
                session.add(evaluation_row(run.id, steps, score * steps / 20_000, protocol=protocol))
            cell.run_id, cell.started = run.id, True
        study.state, study.ended_at = "finished", study.created_at


@pytest.mark.parametrize("name", ITEMS)
def test_export_of_a_definition_draws_every_figure_with_all_its_runs(
    sqlite_service: RunningService, tmp_path: Path, name: str
) -> None:
    client = sqlite_service.client
    item = DEFINITIONS[name][1].items[0].id
    study = client.post("/api/v1/studies", json={"item": item, "scale": "minutes"}).json()
    with writing(sqlite_service.engine) as session:
        for cell in session.scalars(select(ExperimentCell)).all():
            cell.run_id = None
        for run in session.scalars(select(Run)).all():
            session.delete(run)
    finish(sqlite_service, study["id"])
    address = f"/api/v1/studies/{study['id']}"
    shown = client.get(address).json()
    for figure in shown["spec"]["figures"]:
        drawn: dict[str, Any] = client.get(f"{address}/figures/{figure['id']}").json()
        assert drawn["n_in"] == drawn["n_planned"] > 0 or figure["kind"] == "counts", figure["id"]
        assert drawn["finding"] or figure["kind"] == "sorted", figure["id"]
    export = client.get(f"{address}/export")
    with zipfile.ZipFile(io.BytesIO(export.content)) as archive:
        archive.extractall(tmp_path)
    [folder] = tmp_path.glob("study-*")
    for figure in shown["spec"]["figures"]:
        assert (folder / f"{figure['id']}.csv").stat().st_size > 0
    scripts = sorted(folder.glob("*.py"))
    for script in scripts:
        subprocess.run([sys.executable, str(script)], check=True, capture_output=True)
        assert script.with_suffix(".svg").stat().st_size < 400_000
