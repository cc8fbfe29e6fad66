from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backend.access.auth import repository as auth
from backend.db import Branch, Checkpoint, Episode, Job, Recording, Run
from backend.db.engine import reading, writing
from backend.db.job import BRANCH
from backend.fleet.jobs import repository as job_rows
from backend.fleet.jobs import service as jobs
from backend.platform.principals import Role
from backend.replays.branches import repository
from backend.replays.branches import service as branches
from backend.replays.recordings import repository as recording_rows
from backend.upkeep.retention import service as retention
from tests.support.artifacts import N_STEPS, make_episode
from tests.support.branches import continuation, mark_played
from tests.support.rows import external_request, make_checkpoint, make_run
from tests.support.service import RunningService
from tests.support.start_sets import add_recording

pytestmark = pytest.mark.service

URL = "/api/v1/branches"


def _episode(service: RunningService, folder: Path, **changes: Any) -> tuple[Run, Episode, Checkpoint]:
    """A run with an episode of five decisions, each of reward 1, and a checkpoint."""
    run = make_run(service.engine, **changes)
    episode = make_episode(service.engine, run, service.artifacts, folder, agent_steps=140)
    return run, episode, make_checkpoint(service.engine, run, 100)


def _create(service: RunningService, episode: Episode, **body: Any) -> dict[str, Any]:
    answer = service.client.post(URL, json={"episode": episode.id, "decision": 1} | body)
    assert answer.status_code == 201, answer.text
    row: dict[str, Any] = answer.json()
    return row


