from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from httpx import Client
from sqlalchemy import Engine, select

from backend import __version__
from backend.db import Attempt, Experiment, ExperimentCell, Run, Transition, deadline
from backend.db.base import new_id
from backend.db.deadline import RequestEnded
from backend.db.engine import reading, writing
from backend.experiments.definitions import DEFINITIONS, ITEMS
from backend.experiments.definitions.base import study_of
from backend.experiments.experiments import repository
from backend.experiments.experiments import service as experiments
from backend.experiments.experiments.study import prepare
from backend.experiments.studies import estimate
from backend.platform.principals import Role
from backend.runs.runs import actions
from backend.runs.runs import service as runs
from backend.specs.annealing import RESUMED_WITH_OTHER_RATES
from backend.specs.states import ENDED, RunState
from backend.specs.study import Scale, StudySpec
from tests.support.rows import PATHS, PROVENANCE, add_attempt, add_host, make_run
from tests.support.service import RunningService
from tests.support.start_sets import add_game, add_recording, mark_verified

pytestmark = pytest.mark.service

STUDIES = "/api/v1/studies"
RATES = {"config.learning_rate": {"distribution": "log_uniform", "low": 1e-4, "high": 1e-2}}


@pytest.fixture
def client(service: RunningService) -> Client:
    return service.client


def study_body(**changes: Any) -> dict[str, Any]:
    return {
        "name": "methods",
        "arms": [
            {"label": "PAAC", "algorithm": "paac", "config": {"n_e": 4}},
            {"label": "A3C", "algorithm": "a3c"},
        ],
        "environments": ["CartPole-v1", "Acrobot-v1"],
        "draws": {"n": 2},
        "run": {"stop": {"agent_steps": 10_000}},
        "figures": [{"id": "scores", "title": "Scores", "kind": "table"}],
    } | changes


def created(client: Client, **changes: Any) -> dict[str, Any]:
    answer = client.post(STUDIES, json={"study": study_body(**changes)})
    assert answer.status_code == 201, answer.text
    study: dict[str, Any] = answer.json()
    return study


def detail(client: Client, study: dict[str, Any]) -> dict[str, Any]:
    answer = client.get(f"{STUDIES}/{study['id']}")
    assert answer.status_code == 200, answer.text
    study_detail: dict[str, Any] = answer.json()
    return study_detail


def cells(client: Client, study: dict[str, Any]) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = client.get(f"{STUDIES}/{study['id']}/cells").json()["items"]
    return items


def end_runs(
    engine: Engine, state: RunState = RunState.FINISHED, version: str = __version__, *, attempt: int = 1
) -> None:
    """End every run that has not; its score is its seed and, for A3C, 100 more."""
    with writing(engine) as session:
        ended = session.scalars(select(Run).where(Run.state.not_in(ENDED))).all()
        for run in ended:
            for after in PATHS[state][len(PATHS[RunState(run.state)]) :]:
                runs.transition(session, run, after, "for the test")
            run.score = run.seed + (100.0 if run.algorithm == "a3c" else 0.0)
            run.agent_steps, run.wall_time_s = 10_000, 20.0
    for run in ended:
        provenance = PROVENANCE.model_copy(update={"version": version}).model_dump(mode="json")
        add_attempt(engine, run.id, attempt, provenance=provenance)


def reconcile(engine: Engine, study: dict[str, Any]) -> None:
    while True:
        with writing(engine) as session:
            if not experiments.reconcile(session, study["id"]):
                return


def n_runs(engine: Engine) -> int:
    with reading(engine) as session:
        return len(session.scalars(select(Run)).all())


def test_study_starts_its_first_runs_by_draw_and_ends_with_the_last(
    service: RunningService, client: Client
) -> None:
    study = created(client, concurrency=5)
    assert (study["state"], study["n_runs"]) == ("running", 8)
    assert study["runs"] == {"queued": 5, "waiting": 3}
    started = client.get("/api/v1/runs").json()["items"]
    assert {run["group"] for run in started} == {"methods"}
    assert Counter((run["algorithm"], run["environment"], run["seed"]) for run in started) == {
        ("paac", "CartPole-v1", 0): 1, ("a3c", "CartPole-v1", 0): 1, ("paac", "Acrobot-v1", 0): 1,
        ("a3c", "Acrobot-v1", 0): 1, ("paac", "CartPole-v1", 1): 1,
    }  # fmt: skip
    end_runs(service.engine)
    reconcile(service.engine, study)
    assert detail(client, study)["runs"] == {"finished": 5, "queued": 3}
    end_runs(service.engine)
    reconcile(service.engine, study)
    ended = detail(client, study)
    assert (ended["state"], ended["state_reason"]) == ("finished", "its runs have ended")
    assert (ended["agent_steps"], ended["wall_time_s"], ended["n_reused"]) == (80_000, 160.0, 0)
    progress = {(row["arm"], row["environment"]): row for row in ended["progress"]}
    assert progress["A3C", "Acrobot-v1"]["score"] == 100.5
    assert progress["A3C", "Acrobot-v1"]["runs"] == {"finished": 2}
    assert n_runs(service.engine) == 8


def test_draws_have_settings_and_seeds_of_their_own_that_all_arms_share(client: Client) -> None:
    study = created(client, draws={"n": 3, "space": RATES, "first_seed": 7}, concurrency=100)
    drawn = cells(client, study)
    by_draw: dict[int, set[tuple[int, float]]] = {}
    for cell in drawn:
        rate = cell["settings"]["config.learning_rate"]
        by_draw.setdefault(cell["draw"], set()).add((cell["seed"], rate))
    assert {draw: len(settings) for draw, settings in by_draw.items()} == {0: 1, 1: 1, 2: 1}
    assert [next(iter(settings))[0] for settings in by_draw.values()] == [7, 8, 9]
    assert len({next(iter(settings))[1] for settings in by_draw.values()}) == 3
    extended = client.post(f"{STUDIES}/{study['id']}/extend", json={"draws": 5}).json()
    assert extended["n_runs"] == 20
    assert cells(client, study)[: len(drawn)] == drawn


