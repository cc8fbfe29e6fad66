import pytest

from tests.backend.experiments.figures.finished import ARMS, STUDIES
from tests.support.service import RunningService

pytestmark = pytest.mark.service


def test_missing_references_are_named_before_anything_is_started(service: RunningService) -> None:
    rules = {
        "normalise": {"source": "evaluations", "normalise": "human"},
        "references": {"rule": "time_to", "references": {"CartPole-v1": 9.0}},
    }
    for name, rule in rules.items():
        study = {
            "name": "s", "arms": ARMS, "environments": ["CartPole-v1", "Acrobot-v1"], "draws": {"n": 1},
            "run": {"stop": {"agent_steps": 10}},
            "figures": [{"id": "f", "title": "F", "kind": "table", "reduction": rule}],
        }  # fmt: skip
        answer = service.client.post(STUDIES, json={"study": study})
        [error] = answer.json()["errors"]
        assert (answer.status_code, error["field"]) == (422, f"study.figures.0.reduction.{name}")
        assert "Acrobot-v1" in error["message"]
    assert service.client.get("/api/v1/runs").json()["items"] == []
