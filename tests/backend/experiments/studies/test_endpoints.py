from collections import Counter
from typing import Any

import pytest
from httpx import Client
from sqlalchemy import Engine, select

from backend import __version__
from backend.db import Attempt, ExperimentCell, Run, Transition
from backend.db.engine import reading, writing
from backend.experiments.experiments import service as experiments
from backend.runs.runs import actions
from backend.runs.runs import service as runs
from backend.specs.annealing import RESUMED_WITH_OTHER_RATES
from backend.specs.states import ENDED, RunState
from tests.support.rows import PATHS, PROVENANCE, add_attempt, add_host, make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.service

STUDIES = "/api/v1/studies"
RATES = {"config.learning_rate": {"distribution": "log_uniform", "low": 1e-4, "high": 1e-2}}


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


def created(client: Client, project: str | None = None, **changes: Any) -> dict[str, Any]:
    answer = client.post(STUDIES, json={"study": study_body(**changes), "project": project})
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
    study = created(client, "paper", concurrency=5)
    assert (study["state"], study["n_runs"]) == ("running", 8)
    assert study["runs"] == {"queued": 5, "waiting": 3}
    started = client.get("/api/v1/runs").json()["items"]
    assert {(run["group"], run["project"]) for run in started} == {("methods", "paper")}
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


def test_attempts_of_unknown_version_are_not_reused(service: RunningService, client: Client) -> None:
    created(client, draws={"n": 1}, concurrency=100)
    end_runs(service.engine)
    with writing(service.engine) as session:
        for attempt in session.scalars(select(Attempt)):
            attempt.provenance = None
    created(client, name="again", draws={"n": 1}, concurrency=100)
    assert n_runs(service.engine) == 8
