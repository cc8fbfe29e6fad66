"""One damaged row breaks no list and no page: a law over every JSON column and every address that is read."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from backend.db import (
    AlertRule,
    AuditEntry,
    Base,
    Branch,
    LiveSettings,
    PlaySession,
    RetentionSettings,
    ScriptProcess,
    StoredAgent,
    StoredSaliency,
)
from backend.db.base import new_id
from backend.db.checked_json import DAMAGED, CheckedJson
from backend.db.clock import utc_now
from backend.db.engine import reading, writing
from backend.experiments.experiments import service as experiments
from backend.fleet.hosts import repository as hosts
from backend.specs.states import RunState
from backend.upkeep.retention import service as retention
from tests.support.artifacts import make_episode
from tests.support.routes import addresses
from tests.support.rows import (
    CARTPOLE,
    PROVENANCE,
    add_attempt,
    add_host,
    agent_card,
    evaluation_row,
    make_checkpoint,
    make_run,
)
from tests.support.service import RunningService
from tests.support.start_sets import add_recording

pytestmark = pytest.mark.service

COLUMNS = sorted(
    (table.name, column.name)
    for table in Base.metadata.tables.values()
    for column in table.columns
    if isinstance(column.type, CheckedJson)
)
DAMAGES = ("[]", "{}", "[1]", '{"a": 1}', '"x"', "5", "null", "{")

LISTS = {
    "runs": 3,
    "sweeps": 2,
    "studies": 2,
    "play": 2,
    "recordings": 2,
    "branches": 2,
    "hosts": 2,
    "views": 2,
    "shares": 2,
}
"""Address -> how many of its items there are."""
ENVIRONMENT = {
    "id": "Custom/Grid-v0",
    "title": "Grid",
    "observation": "vector",
    "actions": "discrete",
    "action_names": ["left", "right"],
}


class Rows:
    """A service with rows in every table that has a JSON column, and the ids of one of each kind."""

    def __init__(self, service: RunningService, folder: Path) -> None:
        self.service = service
        engine, client = service.engine, service.client
        run = make_run(engine, RunState.FINISHED)
        self.run_id = run.id
        others = [make_run(engine, RunState.FINISHED), make_run(engine)]
        for finished in (run, others[0]):
            add_attempt(engine, finished.id, provenance=PROVENANCE.model_dump())
        checkpoint = make_checkpoint(engine, run)
        episode = make_episode(engine, run, service.artifacts, folder)
        add_host(engine, "a", custom_environments=[ENVIRONMENT], load={"cpu_pct": 1.0})
        add_host(engine, "b")
        user = client.get("/api/v1/auth/me").json()["id"]
        recording, _ = (add_recording(engine, user) for _ in range(2))
        sweep = {"name": "rates", "run": CARTPOLE, "space": {"config.gamma": {"values": [0.9, 0.99]}}}
        study = {
            "name": "methods",
            "arms": [{"label": label, "algorithm": label} for label in ("paac", "a3c")],
            "environments": ["CartPole-v1"],
            "draws": {"n": 2},
            "run": {"stop": {"agent_steps": 10_000}},
            "figures": [{"id": "scores", "title": "Scores", "kind": "table"}],
        }
        ids = {"episode_id": episode.id, "recording_id": recording, "checkpoint_id": checkpoint.id}
        for path, body in (("sweeps", sweep), ("studies", {"study": study})):
            created = [client.post(f"/api/v1/{path}", json=body) for _ in range(2)]
            assert [answer.status_code for answer in created] == [201, 201], created[0].text
            ids["sweep_id" if path == "sweeps" else "study_id"] = created[0].json()["id"]
        views = [client.post("/api/v1/views", json={"name": name, "document": {}}) for name in "ab"]
        for view in views:
            ids["view_id"] = view.json()["id"]
            changed = {"document": {"filter": "seed=1"}}
            client.patch(f"/api/v1/views/{ids['view_id']}", json=changed).raise_for_status()
        for _ in range(2):
            page = {"document": {"runs": [run.id]}}
            ids["share_id"] = client.post("/api/v1/shares", json=page).json()["id"]
        of_policy = {
            "episode_id": episode.id,
            "run_id": run.id,
            "created_at": utc_now(),
            "policy_run_id": run.id,
            "checkpoint": checkpoint.file,
            "checkpoint_id": checkpoint.id,
            "checkpoint_agent_steps": 100,
            "action_values": False,
        }
        own = {"value": 0.1, "true_return": 1.0, "discounted_return": 1.0, "length_steps": 1, "n_valued": 1}
        saliency = {
            "height": 1, "width": 1, "rows": [0], "columns": [0], "policy": [[0.1]], "value": [[0.1]],
            "frame": "AA==", "channels": 1,
        }  # fmt: skip
        played = [
            PlaySession(
                id=new_id(),
                user_id=user,
                environment="ALE/Breakout-v5",
                environment_config={},
                scripted=False,
                actors=[{"kind": "person", "user_id": user}, {"kind": "agent", "agent_steps": 100}],
                agent={"run_id": run.id, "checkpoint_id": checkpoint.id},
                source={"kind": "episode", "id": episode.id, "run_id": run.id, "decision": 0},
                state="ended",
                created_at=utc_now(),
            )
            for _ in range(2)
        ]
        branches = [
            Branch(
                id=new_id(),
                decision=0,
                n_continuations=1,
                horizon=3,
                seed=1,
                gamma=0.99,
                episode_outcome=own,
                outcome={
                    "value": 0.1,
                    "policy": [0.5],
                    "continuations": [
                        {name: value for name, value in own.items() if name != "value"}
                        | {"end": "horizon", "last_value": 0.1}
                    ],
                },
                **of_policy,
            )
            for _ in range(2)
        ]
        ids |= {"source": new_id()}
        process = ScriptProcess(run_id=run.id, source=ids["source"], provenance={"host": "lab-3"})
        ids |= {"session_id": played[0].id, "branch_id": branches[0].id, "figure_id": "scores"}
        self.ids = ids
        with writing(engine) as session:
            session.add_all(
                [
                    *played,
                    *branches,
                    process,
                    StoredSaliency(id=new_id(), decision=0, map=saliency, **of_policy),
                    StoredAgent(
                        id=new_id(),
                        run_id=run.id,
                        checkpoint_id=checkpoint.id,
                        checkpoint=checkpoint.file,
                        format="safetensors",
                        created_at=utc_now(),
                        card=agent_card(run.id).model_dump(mode="json"),
                    ),
                    evaluation_row(run.id, 100, 1.0),
                    LiveSettings(
                        run_id=run.id, version=1, requested_at=utc_now(), changes={"beta": 0.5}, state="asked"
                    ),
                    RetentionSettings(
                        scope="installation", settings={"videos_days": 3}, changed_at=utc_now()
                    ),
                    RetentionSettings(scope="group:g", settings={"videos_days": 3}, changed_at=utc_now()),
                    AlertRule(id=new_id(), owner_id=user, created_at=utc_now(), kinds=["failed"]),
                    AuditEntry(id=new_id(), time=utc_now(), action="x", path="/", body={}, request_id="r"),
                ]
            )
        with reading(engine) as session:
            assert not [name for name, _ in COLUMNS if not _has_rows(session, name)]

    def read_all(self) -> Iterator[tuple[str, Any]]:
        """Every address that is read, and its answer."""
        parameters: dict[str, Any] = {
            "run": self.run_id, "metric": "rollout/episode_return", "figure": "curve", "x": "config.gamma",
            "panel": "value", "episode": self.ids["episode_id"], "branch": self.ids["branch_id"],
            "format": "csv", "by": "config.gamma", "setting": "config.gamma", "decision": 0,
            "range_from": 0, "range_to": 1,
        }  # fmt: skip
        for method, path in addresses(self.service, self.run_id, **self.ids):
            if method == "GET" and not path.endswith("/events"):
                yield path, self.service.client.get(path, params=parameters)
                yield path, self.service.client.get(path)
        for path in ("runs?spec=true", "runs?filter=config.gamma>0", "runs?sort=config.gamma"):
            yield path, self.service.client.get(f"/api/v1/{path}")


def _has_rows(session: Session, table: str) -> bool:
    return session.execute(text(f"SELECT 1 FROM {table}")).first() is not None


@pytest.fixture
def rows(sqlite_service: RunningService, tmp_path: Path) -> Rows:
    return Rows(sqlite_service, tmp_path)


def _damage(rows: Rows, table: str, column: str, value: str) -> None:
    """Damage this column of one row, whichever is first."""
    first = f"(SELECT MIN(rowid) FROM {table})"
    with rows.service.engine.begin() as connection:
        connection.execute(
            text(f"UPDATE {table} SET {column} = :value WHERE rowid = {first}"),
            {"value": value},
        )


def _check(rows: Rows, damage: object) -> None:
    answers = rows.read_all()
    failed = [(path, answer.status_code, answer.text) for path, answer in answers if answer.is_server_error]
    assert not failed, (damage, failed[:5])
    for name, n in LISTS.items():
        answer = rows.service.client.get(f"/api/v1/{name}").json()
        assert len(answer["items"]) >= n, (damage, name)


@pytest.mark.parametrize(
    "damage", [*(pytest.param(damage, marks=pytest.mark.long) for damage in ("[]", "{}")), "{"]
)
def test_damaged_rows_break_no_list(rows: Rows, damage: str) -> None:
    _check(rows, "nothing")
    for table, column in COLUMNS:
        _damage(rows, table, column, damage)
    _check(rows, damage)


@pytest.mark.long
@pytest.mark.parametrize("damaged", COLUMNS, ids=".".join)
def test_damaged_row_breaks_no_list_whatever_its_column_has(rows: Rows, damaged: tuple[str, str]) -> None:
    for damage in DAMAGES:
        _damage(rows, *damaged, damage)
        _check(rows, (damaged, damage))


def test_damaged_sweep_and_study_are_stopped_start_nothing_and_can_be_deleted(rows: Rows) -> None:
    client = rows.service.client
    for path, name in (("sweeps", "sweep_id"), ("studies", "study_id")):
        row_id = rows.ids[name]
        for change in ("spec = '[]'", "spec = json_remove(spec, '$.run', '$.arms')", "state = 'nonsense'"):
            with rows.service.engine.begin() as connection:
                connection.execute(text(f"UPDATE experiments SET {change} WHERE id = '{row_id}'"))
            page = client.get(f"/api/v1/{path}").json()["items"]
            [shown] = [item for item in page if item["id"] == row_id]
            assert (shown["state"], shown["state_reason"]) == ("stopped", DAMAGED)
            assert [item["state"] for item in page if item["id"] != row_id] == ["running"]
            with reading(rows.service.engine) as session:
                assert not experiments.is_due(session, row_id)
            with writing(rows.service.engine) as session:
                assert not experiments.reconcile(session, row_id)
        assert client.delete(f"/api/v1/{path}/{row_id}").status_code == 204


@pytest.mark.parametrize(
    "damage",
    [*(pytest.param(damage, marks=pytest.mark.long) for damage in ("[]", "{")), '{"newer": "specification"}'],
)
def test_damaged_specification_is_never_replaced_by_what_is_shown_for_it(rows: Rows, damage: str) -> None:
    client = rows.service.client
    ids = {"sweeps": rows.ids["sweep_id"], "studies": rows.ids["study_id"]}
    for path, row_id in ids.items():
        with rows.service.engine.begin() as connection:
            parameters = {"spec": damage, "id": row_id}
            connection.execute(text("UPDATE experiments SET spec = :spec WHERE id = :id"), parameters)
        changed = client.patch(f"/api/v1/{path}/{row_id}", json={"notes": "a note"})
        assert (changed.status_code, changed.json()["detail"]) == (
            409,
            f"{DAMAGED}: it can be read, exported and deleted, but nothing else",
        )
        with rows.service.engine.connect() as connection:
            stored = connection.execute(text("SELECT spec FROM experiments WHERE id = :id"), {"id": row_id})
            assert stored.scalar_one() == damage


def test_damaged_host_loses_what_is_damaged_only(rows: Rows) -> None:
    engine = rows.service.engine
    described: list[dict[str, Any]] = [ENVIRONMENT | {"actions": "none"}, {"refusal": "x"}, ENVIRONMENT]
    with writing(engine) as session:
        host = hosts.get(session, "a")
        assert host is not None
        host.custom_environments, host.load = described, {"cpu_pct": "much"}
    with reading(engine) as session:
        assert list(hosts.custom_environments(session)) == [ENVIRONMENT["id"]]
    first = rows.service.client.get("/api/v1/hosts").json()["items"][0]
    assert (first["id"], first["load"]["cpu_pct"]) == ("a", None)


def test_damaged_retention_settings_remove_nothing(rows: Rows) -> None:
    for value in ("[]", "{", '{"videos_days": "soon"}'):
        with rows.service.engine.begin() as connection:
            connection.execute(text("UPDATE retention_settings SET settings = :value"), {"value": value})
        with reading(rows.service.engine) as session:
            policies = retention.policies(session)
        assert (policies.installation.videos_days, policies.of("g").videos_days) == (None, None)