def test_finished_equal_run_fills_a_cell_and_stays_in_its_group(
    service: RunningService, client: Client
) -> None:
    common: dict[str, Any] = {
        "algorithm": "paac",
        "environment": "CartPole-v1",
        "config": {"n_e": 4},
        "group": "earlier",
    }
    equal = make_run(service.engine, seed=0, name="equal", **common)
    make_run(service.engine, seed=1, stop={"agent_steps": 9_999}, **common)
    fork, reannealed = (make_run(service.engine, seed=1, **common) for _ in range(2))
    end_runs(service.engine)
    with writing(service.engine) as session:
        session.get_one(Run, fork.id).forked_at_agent_steps = 1_000  # its parent has been deleted
        transition = session.scalars(select(Transition).where(Transition.run_id == reannealed.id)).first()
        assert transition is not None
        transition.reason = RESUMED_WITH_OTHER_RATES
    old = make_run(service.engine, environment="Acrobot-v1", algorithm="a3c", seed=0)
    end_runs(service.engine, version="0.0.1")
    live = make_run(service.engine, environment="Acrobot-v1", algorithm="a3c", seed=1)
    assert len({equal.id, old.id, live.id}) == 3
    before = n_runs(service.engine)
    study = created(client, concurrency=100)
    reused = [cell for cell in cells(client, study) if cell["reused"]]
    assert [(cell["arm"], cell["seed"], cell["run"]) for cell in reused] == [("PAAC", 0, equal.id)]
    assert reused[0]["name"] == "equal"
    assert n_runs(service.engine) == before + 7
    with reading(service.engine) as session:
        assert session.get_one(Run, equal.id).group == "earlier"
    assert detail(client, study)["n_reused"] == 1
    for run, counting in ((equal, [study["id"]]), (live, [])):
        listed = client.get(STUDIES, params={"run": run.id}).json()["items"]
        assert [item["id"] for item in listed] == counting


def test_study_shares_the_runs_of_another_that_runs(service: RunningService, client: Client) -> None:
    first = created(client, concurrency=100)
    second = created(client, name="again", concurrency=100)
    assert n_runs(service.engine) == 8
    assert {cell["run"] for cell in cells(client, second)} == {cell["run"] for cell in cells(client, first)}
    client.post(f"{STUDIES}/{second['id']}/stop")
    assert detail(client, first)["runs"] == {"queued": 8}


def test_study_does_not_share_a_run_that_has_other_limits_by_now(
    service: RunningService, client: Client
) -> None:
    first = created(client, concurrency=100)
    run_id = cells(client, first)[0]["run"]
    client.post(f"/api/v1/runs/{run_id}/stop")
    resumed = client.post(f"/api/v1/runs/{run_id}/resume", json={"stop": {"agent_steps": 9}})
    assert resumed.status_code == 200, resumed.text
    created(client, concurrency=100)
    assert n_runs(service.engine) == 9, "seven are shared"


def test_retry_queues_failed_runs_and_fills_cells_of_deleted_ones(
    service: RunningService, client: Client
) -> None:
    study = created(client, concurrency=100, draws={"n": 1})
    end_runs(service.engine, RunState.FAILED)
    reconcile(service.engine, study)
    failed = detail(client, study)
    assert (failed["state"], failed["runs"]) == ("finished", {"failed": 4})
    gone = cells(client, study)[0]["run"]
    assert client.delete(f"/api/v1/runs/{gone}").status_code == 204
    assert detail(client, study)["runs"] == {"deleted": 1, "failed": 3}
    retried = client.post(f"{STUDIES}/{study['id']}/retry").json()
    assert retried["state"] == "running"
    reconcile(service.engine, study)
    assert detail(client, study)["runs"] == {"queued": 4}
    assert gone not in {cell["run"] for cell in cells(client, study)}


def test_retry_has_no_more_runs_open_than_the_study_may(service: RunningService, client: Client) -> None:
    study = created(client, concurrency=100)
    runs = {cell["run"] for cell in cells(client, study)}
    end_runs(service.engine, RunState.FAILED)
    client.patch(f"{STUDIES}/{study['id']}", json={"concurrency": 3})
    client.post(f"{STUDIES}/{study['id']}/retry")
    for n_finished in (0, 3, 6):
        reconcile(service.engine, study)
        n_open = min(3, 8 - n_finished)
        by_state = {"queued": n_open, "finished": n_finished, "waiting": 8 - n_open - n_finished}
        assert detail(client, study)["runs"] == {state: n for state, n in by_state.items() if n}
        end_runs(service.engine, attempt=2)
    assert {cell["run"] for cell in cells(client, study)} == runs
    assert n_runs(service.engine) == 8


def test_failed_runs_that_waited_for_their_turn_are_failed_when_the_study_stops(
    service: RunningService, client: Client
) -> None:
    study = created(client, concurrency=100)
    end_runs(service.engine, RunState.FAILED)
    client.patch(f"{STUDIES}/{study['id']}", json={"concurrency": 3})
    client.post(f"{STUDIES}/{study['id']}/retry")
    assert detail(client, study)["runs"] == {"queued": 3, "waiting": 5}
    stopped = client.post(f"{STUDIES}/{study['id']}/stop").json()
    assert stopped["runs"] == {"stopped": 3, "failed": 5}
    assert client.post(f"{STUDIES}/{study['id']}/retry").json()["runs"] == {"queued": 3, "waiting": 5}


