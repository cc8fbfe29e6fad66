import pytest

from tests.support.external import create, episodes, send
from tests.support.rows import CARTPOLE
from tests.support.service import RunningService, created_run

pytestmark = pytest.mark.service


def test_external_runs_are_grouped_by_seed_and_compared_on_training_returns(
    sqlite_service: RunningService,
) -> None:
    client = sqlite_service.client
    runs = [create(client, seed=seed, algorithm="paac") for seed in range(3)]
    own = created_run(client.post("/api/v1/runs", json=CARTPOLE))
    for run in runs:
        send(client, run, "episodes", episodes(1, [10.0 + run["seed"]] * 4))
    ids = [run["id"] for run in [*runs, own]]
    groups = client.get("/api/v1/comparisons/groups", params={"by": "seed"}).json()["items"]
    assert {group["name"]: group["n"] for group in groups} == {
        "paac (external)": 3,
        "PAAC": 1,
    }
    comparison = client.get("/api/v1/comparisons", params={"run": ids, "score": "training"}).json()
    external = next(group for group in comparison["groups"] if group["n"] == 3)
    assert external["external"] is True
    assert external["iqm"]["value"] == pytest.approx(11.0)
    by_evaluation = client.get("/api/v1/comparisons", params={"run": ids, "score": "evaluation"}).json()
    assert [group["protocol"] for group in by_evaluation["groups"] if group["external"]] == [None]


def test_settings_of_external_runs_filter_sort_and_group(service: RunningService) -> None:
    client = service.client
    runs = [
        create(
            client, seed=i, config={"lr": lr, "optim.name": name, "anneal": lr > 0.01, "learning_rate": lr}
        )
        for i, (lr, name) in enumerate([(0.1, "adam"), (0.001, "sgd"), (0.01, "adam")])
    ]
    runs.append(create(client, seed=3, config={"lr": "annealed"}))
    created_run(client.post("/api/v1/runs", json=CARTPOLE))
    seeds = {
        "config.lr>=1e-2": [0, 2],
        "config.lr=0.001": [1],
        "config.lr:ANNEALED": [3],
        "config.optim.name:Adam": [0, 2],
        "config.anneal=true": [0],
        "config.learning_rate>=1e-2 origin:external": [0, 2],
    }
    for text, expected in seeds.items():
        listed = client.get("/api/v1/runs", params={"filter": text, "sort": "seed"}).json()
        assert [run["seed"] for run in listed["items"]] == expected, text
    by_rate = client.get("/api/v1/runs", params={"filter": "origin:external", "sort": "-config.lr"}).json()
    assert [run["seed"] for run in by_rate["items"]] == [0, 2, 1, 3]
    groups = client.get("/api/v1/comparisons/groups", params={"by": "config.optim.name"}).json()["items"]
    assert {group["name"]: group["n"] for group in groups} == {
        "optim.name: adam": 2,
        "optim.name: sgd": 1,
        "optim.name: none": 2,
    }
    fields = {field["name"]: field["kind"] for field in client.get("/api/v1/runs/fields").json()["items"]}
    assert (fields["config.lr"], fields["config.learning_rate"], fields["origin"]) == ("any", "number", "id")
    for parameters in ({"filter": "config.learning_rat=1"}, {"sort": "config.learning_rat"}):
        answer = client.get("/api/v1/runs", params=parameters)
        assert answer.status_code == 422
        assert "did you mean config.learning_rate" in answer.text
