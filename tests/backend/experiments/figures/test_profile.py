from typing import Any

import numpy as np
import pytest

from tests.backend.experiments.figures.finished import ARMS, STUDIES, figure, finish, numbers, started
from tests.support.service import RunningService

pytestmark = pytest.mark.service


def test_profile_and_optimality_gap_are_of_normalised_scores(service: RunningService) -> None:
    rule = {"normalise": "human", "source": "evaluations"}
    games = ["ALE/Pong-v5", "ALE/Breakout-v5"]
    figures = [{"kind": kind, "reduction": rule} for kind in ("profile", "optimality_gap")]
    study = started(service.client, *figures, environments=games)
    assert figure(service.client, study)["n_in"] == 0
    finish(service, study, evaluated=0.0)
    # Last evaluations on Pong and Breakout are -10, -20 and -30, of A3C lower by 1.
    profile, gap = (figure(service.client, study, name) for name in ("f0", "f1"))
    pong = [100 * (score + 20.7) / (14.6 + 20.7) for score in (-10, -20, -30)]
    breakout = [100 * (score - 1.7) / (30.5 - 1.7) for score in (-10, -20, -30)]
    [paac, _] = profile["figure"]["data"]
    above = [np.mean([[value > tau for value in game] for game in (pong, breakout)])
             for tau in numbers(paac["x"])]  # fmt: skip
    assert numbers(paac["y"]) == pytest.approx(above)
    [bars] = gap["figure"]["data"]
    assert numbers(bars["y"])[0] == pytest.approx(100 - np.mean([*pong, *breakout]))
    assert (profile["n_in"], profile["n_planned"]) == (12, 12)
    assert "human-normalised" in profile["caption"]
    assert "over the same 2 of 2 environments" in profile["caption"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"reduction": {}}, "normalise"),
        ({"reduction": {"normalise": "human", "rule": "best_of", "k": 2}}, "rule"),
    ],
)
def test_profile_needs_normalised_scores_of_each_run(
    sqlite_service: RunningService, changes: dict[str, Any], field: str
) -> None:
    figures = [{"id": "f", "title": "F", "kind": "profile"} | changes]
    study = {"name": "s", "arms": ARMS, "environments": ["ALE/Pong-v5"], "draws": {"n": 1},
             "run": {"stop": {"agent_steps": 10_000}}, "figures": figures}  # fmt: skip
    answer = sqlite_service.client.post(STUDIES, json={"study": study})
    assert answer.status_code == 422
    assert f"study.figures.0.reduction.{field}" in answer.text
    assert sqlite_service.client.get("/api/v1/runs").json()["items"] == []