def test_failed_runs_that_waited_for_their_turn_go_on_when_the_budget_is_extended(
    service: RunningService, client: Client
) -> None:
    study = created(client, concurrency=100)
    extend = f"{STUDIES}/{study['id']}/extend"
    end_runs(service.engine, RunState.FAILED)
    client.patch(f"{STUDIES}/{study['id']}", json={"concurrency": 3})
    client.post(f"{STUDIES}/{study['id']}/retry")
    client.post(extend, json={"budget": {"agent_steps": 10_000}})
    end_runs(service.engine, attempt=2)
    reconcile(service.engine, study)
    ended = detail(client, study)
    assert (ended["state"], ended["runs"]) == ("finished", {"finished": 3, "failed": 5})
    assert Counter(cell["state"] for cell in cells(client, study)) == {"finished": 3, "failed": 5}
    client.post(extend, json={"budget": {"agent_steps": 10**9}})
    reconcile(service.engine, study)
    assert detail(client, study)["runs"] == {"finished": 3, "queued": 3, "waiting": 2}


def test_stop_leaves_a_running_study_the_runs_that_it_shares(service: RunningService, client: Client) -> None:
    first = created(client, concurrency=100)
    second = created(client, name="again", concurrency=100, draws={"n": 1})
    stopped = client.post(f"{STUDIES}/{first['id']}/stop").json()
    assert stopped["runs"] == {"stopped": 4, "queued": 4}
    assert detail(client, second)["runs"] == {"queued": 4}
    client.post(f"{STUDIES}/{second['id']}/stop")
    assert detail(client, first)["runs"] == {"stopped": 8}


def test_study_does_not_share_runs_that_are_stopping(service: RunningService, client: Client) -> None:
    created(client, concurrency=100, draws={"n": 1})
    with writing(service.engine) as session:
        for run in session.scalars(select(Run)).all():
            for after in PATHS[RunState.RUNNING]:
                if after != RunState(run.state):
                    runs.transition(session, run, after, "for the test")
            actions.stop(session, run.id, kill=False)
    again = created(client, name="again", concurrency=100, draws={"n": 1})
    assert detail(client, again)["runs"] == {"queued": 4}
    assert n_runs(service.engine) == 8


def test_study_owns_the_shared_runs_that_it_resumes(service: RunningService, client: Client) -> None:
    first = created(client, concurrency=100, draws={"n": 1})
    second = created(client, name="again", concurrency=100, draws={"n": 1})
    for study in (second, first):
        client.post(f"{STUDIES}/{study['id']}/stop")
    client.post(f"{STUDIES}/{second['id']}/retry")
    assert detail(client, second)["runs"] == {"queued": 4}
    assert client.post(f"{STUDIES}/{second['id']}/stop").json()["runs"] == {"stopped": 4}


@pytest.mark.parametrize(
    ("extension", "field", "message"),
    [
        ({"draws": 5_000}, "draws", "are 20,000 runs"),
        ({"environments": ["Catch-v0", "CartPole-v1"]}, "environments.1", "is listed twice"),
        ({"environments": ["CartPole-v9"]}, "environments.0", "unknown environment"),
    ],
)
def test_wrong_extension_names_its_own_field(
    sqlite_service: RunningService, extension: dict[str, Any], field: str, message: str
) -> None:
    study = created(sqlite_service.client)
    answer = sqlite_service.client.post(f"{STUDIES}/{study['id']}/extend", json=extension)
    assert answer.status_code == 422, answer.text
    problems = {error["field"]: error["message"] for error in answer.json()["errors"]}
    assert message in problems[field]


def test_stopped_study_continues_when_extended_and_is_deleted_without_its_runs(
    service: RunningService, client: Client
) -> None:
    study = created(client, concurrency=100)
    assert client.delete(f"{STUDIES}/{study['id']}").status_code == 409
    stopped = client.post(f"{STUDIES}/{study['id']}/stop").json()
    assert (stopped["state"], stopped["runs"]) == ("stopped", {"stopped": 8})
    assert client.post(f"{STUDIES}/{study['id']}/stop").status_code == 409
    body = {"environments": ["Catch-v0"]}
    extended = client.post(f"{STUDIES}/{study['id']}/extend", json=body).json()
    assert (extended["state"], extended["n_runs"]) == ("running", 12)
    reconcile(service.engine, study)
    assert detail(client, study)["runs"] == {"queued": 12}
    client.post(f"{STUDIES}/{study['id']}/stop")
    assert client.delete(f"{STUDIES}/{study['id']}").status_code == 204
    assert client.get(f"{STUDIES}/{study['id']}").status_code == 404
    assert n_runs(service.engine) == 12
    with reading(service.engine) as session:
        assert session.scalars(select(ExperimentCell)).all() == []


def test_budget_of_runs_ends_a_study(service: RunningService, client: Client) -> None:
    study = created(client, concurrency=100, budget={"runs": 3})
    assert study["runs"] == {"queued": 3, "waiting": 5}
    end_runs(service.engine)
    reconcile(service.engine, study)
    assert detail(client, study)["state_reason"] == "its budget of 3 runs is used up"


BEST_SETTINGS = {"rule": "mean_of_best", "k": 2, "of": "settings"}
EVALUATED = {"normalise": "human", "source": "evaluations"}

WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"arms": [{"label": "a", "algorithm": "paac", "config": {"n_ee": 4}}]}, "arms.0.config.n_ee", "no such"),
    ({"arms": [{"label": "a", "algorithm": "pac"}]}, "arms.0.algorithm", "unknown algorithm"),
    ({"arms": [{"label": "a", "algorithm": "paac", "preset": "none"}]}, "arms.0.preset", "has no preset"),
    ({"arms": [{"label": "a", "algorithm": "paac", "preset": "paper"}]}, "arms.0.preset", "is not meant for"),
    ({"environments": ["CartPole-v1", "CartPole-v9"]}, "environments.1", "unknown environment"),
    ({"environments": ["CartPole-v1", "CartPole-v1"]}, "environments.1", "is listed twice"),
    ({"name": "  "}, "name", "must not be blanks alone"),
    ({"figures": [{"id": "f", "title": "F", "kind": "table", "published": ["random", "humans"]}]},
     "figures.0.published.1", "is no published score; use one of random, human"),
    ({"figures": [{"id": "f", "title": "F", "kind": "table", "published": ["Gorila@sticky_actions_5min"]}]},
     "figures.0.published.0", "has no score of this protocol"),
    ({"arms": [{"label": " ", "algorithm": "paac"}]}, "arms.0.label", "must not be blanks alone"),
    ({"draws": {"n": 250_000}}, "draws.n", "are 1,000,000 runs; at most 10,000 are allowed"),
    ({"draws": {"n": 2, "space": {"learning_rate": RATES["config.learning_rate"]}}},
     "draws.space.learning_rate", "is not a setting"),
    ({"draws": {"n": 2, "space": {"config.n_ee": {"values": [1, 2]}}}}, "draws.space.config.n_ee", "no such"),
    ({"draws": {"n": 3, "space": {"config.gamma": {"values": [0.9, 0.99]}}}}, "draws.n", "only 2 different"),
    ({"draws": {"n": 2, "seeds": [4, 4]}}, "draws.seeds.1", "is listed twice"),
    ({"draws": {"n": 1, "seeds": [4, 5]}}, "draws.n", "must be at least 2"),
    ({"draws": {"n": 2, "seeds": [4, 5], "first_seed": 1}}, "draws.first_seed", "leave it out"),
    ({"draws": {"n": 2, "seeds": [2**31 - 1]}}, "draws.n", "the last seed would exceed"),
    ({"run": {}}, "run.stop", "set at least one limit"),
    ({"run": {"stop": {"agent_steps": 1}, "seed": 3}}, "run.seed", "leave it out"),
    ({"figures": [{"id": "f", "title": "F", "kind": "scatter"}]}, "figures.0.setting", "is required"),
    ({"figures": [{"id": "f", "title": "F", "kind": "scatter", "setting": "config.n_e"}]},
     "figures.0.setting", "the arm A3C: no such setting"),
    ({"figures": [{"id": "f", "title": "F", "kind": "scatter", "setting": "environment_config.crop"}]},
     "figures.0.setting", "CartPole-v1, Acrobot-v1: no such setting"),
    ({"figures": [{"id": "f", "title": "F", "kind": "scatter", "setting": "learning_rate"}]},
     "figures.0.setting", "is not a setting"),
    ({"figures": [{"id": "f", "title": "F", "kind": "speedups", "reduction": {"ratio_to": "x"}}]},
     "figures.0.reduction.ratio_to", "no arm has this label"),
    ({"figures": [{"id": "f", "title": "F", "kind": "table", "reduction": EVALUATED}]},
     "figures.0.reduction.normalise", "has no such score for CartPole-v1, Acrobot-v1"),
    ({"figures": [{"id": "f", "title": "F", "kind": "sorted", "reduction": {"rule": "best_kept"}}]},
     "figures.0.reduction.rule", "sorted needs one of last"),
    ({"figures": [{"id": "f", "title": "F", "kind": "curves", "reduction": {"source": "evaluations"}}]},
     "figures.0.reduction.source", "curves are of training"),
    ({"figures": [{"id": "f", "title": "F", "kind": "reached"}]},
     "figures.0.reduction.rule", "reached needs one of time_to, time_to_peak"),
    ({"figures": [{"id": "f", "title": "F", "kind": "table", "reduction": BEST_SETTINGS}]},
     "figures.0.reduction.of", "no setting is drawn"),
    ({"draws": {"n": 2, "space": {"config.optimizer": {"values": ["rmsprop", "shared_rmsprop"]}}},
      "arms": [{"label": "A3C", "algorithm": "a3c"}],
      "figures": [{"id": "f", "title": "F", "kind": "table", "reduction": BEST_SETTINGS}]},
     "figures.0.reduction.of", "not every value of config.optimizer is a number"),
    ({"environments": ["ALE/Pong-v5"],
      "figures": [{"id": "f", "title": "F", "kind": "curves", "reduction": {"normalise": "human"}}]},
     "figures.0.reduction.normalise", "curves draws scores as they are"),
    ({"arms": [{"label": "A3C", "algorithm": "a3c"}, {"label": "DQN", "algorithm": "dqn"}],
      "environments": ["ALE/Pong-v5"],
      "figures": [{"id": "f", "title": "F", "kind": "table", "reduction": EVALUATED}]},
     "figures.0.reduction.normalise", "the arms have different evaluation protocols"),
    ({"arms": [{"label": "A3C", "algorithm": "a3c"}], "environments": ["ALE/Pong-v5"],
      "draws": {"n": 2, "space": {"config.evaluation_protocol": {"values": ["noop_starts", "random_seeds"]}}},
      "figures": [{"id": "f", "title": "F", "kind": "table", "reduction": EVALUATED}]},
     "figures.0.reduction.normalise", "different evaluation protocols: no-op starts (A3C), random seeds"),
    ({"arms": [{"label": "A3C", "algorithm": "a3c"}], "environments": ["ALE/Pong-v5"],
      "draws": {"n": 2, "space": {"environment_config.sticky_actions": {"values": [0.0, 0.25]}}},
      "figures": [{"id": "f", "title": "F", "kind": "table", "reduction": EVALUATED}]},
     "figures.0.reduction.normalise", "different evaluation protocols: no-op starts (A3C), sticky actions"),
    ({"arms": [{"label": "A3C", "algorithm": "a3c"}], "environments": ["ALE/Pong-v5"],
      "draws": {"n": 2, "space": {"environment_config.sticky_actions": {"values": [0.0, 0.25]}}},
      "figures": [{"id": "f", "title": "F", "kind": "table", "reduction": {"source": "evaluations"}}]},
     "figures.0.reduction.source", "the draws of an arm have different evaluation protocols: no-op starts"),
    ({"arms": [{"label": "A3C", "algorithm": "a3c"}, {"label": "DQN", "algorithm": "dqn"}],
      "environments": ["ALE/Pong-v5"],
      "figures": [{"id": "f", "title": "F", "kind": "table", "arms": ["A3C"],
                   "reduction": EVALUATED | {"ratio_to": "DQN"}}]},
     "figures.0.reduction.normalise", "the arms have different evaluation protocols"),
    ({"draws": {"n": 2, "space": {"config.t_max": {"values": [5, 20]}}},
      "figures": [{"id": "f", "title": "F", "kind": "bars", "setting": "config.t_max",
                   "metrics": ["speed/agent_steps_per_s"]}]},
     "figures.0.setting", "is drawn, and a bar is of an arm"),
    ({"environments": ["ALE/Pong-v5"],
      "figures": [{"id": "f", "title": "F", "kind": "table", "published": ["random"],
                   "reduction": {"ratio_to": "PAAC"}}]},
     "figures.0.published", "are scores, and the values of ratio_to are not"),
    ({"environments": ["ALE/Pong-v5"],
      "figures": [{"id": "f", "title": "F", "kind": "table", "reduction": {"normalise": "human"}}]},
     "figures.0.reduction.source", "training has no protocol"),
    ({"arms": [{"label": "A3C", "algorithm": "a3c", "environment_config": {"frame_skip": 2}}],
      "environments": ["ALE/Pong-v5"],
      "figures": [{"id": "f", "title": "F", "kind": "table", "reduction": EVALUATED}]},
     "figures.0.reduction.normalise", "A3C on ALE/Pong-v5 differs from the published scores in frame_skip"),
    ({"arms": [{"label": "A3C", "algorithm": "a3c", "environment_config": {"sticky_actions": 0.25}}],
      "environments": ["ALE/Pong-v5"],
      "figures": [{"id": "f", "title": "F", "kind": "table", "reduction": EVALUATED}]},
     "figures.0.reduction.normalise", "has no such score for ALE/Pong-v5 under sticky actions"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "field", "message"), WRONG, ids=[f"{f} {m[:12]}" for _, f, m in WRONG])
