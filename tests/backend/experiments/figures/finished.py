"""Studies over REST whose runs have scores chosen so that the reduced values are known."""

from base64 import b64decode
from typing import Any

import numpy as np
from httpx import Client
from sqlalchemy import select

from backend.analysis.metrics import repository as metrics
from backend.db import ExperimentCell, Run
from backend.db.engine import writing
from backend.runs.runs import service as runs
from backend.specs.events import PointsEvent
from backend.specs.states import RunState
from tests.support.rows import PATHS, evaluation_row
from tests.support.service import RunningService

STUDIES = "/api/v1/studies"
ARMS = [{"label": "PAAC", "algorithm": "paac"}, {"label": "A3C", "algorithm": "a3c"}]


def started(client: Client, *figures: dict[str, Any], **changes: Any) -> str:
    named = [{"id": f"f{at}", "title": f"F{at}"} | figure for at, figure in enumerate(figures)]
    study = {
        "name": "s", "arms": ARMS, "environments": ["CartPole-v1", "Acrobot-v1"], "draws": {"n": 3},
        "run": {"stop": {"agent_steps": 10_000}}, "figures": named, "concurrency": 100,
    }  # fmt: skip
    answer = client.post(STUDIES, json={"study": study | changes})
    assert answer.status_code == 201, answer.text
    study_id: str = answer.json()["id"]
    return study_id


def score_of(cell: ExperimentCell) -> float:
    """Of the first arm 10, 20, 30, of the second 1 more for each; on Acrobot the negative."""
    score = 10.0 * (cell.draw + 1) + cell.arm
    return score if cell.environment == "CartPole-v1" else -score


def finish(service: RunningService, study_id: str, *, skipped: int = 0, evaluated: float = 100.0) -> None:
    """Finish the runs of the study but the last ones, with returns that rise to their scores in 20 s, and a
    last evaluation that is above them by `evaluated`."""
    with writing(service.engine) as session:
        cells = session.scalars(
            select(ExperimentCell)
            .where(ExperimentCell.experiment_id == study_id)
            .order_by(ExperimentCell.number)
        ).all()
        for cell in cells[: len(cells) - skipped]:
            run = session.get_one(Run, cell.run_id)
            score = score_of(cell)
            points = PointsEvent(
                metric="rollout/episode_return", source="", agent_steps=[2_500, 5_000, 7_500, 10_000],
                frames=[2_500, 5_000, 7_500, 10_000], wall_time_s=[5.0, 10.0, 15.0, 20.0],
                episodes=[1, 2, 3, 4], value=[score] * 4,
            )  # fmt: skip
            metrics.append(session, run.id, 1, 1, [points])
            shares = PointsEvent(
                metric="paac/time_learning", source="", agent_steps=[1, 2], frames=[1, 2],
                wall_time_s=[1.0, 2.0], episodes=[0, 0], value=[0.2, 0.2 + 0.1 * cell.draw],
            )  # fmt: skip
            of_actor = shares.model_copy(update={"source": "actor 0", "value": [0.9, 0.9]})
            metrics.append(session, run.id, 1, 1, [shares, of_actor])
            for steps, mean in ((5_000, score - 1), (10_000, score + evaluated)):
                session.add(evaluation_row(run.id, steps, mean))
            for after in PATHS[RunState.FINISHED]:
                runs.transition(session, run, after, "for the test")
            run.score, run.agent_steps, run.wall_time_s = score, 10_000, 20.0


def figure(client: Client, study_id: str, name: str = "f0", **params: Any) -> dict[str, Any]:
    answer = client.get(f"{STUDIES}/{study_id}/figures/{name}", params=params)
    assert answer.status_code == 200, answer.text
    content: dict[str, Any] = answer.json()
    return content


def numbers(values: Any) -> list[float]:
    if isinstance(values, list):
        return [float(value) for value in values]
    decoded = np.frombuffer(b64decode(values["bdata"]), f"<{values['dtype']}")
    return [float(value) for value in decoded]


def cells_of(table: dict[str, Any]) -> dict[str, list[float | None]]:
    return {row["label"]: [cell["value"] for cell in row["cells"]] for row in table["rows"] + table["foot"]}