def test_branch_waits_for_a_worker_and_then_has_returns_beside_the_value(
    service: RunningService, tmp_path: Path
) -> None:
    run, episode, checkpoint = _episode(service, tmp_path, config={"gamma": 0.5})
    row = _create(service, episode, continuations=3, horizon=2, seed=4, first_action=1)
    expected = {
        "episode_id": episode.id, "run_id": run.id, "state": "queued", "error": None, "decision": 1,
        "n_continuations": 3, "horizon": 2, "seed": 4, "first_action": 1, "outcome": None,
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected
    assert row["policy"] == {
        "checkpoint": checkpoint.id, "run_id": run.id, "run_name": run.name, "agent_steps": 100,
        "action_values": False, "gamma": 0.5, "reward_clip": None,
    }  # fmt: skip
    assert row["episode"] == {
        "value": None, "true_return": 4, "discounted_return": 1.875, "length_steps": N_STEPS - 1
    }  # fmt: skip
    with writing(service.engine) as session:
        job = jobs.claim(session, "here", 10, ["CartPole-v1"])
    assert job is not None
    assert (job.kind, job.target_id, job.run_id) == ("branch", row["id"], run.id)
    assert service.client.get(f"{URL}/{row['id']}").json()["state"] == "running"
    mark_played(
        service.engine,
        row["id"],
        continuation([1.0, 4.0]),
        continuation([1.0], end="terminated", last_value=None),
        continuation([3.0, 8.0], n_valued=1, last_value=None),
    )
    done = service.client.get(f"{URL}/{row['id']}").json()
    outcome = done["outcome"]
    assert (done["state"], outcome["value"], outcome["policy"]) == ("done", 1.5, [0.25, 0.75])
    assert [line["true_return"] for line in outcome["continuations"]] == [5, 1, 11]
    assert [line["discounted_return"] for line in outcome["continuations"]] == [3.5, 1, 3]
    error = pytest.approx(0.7637626)
    half = pytest.approx(4.303 * 0.7637626)
    assert outcome["discounted_return"] == {"mean": 2.5, "standard_error": error, "half_interval": half}
    assert outcome["true_return"]["mean"] == pytest.approx(17 / 3)
    assert service.client.get(URL, params={"episode": episode.id}).json()["items"] == [done]
    assert service.client.get(URL, params={"episode": run.id}).json()["items"] == []


def test_rewards_are_clipped_as_the_agent_learns_from_them(service: RunningService, tmp_path: Path) -> None:
    _, episode, _ = _episode(service, tmp_path, config={"gamma": 0.5, "reward_clip": 0.5})
    row = _create(service, episode, continuations=1)
    assert (row["policy"]["reward_clip"], row["episode"]["discounted_return"]) == (0.5, 0.9375)
    mark_played(service.engine, row["id"], continuation([4.0, -4.0]))
    outcome = service.client.get(f"{URL}/{row['id']}").json()["outcome"]
    assert outcome["discounted_return"] == {
        "mean": 0.5 - 0.25 + 0.5, "standard_error": None, "half_interval": None
    }  # fmt: skip
    assert outcome["true_return"]["mean"] == 0


@pytest.mark.parametrize(
    ("lives", "n_valued"),
    [((3, 3, 2, 2, 0), 2), ((3, 2, 2, 2, 0), 1), ((3, 3, 3, 3, 3), 4)],
    ids=["a life lost on the way", "a life lost at the decision", "none lost"],
)
def test_episode_is_valued_up_to_its_next_lost_life_if_the_agent_learned_so(
    sqlite_service: RunningService, tmp_path: Path, lives: tuple[int, ...], n_valued: int
) -> None:
    def valued_return(*, life_loss_terminal: bool) -> float:
        run = make_run(
            sqlite_service.engine,
            environment="ALE/Pong-v5",
            environment_config={"life_loss_terminal": life_loss_terminal},
            config={"gamma": 0.5},
        )
        episode = make_episode(sqlite_service.engine, run, sqlite_service.artifacts, tmp_path, lives)
        make_checkpoint(sqlite_service.engine, run)
        row = _create(sqlite_service, episode, decision=1)
        assert row["episode"]["true_return"] == 4
        return float(row["episode"]["discounted_return"])

    assert valued_return(life_loss_terminal=True) == sum(0.5**t for t in range(n_valued))
    assert valued_return(life_loss_terminal=False) == 1.875


def test_branch_takes_the_nearest_checkpoint_or_one_of_another_run(
    service: RunningService, tmp_path: Path
) -> None:
    run, episode, _ = _episode(service, tmp_path)
    near = make_checkpoint(service.engine, run, 150)
    make_checkpoint(service.engine, run, 141, removed=True)
    make_checkpoint(service.engine, run, 142, superseded=True)
    assert _create(service, episode)["policy"]["checkpoint"] == near.id
    other = make_run(service.engine, algorithm="one_step_q", name="other")
    foreign = make_checkpoint(service.engine, other, 70)
    policy = _create(service, episode, checkpoint=foreign.id)["policy"]
    assert (policy["run_id"], policy["run_name"], policy["agent_steps"]) == (other.id, "other", 70)
    assert policy["action_values"]
    with reading(service.engine) as session:
        assert session.query(Job).filter_by(kind="branch", run_id=run.id).count() == 2


def test_invalid_branch_is_rejected_with_field_and_nothing_starts(
    service: RunningService, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    run, episode, _ = _episode(service, tmp_path)
    pong = make_checkpoint(service.engine, make_run(service.engine, environment="ALE/Pong-v5"))
    removed = make_checkpoint(service.engine, run, 50, removed=True)
    answer = service.client.post("/api/v1/runs", json=external_request())
    with reading(service.engine) as session:
        elsewhere = session.get_one(Run, answer.json()["items"][0]["id"])
    theirs = make_checkpoint(service.engine, elsewhere)
    wrong: list[tuple[str, Any]] = [
        ("episode", "0" * 26),
        ("episode", "../x"),
        ("decision", N_STEPS),
        ("decision", -1),
        ("decision", 10**12),
        ("decision", 1.5),
        ("continuations", 0),
        ("continuations", 10**6),
        ("horizon", 0),
        ("horizon", 10**9),
        ("first_action", 2),
        ("first_action", -1),
        ("first_action", "LEFT"),
        ("seed", -1),
        ("checkpoint", "0" * 26),
        ("checkpoint", "x"),
        ("checkpoint", removed.id),
        ("checkpoint", pong.id),
        ("checkpoint", theirs.id),
        ("colour", 1),
    ]
    for field, value in wrong:
        with subtests.test(field=field, value=value):
            body = {"episode": episode.id, "decision": 1} | {field: value}
            answer = service.client.post(URL, json=body)
            assert answer.status_code == 422, answer.text
            assert [error["field"] for error in answer.json()["errors"]] == [field]
    bare = make_episode(service.engine, make_run(service.engine), service.artifacts, tmp_path)
    answer = service.client.post(URL, json={"episode": bare.id, "decision": 1})
    assert (answer.status_code, "no checkpoint" in answer.json()["detail"]) == (409, True)
    assert service.client.get(URL).json()["items"] == []
    with reading(service.engine) as session:
        assert session.query(Job).count() == 0


def test_checkpoint_that_sees_otherwise_is_rejected(service: RunningService, tmp_path: Path) -> None:
    _, episode, _ = _episode(service, tmp_path, environment="ALE/Pong-v5")
    small = make_run(service.engine, environment="ALE/Pong-v5", environment_config={"crop": True})
    body = {"episode": episode.id, "decision": 1, "checkpoint": make_checkpoint(service.engine, small).id}
    answer = service.client.post(URL, json=body)
    assert answer.status_code == 422
    message = "was trained with crop true, and the episode was played with false"
    assert answer.json()["errors"] == [{"field": "checkpoint", "message": message}]
    slow = make_run(service.engine, environment="ALE/Pong-v5", environment_config={"frame_skip": 2})
    body["checkpoint"] = make_checkpoint(service.engine, slow).id
    [error] = service.client.post(URL, json=body).json()["errors"]
    assert error["message"] == "it was trained with action repeat 2, and the game has 4"


def test_branches_of_an_episode_and_waiting_ones_are_bounded(
    service: RunningService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, episode, _ = _episode(service, tmp_path)
    monkeypatch.setattr(branches, "MAX_WAITING_OF_USER", 2)
    body = {"episode": episode.id, "decision": 1, "continuations": 1}
    rows = [_create(service, episode, continuations=1) for _ in range(2)]
    answer = service.client.post(URL, json=body)
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "10")
    monkeypatch.setattr(branches, "MAX_PER_EPISODE", 2)
    answer = service.client.post(URL, json=body)
    assert (answer.status_code, "delete some" in answer.json()["detail"]) == (409, True)
    assert service.client.delete(f"{URL}/{rows[0]['id']}").status_code == 204
    assert service.client.post(URL, json=body).status_code == 201


def test_repeated_request_creates_one_branch(sqlite_service: RunningService, tmp_path: Path) -> None:
    _, episode, _ = _episode(sqlite_service, tmp_path)
    body = {"episode": episode.id, "decision": 1}
    answers = [sqlite_service.client.post(URL, json=body, headers={"Idempotency-Key": "k"}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].json() == answers[1].json()
    assert len(sqlite_service.client.get(URL).json()["items"]) == 1


def test_deleted_branch_is_gone_and_its_result_discarded(service: RunningService, tmp_path: Path) -> None:
    _, episode, _ = _episode(service, tmp_path)
    row = _create(service, episode)
    with writing(service.engine) as session:
        job = jobs.claim(session, "here", 10, ["CartPole-v1"])
    assert job is not None
    assert service.client.delete(f"{URL}/{row['id']}").status_code == 204
    assert service.client.get(f"{URL}/{row['id']}").status_code == 404
    assert service.client.delete(f"{URL}/{row['id']}").status_code == 404
    with writing(service.engine) as session:
        assert not jobs.finish(session, job.id, job.tries)
        assert session.query(Job).count() == 0


def test_branches_are_deleted_with_their_episode(service: RunningService, tmp_path: Path) -> None:
    _, episode, _ = _episode(service, tmp_path)
    _create(service, episode)
    with writing(service.engine) as session:
        session.delete(session.get_one(Episode, episode.id))
    with reading(service.engine) as session:
        assert session.query(Branch).count() == 0


def test_checkpoint_of_a_waiting_branch_is_kept(service: RunningService, tmp_path: Path) -> None:
    run, episode, checkpoint = _episode(service, tmp_path)
    row = _create(service, episode)
    with writing(service.engine) as session:
        retention.remove_thinned_checkpoints(session, run.id, [checkpoint.file])
        assert not session.get_one(Checkpoint, checkpoint.id).removed
        job = jobs.claim(session, "here", 10, ["CartPole-v1"])
        assert job is not None
        jobs.fail(session, job.id, job.tries, "the engine died")
    failed = service.client.get(f"{URL}/{row['id']}").json()
    assert (failed["state"], failed["error"]) == ("failed", "the engine died")
    with writing(service.engine) as session:
        retention.remove_thinned_checkpoints(session, run.id, [checkpoint.file])
        assert session.get_one(Checkpoint, checkpoint.id).removed


def test_viewers_read_branches_and_create_none(service: RunningService, tmp_path: Path) -> None:
    _, episode, _ = _episode(service, tmp_path)
    row = _create(service, episode)
    with service.client_as(Role.VIEWER) as viewer:
        assert viewer.get(f"{URL}/{row['id']}").status_code == 200
        assert viewer.post(URL, json={"episode": episode.id, "decision": 1}).status_code == 403
        assert viewer.delete(f"{URL}/{row['id']}").status_code == 403


def test_fan_draws_continuations_their_mean_the_episode_and_the_value(
    service: RunningService, tmp_path: Path
) -> None:
    _, episode, _ = _episode(service, tmp_path, config={"gamma": 0.5})
    row = _create(service, episode, continuations=2, first_action=1)
    figure = "/api/v1/figures/branch"
    assert service.client.get(figure, params={"branch": row["id"]}).status_code == 409
    assert service.client.get(figure, params={"branch": "0" * 26}).status_code == 404
    mark_played(
        service.engine,
        row["id"],
        continuation([1.0, 4.0]),
        continuation([3.0], end="terminated", last_value=None),
    )

    def drawn(returns: str) -> dict[str, Any]:
        answer = service.client.get(figure, params={"branch": row["id"], "returns": returns})
        assert answer.status_code == 200
        return {trace["name"]: trace for trace in answer.json()["data"]}

    discounted = drawn("discounted")
    assert discounted["mean so far ± standard error"]["y"] == [0, 2, 3]
    whole = discounted["mean whole return, 95 %: what V predicts"]
    assert whole["y"] == [3.25], "of 3.5, with V of its last state, and 3"
    assert whole["error_y"]["array"] == pytest.approx([12.706 * 0.25])
    assert discounted["the episode itself"]["y"] == [0, 1, 1.5]
    assert discounted["V at the decision"]["y"] == [1.5, 1.5]
    assert discounted["return at its end"]["y"] == [3]
    assert discounted["return with V of its last state"]["y"] == [3.5]
    true = drawn("true")
    assert true["mean so far ± standard error"]["y"] == [0, 2, 4]
    assert "V at the decision" not in true, "it predicts discounted rewards"
    assert not any("whole return" in name for name in true)
    heights = [
        service.client.get(figure, params={"branch": row["id"], "width": width})
        .json()["layout"]
        .get("height")
        for width in (320, 960)
    ]
    assert heights == [480, None], "the legend takes more rows on a phone"
    for form in ("csv", "matplotlib", "caption"):
        answer = service.client.get(figure, params={"branch": row["id"], "format": form})
        assert answer.status_code == 200, answer.text


def _joint(
    service: RunningService,
    user_id: str,
    episode: Episode,
    decision: int,
    n: int,
    turns: Sequence[tuple[int, int]] = (),
    **changes: Any,
) -> str:
    """Store a game of n decisions that went on from a decision of an episode, with a reward of 1 each."""
    recording_id = add_recording(
        service.engine,
        user_id,
        environment="CartPole-v1",
        protocol="joint",
        n=n,
        ended=False,
        turns=turns,
        rewards=[9.0] * decision + [1.0] * (n - decision),
    )
    with writing(service.engine) as session:
        recording = session.get_one(Recording, recording_id)
        recording.source = {
            "kind": "episode", "id": episode.id, "run_id": episode.run_id, "decision": decision
        }  # fmt: skip
        recording.ended_at = datetime.now(UTC)
        recording.actors = [{"kind": "person", "user_id": user_id}]
        for name, value in changes.items():
            setattr(recording, name, value)
    return recording_id


def test_fan_has_the_games_that_people_played_from_its_decision(
    service: RunningService, tmp_path: Path
) -> None:
    _, episode, _ = _episode(service, tmp_path, config={"gamma": 0.5})
    row = _create(service, episode, continuations=1)
    mark_played(service.engine, row["id"], continuation([1.0, 4.0, 0.0]))
    with writing(service.engine) as session:
        ada = auth.add_user(session, "ada", Role.OPERATOR).id
    finished = _joint(service, ada, episode, 1, 4, finished=True)
    by_script = _joint(service, ada, episode, 1, 9, actors=[{"kind": "script", "user_id": ada}])
    both = [{"kind": "person", "user_id": ada}, {"kind": "agent", "run_id": episode.run_id}]
    _joint(service, ada, episode, 1, 4, [(1, 2), (0, 1), (1, 1)], actors=both)
    _joint(service, ada, episode, 1, 4, [(0, 1), (1, 3)], actors=both)
    _joint(service, ada, episode, 1, 1)  # left at once
    _joint(service, ada, episode, 1, 4, actors=[])  # damaged: it does not say who has acted
    elsewhere = _joint(service, ada, episode, 2, 4)
    damaged = _joint(service, ada, episode, 1, 4)
    with writing(service.engine) as session:
        [part] = recording_rows.parts(session, damaged)
        part.content += b"x"

    def drawn(returns: str) -> dict[str, Any]:
        query = {"branch": row["id"], "returns": returns}
        answer = service.client.get("/api/v1/figures/branch", params=query)
        assert answer.status_code == 200, answer.text
        return {
            trace["name"]: (trace["x"], trace["y"])
            for trace in answer.json()["data"]
            if "to the end" in trace["name"] or "before the end" in trace["name"]
        }

    assert drawn("true") == {
        "ada (to the end)": ([0, 1, 2, 3], [0, 1, 2, 3]),
        "a script of ada (stopped before the end)": ([0, 1, 2, 3], [0, 1, 2, 3]),
        "an agent and ada (stopped before the end)": ([0, 1, 2, 3], [0, 1, 2, 3]),
        "an agent (stopped before the end)": ([0, 1, 2, 3], [0, 1, 2, 3]),
    }, "as far as the continuations go"
    assert drawn("discounted")["ada (to the end)"][1] == [0, 1, 1.5, 1.75]
    with writing(service.engine) as session:
        run = session.get_one(Run, episode.run_id)
        run.spec = run.spec | {"config": {"of_another_version": 1}}
    assert "ada (to the end)" in drawn("true")
    games = service.client.get("/api/v1/recordings", params={"episode": episode.id}).json()["items"]
    assert {game["id"] for game in games} >= {finished, by_script, elsewhere, damaged}
    assert service.client.get("/api/v1/recordings", params={"episode": row["id"]}).json()["items"] == []


def test_checkpoint_of_a_branch_is_awaited_until_it_is_played(
    service: RunningService, tmp_path: Path
) -> None:
    _, episode, _ = _episode(service, tmp_path)
    row = _create(service, episode)
    for state, is_awaited in (("queued", True), ("running", True), ("done", False), ("failed", False)):
        with writing(service.engine) as session:
            branch = branches.get(session, row["id"])
            job = job_rows.find(session, BRANCH, branch.id)
            assert job is not None
            job.state = state
            session.flush()
            awaited = repository.awaited_checkpoints(session, branch.policy_run_id)
            assert awaited == ({branch.checkpoint} if is_awaited else set()), state


def test_rewards_of_many_continuations_are_kept_exactly(service: RunningService, tmp_path: Path) -> None:
    _, episode, _ = _episode(service, tmp_path)
    row = _create(service, episode, continuations=64, horizon=5000)
    rng = np.random.default_rng(0)
    rewards = [rng.normal(size=n).astype(np.float32).tolist() for n in rng.integers(1, 300, 64)]
    mark_played(service.engine, row["id"], *(continuation(line) for line in rewards))
    with reading(service.engine) as session:
        kept = branches.rewards_of(session, branches.get(session, row["id"]))
    assert [line.tolist() for line in kept] == rewards