def test_wrong_field_is_named_and_nothing_is_started(
    sqlite_service: RunningService, changes: dict[str, Any], field: str, message: str
) -> None:
    answer = sqlite_service.client.post(STUDIES, json={"study": study_body(**changes)})
    assert answer.status_code == 422, answer.text
    problems = {error["field"]: error["message"] for error in answer.json()["errors"]}
    assert message in problems[f"study.{field}"]
    assert n_runs(sqlite_service.engine) == 0
    assert sqlite_service.client.get(STUDIES).json()["items"] == []


def test_environment_that_no_host_can_run_is_refused(sqlite_service: RunningService) -> None:
    add_host(sqlite_service.engine, "a", environments=["CartPole-v1"])
    answer = sqlite_service.client.post(STUDIES, json={"study": study_body()})
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["field"]) == (422, "study.environments.1")
    assert error["message"] == "no host of this installation can run Acrobot-v1"
    run = {"stop": {"agent_steps": 10_000}}
    for host, field, message in (
        ("a", "study.environments.1", "the host a cannot run Acrobot-v1"),
        ("b", "study.run.host", 'this installation has no host "b"'),
    ):
        pinned = study_body(run=run | {"host": host})
        answer = sqlite_service.client.post(STUDIES, json={"study": pinned})
        errors = {error["field"]: error["message"] for error in answer.json()["errors"]}
        assert (answer.status_code, errors.get(field)) == (422, message)
    by_item = sqlite_service.client.post(STUDIES, json={"item": "a3c-figure-2", "scale": "hours"})
    (error,) = by_item.json()["errors"]
    assert (by_item.status_code, error["field"]) == (422, "scale")
    assert n_runs(sqlite_service.engine) == 0


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"item": "a3c-figure-22"}, "item"),
        ({"item": "a3c-figure-2", "scale": "days"}, "scale"),
        (
            {"item": "gorila-table-1", "scale": "hours", "starts": {"ALE/Assault-v5": "agent_starts:a"}},
            "starts",
        ),
        ({}, "body"),
    ],
)
def test_unknown_item_or_scale_is_named(
    sqlite_service: RunningService, body: dict[str, Any], field: str
) -> None:
    answer = sqlite_service.client.post(STUDIES, json=body)
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == [field]


def test_viewers_look_and_operators_change(sqlite_service: RunningService) -> None:
    study = created(sqlite_service.client, draws={"n": 1})
    address = f"{STUDIES}/{study['id']}"
    with (
        sqlite_service.client_as(Role.VIEWER) as viewer,
        sqlite_service.client_as(Role.OPERATOR) as operator,
    ):
        for path in (STUDIES, address, f"{address}/cells", "/api/v1/papers"):
            assert viewer.get(path).status_code == 200
        assert viewer.post(f"{STUDIES}/estimate", json={"item": "a3c-figure-2"}).status_code == 200
        for path in (f"{address}/stop", f"{address}/retry", f"{address}/extend", STUDIES):
            assert viewer.post(path, json={}).status_code == 403
        assert viewer.delete(address).status_code == 403
        assert operator.post(f"{address}/stop").status_code == 200
        assert operator.delete(address).status_code == 204


def test_name_and_notes_change_without_parting_the_runs(service: RunningService, client: Client) -> None:
    study = created(client, concurrency=1)
    body = {"name": "renamed", "notes": "*why*", "concurrency": 100}
    changed = client.patch(f"{STUDIES}/{study['id']}", json=body).json()
    assert (changed["name"], changed["notes"]) == ("renamed", "*why*")
    reconcile(service.engine, study)
    groups = {item["group"] for item in client.get("/api/v1/runs").json()["items"]}
    assert groups == {"methods"}


