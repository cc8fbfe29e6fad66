"""The scatter plot of a sweep."""

from typing import Any

import pytest
from sqlalchemy import select

from backend.db import Run
from backend.db.engine import writing
from backend.drawing.scatter import ConfigurationDots, configurations_figure
from backend.runs.runs import service
from backend.specs.states import RunState
from tests.backend.drawing.lines import valid
from tests.support.rows import CARTPOLE, PATHS
from tests.support.service import RunningService

CONFIGURATIONS = [
    ConfigurationDots("Configuration 0", 0.001, [90.0, 110.0], [0, 1], 100.0),
    ConfigurationDots("Configuration 1", 0.1, [200.0], [0], 200.0, "best"),
    ConfigurationDots("Configuration 2", 0.2, [9.0], [0], 9.0, "eliminated"),
]


def draw(*configurations: ConfigurationDots, log: bool | None = None) -> Any:
    return valid(configurations_figure(configurations, x="Learning rate", y="Score", title="t", log=log))


def test_seeds_are_dots_by_standing_with_interquartile_means() -> None:
    figure = draw(*CONFIGURATIONS)
    assert [trace.name for trace in figure.data] == [
        "score of a seed",
        "highest interquartile mean",
        "eliminated configuration",
        "interquartile mean",
    ]
    seeds, best, eliminated, means = figure.data
    assert (seeds.x, seeds.y) == ((0.001, 0.001), (90.0, 110.0))
    assert seeds.text == ("Configuration 0, seed 0", "Configuration 0, seed 1")
    assert (best.y, eliminated.y, means.y) == ((200.0,), (9.0,), (100.0, 200.0, 9.0))


def test_scale_suits_the_values_unless_it_is_chosen() -> None:
    assert draw(*CONFIGURATIONS).layout.xaxis.type == "log"
    assert draw(*CONFIGURATIONS, log=False).layout.xaxis.type == "linear"
    assert draw(*CONFIGURATIONS[1:]).layout.xaxis.type == "linear"
    assert draw(*CONFIGURATIONS[1:], log=True).layout.xaxis.type == "log"
    assert draw(ConfigurationDots("c", "nips", [1.0], [0], 1.0), log=True).layout.xaxis.type == "category"


@pytest.mark.service
def test_scatter_of_a_sweep_has_the_scores_of_its_finished_seeds(sqlite_service: RunningService) -> None:
    space = {"config.learning_rate": {"values": [0.001, 0.01]}}
    body = {"name": "rates", "run": CARTPOLE, "space": space, "max_seeds": 1, "racing": None}
    client = sqlite_service.client
    answer = client.post("/api/v1/sweeps", json=body)
    assert answer.status_code == 201, answer.text
    sweep = answer.json()
    with writing(sqlite_service.engine) as session:
        for run in session.scalars(select(Run)).all():
            for after in PATHS[RunState.FINISHED]:
                service.transition(session, run, after, "for the test")
            run.score = 1000 * run.spec["config"]["learning_rate"]
    path = f"/api/v1/sweeps/{sweep['id']}/scatter"
    figure = client.get(path, params={"setting": "config.learning_rate"}).json()
    named = {trace["name"]: (trace["x"], trace["y"]) for trace in figure["data"]}
    assert named["interquartile mean"] == ([0.001, 0.01], [1.0, 10.0])
    assert named["highest interquartile mean"] == ([0.01], [10.0])
    assert figure["layout"]["xaxis"]["title"]["text"] == "Learning rate"
    assert figure["layout"]["yaxis"]["title"]["text"] == "Mean return, last 100 episodes"
    refused = client.get(path, params={"setting": "config.gamma"})
    assert refused.status_code == 422
    assert [error["field"] for error in refused.json()["errors"]] == ["setting"]