def test_estimate_counts_reused_runs_and_uses_measured_rates(service: RunningService, client: Client) -> None:
    body = {"study": study_body(environments=["CartPole-v1"])}
    first = client.post(f"{STUDIES}/estimate", json=body).json()
    assert (first["n_runs"], first["n_reused"], first["time_s"]) == (4, 0, None)
    assert {combination["algorithm"] for combination in first["unmeasured"]} == {"paac", "a3c"}
    assert first["agent_steps"] == 40_000
    study = created(client, environments=["CartPole-v1"], draws={"n": 1})
    end_runs(service.engine)
    reconcile(service.engine, study)
    second = client.post(f"{STUDIES}/estimate", json=body).json()
    assert (second["n_reused"], second["agent_steps"], second["unmeasured"]) == (2, 20_000, [])
    assert second["time_s"] == pytest.approx(2 * (10_000 / 500 + 5))
    assert n_runs(service.engine) == 2


def test_estimate_has_memory_and_processes_and_warns_as_the_runs_would(
    sqlite_service: RunningService,
) -> None:
    add_host(sqlite_service.engine, "small", memory_bytes=8 * 2**30, cpu_count=2)
    body = {"item": "gorila-table-4", "scale": "paper"}
    cost = sqlite_service.client.post(f"{STUDIES}/estimate", json=body).json()
    assert (cost["n_runs"], cost["processes"]) == (490, 131)
    assert cost["memory_bytes"] > 100 * 2**30
    gorila = [warning for warning in cost["warnings"] if warning.startswith("Gorila DQN: ")]
    assert ["GiB of memory" in gorila[0], "131 processes on 2 cores" in gorila[1]] == [True, True]


def test_estimate_ends_with_its_request(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def end() -> None:
        raise RequestEnded

    monkeypatch.setattr(deadline, "check", end)
    spec = StudySpec.model_validate(study_body(environments=["CartPole-v1"]))
    with reading(engine) as session, pytest.raises(RequestEnded):
        estimate.estimate(session, spec, 60.0)


def test_estimate_counts_the_slots_of_hosts_that_can_train_the_runs(sqlite_service: RunningService) -> None:
    client, engine = sqlite_service.client, sqlite_service.engine
    add_host(engine, "a", slots=1)
    add_host(engine, "other-queue", slots=8, queues=["gpu"])
    add_host(engine, "away", slots=8, last_seen_at=datetime.now(UTC) - timedelta(days=7))
    body = study_body(environments=["CartPole-v1"])
    for run, n_slots in (({}, 1), ({"queue": "gpu"}, 8), ({"host": "a"}, 1)):
        study = body | {"run": body["run"] | run}
        assert client.post(f"{STUDIES}/estimate", json={"study": study}).json()["slots"] == n_slots, run


def test_time_left_of_runs_that_a_time_limits_needs_no_rate(sqlite_service: RunningService) -> None:
    run = {"stop": {"wall_time_s": 30}}
    study = created(sqlite_service.client, environments=["CartPole-v1"], draws={"n": 1}, run=run)
    assert detail(sqlite_service.client, study)["time_left_s"] == pytest.approx(2 * (30 + 5))


def test_time_left_is_by_the_limit_that_each_run_has_drawn(sqlite_service: RunningService) -> None:
    draws = {"n": 2, "space": {"stop.wall_time_s": {"values": [30, 90]}}}
    study = created(sqlite_service.client, environments=["CartPole-v1"], draws=draws)
    assert detail(sqlite_service.client, study)["time_left_s"] == pytest.approx(2 * (30 + 90 + 2 * 5))


def test_item_of_a_paper_is_started_by_one_request_and_listed_with_it(sqlite_service: RunningService) -> None:
    client = sqlite_service.client
    alone = client.post(STUDIES, json={"item": "a3c-figure-2"}).json()
    assert (alone["state"], alone["scale"], alone["n_runs"]) == ("running", "minutes", 24)
    study = client.post(STUDIES, json={"item": "paac-figure-4"}).json()
    assert (study["definition"], study["scale"]) == ("paac-figures-3-4", "minutes")
    shown = detail(client, study)
    assert [item["label"] for item in shown["items"]] == ["Figure 3", "Figure 4"]
    assert shown["differs"]
    papers = {paper["id"]: paper for paper in client.get("/api/v1/papers").json()["items"]}
    by_item = {item["id"]: item for item in papers["paac"]["items"]}
    for name in ("paac-figure-3", "paac-figure-4"):
        assert [row["id"] for row in by_item[name]["studies"]] == [study["id"]]
    (listed,) = client.get(STUDIES, params={"definition": "paac-figures-3-4"}).json()["items"]
    assert listed["id"] == study["id"]


def test_latest_studies_of_a_definition_are_read_alone(sqlite_service: RunningService) -> None:
    with writing(sqlite_service.engine) as session:
        for number in range(12):
            study = Experiment(
                id=new_id(), created_at=datetime.now(UTC) + timedelta(seconds=number), kind="study",
                name=f"s{number}",
                definition="a3c-figure-2" if number % 2 else "paac-table-1", scale="minutes",
                spec=StudySpec.model_validate(study_body()).model_dump(mode="json"), state="finished",
                state_reason="for the test", revision=0,
            )  # fmt: skip
            session.add(study)
    with reading(sqlite_service.engine) as session:
        latest = repository.of_definitions(session, 5)
    assert {name: [study.name for study in rows] for name, rows in latest.items()} == {
        "a3c-figure-2": ["s11", "s9", "s7", "s5", "s3"], "paac-table-1": ["s10", "s8", "s6", "s4", "s2"]
    }  # fmt: skip


def test_attempts_of_unknown_version_are_not_reused(service: RunningService, client: Client) -> None:
    created(client, draws={"n": 1}, concurrency=100)
    end_runs(service.engine)
    with writing(service.engine) as session:
        for attempt in session.scalars(select(Attempt)):
            attempt.provenance = None
    created(client, name="again", draws={"n": 1}, concurrency=100)
    assert n_runs(service.engine) == 8


def _start_set(service: RunningService, folder: Path, name: str, environment: str) -> str:
    """Create a set of an agent's games as if a worker had verified it; return its id."""
    run = make_run(service.engine, environment=environment)
    add_game(service.engine, service.artifacts, run, folder)
    body = {"name": name, "run": run.id, "points": 5}
    set_id: str = service.client.post("/api/v1/start-sets", json=body).json()["id"]
    mark_verified(service.engine, set_id)
    with writing(service.engine) as session:
        runs.transition(session, runs.get(session, run.id, for_update=True), RunState.STOPPED, "for the test")
    return set_id


def test_study_is_evaluated_from_the_sets_of_its_games_and_says_so(
    service: RunningService, client: Client, tmp_path: Path
) -> None:
    games = ["ALE/Breakout-v5", "ALE/Pong-v5"]
    sets = [_start_set(service, tmp_path, name, game) for name, game in zip("bp", games, strict=True)]
    starts = {games[0]: "agent_starts:b", games[1]: "agent_starts:p"}
    figure = {"id": "scores", "title": "Scores", "kind": "table", "reduction": {"source": "evaluations"}}
    study = created(client, environments=games, starts=starts, figures=[figure], draws={"n": 1})
    with reading(service.engine) as session:
        of_study = session.scalars(select(Run).where(Run.group == study["name"])).all()
    protocols = {(run.environment, run.spec["config"]["evaluation_protocol"]) for run in of_study}
    assert protocols == {(games[0], "agent_starts:b@1"), (games[1], "agent_starts:p@1")}
    drawn = client.get(f"{STUDIES}/{study['id']}/figures/scores").json()
    small = "5 starts from 1 game, 100 frames; small: fewer than 5 games"
    assert f"agent starts, b v1: {small}" in drawn["caption"]
    assert f"agent starts, p v1: {small}" in drawn["caption"]
    end_runs(service.engine, RunState.FAILED)
    assert client.delete(f"/api/v1/start-sets/{sets[1]}").status_code == 204
    refused = client.post(f"{STUDIES}/{study['id']}/retry")
    assert refused.status_code == 422
    [error] = refused.json()["errors"]
    assert (error["field"], error["message"]) == (
        f"starts.{games[1]}",
        "start set p@1 has been deleted",
    )
    added = client.post(f"{STUDIES}/{study['id']}/extend", json={"environments": ["ALE/Qbert-v5"]})
    assert added.json()["errors"][0]["field"] == "environments.0"


def test_set_that_is_deleted_while_runs_wait_ends_their_cells_alone(
    service: RunningService, client: Client, tmp_path: Path
) -> None:
    games = ["ALE/Breakout-v5", "ALE/Pong-v5"]
    sets = [_start_set(service, tmp_path, name, game) for name, game in zip("bp", games, strict=True)]
    starts = {games[0]: "agent_starts:b", games[1]: "agent_starts:p"}
    arms = study_body()["arms"][:1]
    study = created(client, arms=arms, environments=games, starts=starts, draws={"n": 1})
    end_runs(service.engine, RunState.FAILED)
    client.patch(f"{STUDIES}/{study['id']}", json={"concurrency": 1})
    assert client.post(f"{STUDIES}/{study['id']}/retry").status_code == 200
    assert client.delete(f"/api/v1/start-sets/{sets[1]}").status_code == 204
    end_runs(service.engine, attempt=2)
    reconcile(service.engine, study)
    ended = detail(client, study)
    assert (ended["state"], ended["runs"]) == ("finished", {"finished": 1, "invalid": 1})


def test_study_with_a_set_that_it_cannot_start_from_is_refused_with_its_field(
    service: RunningService, client: Client, tmp_path: Path
) -> None:
    _start_set(service, tmp_path, "b", "ALE/Breakout-v5")
    arm = {"label": "PAAC", "algorithm": "paac", "config": {"evaluation_protocol": "agent_starts:b"}}
    protocol = "config.evaluation_protocol"
    refused: list[tuple[dict[str, Any], str, str]] = [
        ({"starts": {"ALE/Pong-v5": "agent_starts:b"}}, "starts.ALE/Pong-v5", "is of ALE/Breakout-v5"),
        (
            {"starts": {"ALE/Pong-v5": "agent_starts:none"}},
            "starts.ALE/Pong-v5",
            "there is no start set none",
        ),
        ({"starts": {"ALE/Qbert-v5": "agent_starts:b"}}, "starts.ALE/Qbert-v5", "not an environment"),
        ({"starts": {"ALE/Pong-v5": "noop_starts"}}, "starts.ALE/Pong-v5", "must start from a set"),
        ({"arms": [arm]}, "arms.0.config.evaluation_protocol", "is of ALE/Breakout-v5"),
        (
            {"draws": {"n": 1, "space": {protocol: {"values": ["noop_starts", "agent_starts:b"]}}}},
            f"draws.space.{protocol}",
            "name the version of each start set, as in agent_starts:b@1",
        ),
    ]
    for changes, field, reason in refused:
        body = study_body(environments=["ALE/Pong-v5"], **changes)
        answer = client.post(STUDIES, json={"study": body})
        assert answer.status_code == 422, answer.text
        errors = {error["field"]: error["message"] for error in answer.json()["errors"]}
        assert reason in errors[f"study.{field}"], errors
    assert client.get(STUDIES).json()["items"] == []


def test_item_that_needs_people_offers_agent_starts_of_every_game_of_a_scale(
    service: RunningService, client: Client, tmp_path: Path
) -> None:
    papers = client.get("/api/v1/papers").json()["items"]
    items = {item["id"]: item for paper in papers for item in paper["items"]}
    assert sorted(name for name, item in items.items() if item["needs_people"]) == [
        "a3c-table-1", "a3c-table-s1", "gorila-figure-3", "gorila-figure-4", "gorila-figure-5",
        "gorila-table-2", "gorila-table-3",
    ]  # fmt: skip
    table = items["gorila-table-2"]
    assert table["needs"].startswith("Needs games played by people")
    [games] = [scale["environments"] for scale in table["scales"] if scale["scale"] == "hours"]
    starts = {}
    for number, game in enumerate(games):
        _start_set(service, tmp_path, f"set-{number}", game)
        starts[game] = f"agent_starts:set-{number}"
    body = {"item": table["id"], "scale": "hours", "starts": starts}
    cost = client.post(f"{STUDIES}/estimate", json=body).json()
    assert any("scores are not normalised" in line for line in cost["differs"])
    assert "No-op starts instead of human starts" not in cost["differs"]
    study = client.post(STUDIES, json=body)
    assert study.status_code == 201, study.text
    shown = detail(client, study.json())
    assert shown["spec"]["starts"] == {game: f"{protocol}@1" for game, protocol in starts.items()}
    assert shown["differs"] == cost["differs"]
    assert {figure["reduction"]["normalise"] for figure in shown["spec"]["figures"]} == {None}
    with_figures = {item["id"] for item in shown["items"] if item["figure"] is not None}
    assert "gorila-table-2" in with_figures
    assert "gorila-table-1" not in with_figures, "from no-op starts"
    first = client.post(STUDIES, json=body | {"starts": {games[0]: starts[games[0]]}})
    assert (first.status_code, games[1] in first.json()["errors"][0]["message"]) == (422, True)
    wrong = starts | {games[1]: "human_starts:set-1"}
    [error] = client.post(STUDIES, json=body | {"starts": wrong}).json()["errors"]
    assert (error["field"], "was not played by people" in error["message"]) == (f"starts.{games[1]}", True)


@pytest.mark.parametrize(
    "item_id", sorted(item.id for _, _, item in ITEMS.values() if item.needs_people), ids=str
)
def test_item_that_needs_people_starts_from_sets_of_their_games_and_says_whose_and_how_many(
    sqlite_service: RunningService, item_id: str
) -> None:
    service, client = sqlite_service, sqlite_service.client
    _, definition, item = ITEMS[item_id]
    scale: Scale = "hours" if "hours" in definition.scales else "paper"
    games = definition.scales[scale].environments
    with service.client_as(Role.OPERATOR) as other:
        people = [person.get("/api/v1/auth/me").json()["id"] for person in (client, other)]
    starts = {}
    for number, game in enumerate(games):
        n_games = 5 if number == 0 else 2
        played = [
            add_recording(service.engine, people[k % 2], environment=game, n=30) for k in range(n_games)
        ]
        body = {"name": f"set-{number}", "recordings": played, "points": 60 if number == 0 else 20}
        mark_verified(service.engine, client.post("/api/v1/start-sets", json=body).json()["id"])
        starts[game] = f"human_starts:set-{number}"
    answer = client.post(STUDIES, json={"item": item_id, "scale": scale, "starts": starts, "name": "ours"})
    assert answer.status_code == 201, answer.text
    study = detail(client, answer.json())
    assert study["spec"]["starts"] == {game: f"{protocol}@1" for game, protocol in starts.items()}
    assert study["differs"][0].startswith("States of games that people have played here")
    evaluated = {
        run["environment"]: client.get(f"/api/v1/runs/{run['id']}").json()["spec"]["config"]
        for run in client.get("/api/v1/runs", params={"group": "ours"}).json()["items"]
    }
    assert evaluated, "runs have been queued"
    for game, config in evaluated.items():
        assert config["evaluation_protocol"] == f"{starts[game]}@1"
    assert item.figure is not None
    drawn = client.get(f"{STUDIES}/{study['id']}/figures/{item.figure.id}").json()
    assert "human starts, set-0 v1: 60 starts from 5 games by 2 people, 500 frames" in drawn["caption"]
    small = "20 starts from 2 games by 2 people, 200 frames; small: fewer than 5 games"
    assert f"human starts, set-1 v1: {small}" in drawn["caption"]


def test_every_item_at_every_scale_can_be_started(sqlite_service: RunningService) -> None:
    with reading(sqlite_service.engine) as session:
        for paper, definition in DEFINITIONS.values():
            for scale in definition.scales:
                study = study_of(paper, definition, scale)
                if study.n_runs <= 800:  # the others have the same arms on as many games
                    _, planned, _ = prepare(session, study)
                    assert len(planned) == study.n_runs, (definition.id, scale)
    without = {name for name, (_, known) in DEFINITIONS.items() if {"hours", "paper"} - known.scales.keys()}
    assert without == {"ga3c-table-1"}, "which is about this installation's machines"


def test_item_whose_draws_choose_a_setting_of_its_preset_can_be_extended(service: RunningService) -> None:
    client = service.client
    study = client.post(STUDIES, json={"item": "a3c-continuous", "scale": "minutes"}).json()
    answer = client.post(f"{STUDIES}/{study['id']}/extend", json={"draws": study["n_runs"] + 1})
    assert (answer.status_code, answer.json()["n_runs"]) == (200, study["n_runs"] + 1), answer.text


def test_extension_is_refused_for_what_it_adds_not_for_what_an_earlier_version_allowed(
    service: RunningService,
) -> None:
    client = service.client
    figure = {"id": "f", "title": "F", "kind": "table", "reduction": EVALUATED}
    body = {"name": "s", "arms": [{"label": "A3C", "algorithm": "a3c"}], "environments": ["ALE/Pong-v5"],
            "draws": {"n": 1}, "run": {"stop": {"agent_steps": 10}}, "figures": [figure]}  # fmt: skip
    study = client.post(STUDIES, json={"study": body}).json()
    refused = client.post(f"{STUDIES}/{study['id']}/extend", json={"environments": ["CartPole-v1"]})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "environments")
    assert "has no such score for CartPole-v1" in refused.text
    with writing(service.engine) as session:
        row = session.get_one(Experiment, study["id"])
        row.spec = row.spec | {"figures": [figure | {"reduction": {"normalise": "human"}}]}
    answer = client.post(f"{STUDIES}/{study['id']}/extend", json={"draws": 2})
    assert (answer.status_code, answer.json()["n_runs"]) == (200, 2), answer.text
