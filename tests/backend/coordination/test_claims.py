from datetime import timedelta
from threading import Barrier, Thread
from typing import Any

import pytest
from sqlalchemy import Engine, select, update
from sqlalchemy.orm import Session

from backend.analysis.media import service as media
from backend.coordination import claims
from backend.db import Attempt, Checkpoint, Episode, Evaluation, Host, Media, Run
from backend.db.base import new_id
from backend.db.checked_json import DAMAGED
from backend.db.clock import database_now
from backend.db.engine import reading, writing
from backend.runs.runs import actions, repository, service
from backend.specs.events import HistogramEvent
from backend.specs.run import parse_run_spec
from backend.specs.states import RunState
from tests.support.rows import CARTPOLE, add_host, episode_row, evaluation_row, make_run
from tests.support.waiting import Patience
from tests.workers.support import GIB, add_checkpoint, claim, expire_lease, run_row


def test_claim_takes_lease_and_opens_attempt(engine: Engine) -> None:
    add_host(engine, "a")
    run = make_run(engine)
    won = claim(engine, lease_s=3000)
    assert won == claims.Claim(run.id, 1, run.memory_estimate_bytes, True)
    row = run_row(engine, run.id)
    assert (row.state, row.host, row.attempt, row.attempts_without_checkpoint) == ("starting", "a", 1, 1)
    with reading(engine) as session:
        now = database_now(session)
        attempt = repository.attempts(session, run.id)[0]
    assert row.lease_expires_at is not None
    assert timedelta(seconds=2000) < row.lease_expires_at - now <= timedelta(seconds=3000)
    assert (attempt.number, attempt.host, attempt.ended_at, attempt.log_offset_bytes) == (1, "a", None, 0)


@pytest.mark.parametrize(
    ("changes", "may_use_gpu"),
    [({"device": "auto"}, True), ({"device": "cpu"}, False), ({"algorithm": "a3c"}, False)],
)
def test_claim_states_whether_the_run_may_use_a_gpu(
    engine: Engine, changes: dict[str, Any], may_use_gpu: bool
) -> None:
    add_host(engine, "a", devices=["cpu", "cuda:0 (some card)"])
    make_run(engine, **changes)
    won = claim(engine)
    assert won is not None
    assert won.may_use_gpu == may_use_gpu


def test_claim_prefers_highest_priority_then_oldest(engine: Engine) -> None:
    add_host(engine, "a")
    low = make_run(engine, priority=-1)
    first, second = make_run(engine), make_run(engine)
    high = make_run(engine, priority=5)
    order = []
    patience = Patience()
    while patience.lasts() and (won := claim(engine)):
        order.append(won.run_id)
    assert order == [high.id, first.id, second.id, low.id]


def test_host_with_another_version_of_a_distribution_claims_no_run_of_its_algorithm(engine: Engine) -> None:
    add_host(engine, "a", versions={"mine": "2.0"})
    add_host(engine, "b", versions={"mine": "1.0"})
    mine = make_run(engine, package="mine==1.0", priority=5)
    other = make_run(engine)
    won = claim(engine, "a")
    assert won is not None
    assert won.run_id == other.id
    assert claim(engine, "a") is None
    won = claim(engine, "b")
    assert won is not None
    assert won.run_id == mine.id


def test_host_without_ray_claims_no_run_of_gorila(engine: Engine) -> None:
    add_host(engine, "a", versions={"torch": "2"})
    add_host(engine, "b", versions={"torch": "2", "ray": "2"})
    gorila = make_run(engine, algorithm="gorila_dqn", priority=5)
    other = make_run(engine)
    won = claim(engine, "a")
    assert won is not None
    assert won.run_id == other.id
    assert claim(engine, "a") is None
    won = claim(engine, "b")
    assert won is not None
    assert won.run_id == gorila.id


def test_claim_matches_queue_and_requested_host(engine: Engine) -> None:
    add_host(engine, "a")
    add_host(engine, "b", queues=["gpu"])
    pinned = make_run(engine, host="b")
    make_run(engine, queue="gpu")
    assert claim(engine, "a") is None
    assert claim(engine, "a", queues=["cpu", "gpu"]) is not None
    won = claim(engine, "b", queues=["gpu"])
    assert won is not None
    assert won.run_id == pinned.id, "whatever its queue"


def test_claim_returns_none_for_draining_and_unknown_hosts(engine: Engine) -> None:
    add_host(engine, "a", draining=True)
    run = make_run(engine)
    assert claim(engine, "a") is None
    assert claim(engine, "unknown") is None
    with writing(engine) as session:
        session.get_one(Host, "a").draining = False
    won = claim(engine, "a")
    assert won is not None
    assert won.run_id == run.id


def test_claim_skips_run_larger_than_free_memory(engine: Engine) -> None:
    add_host(engine, "a")
    big, small = make_run(engine), make_run(engine)
    with writing(engine) as session:
        session.get_one(Run, big.id).memory_estimate_bytes = 3 * GIB
    won = claim(engine, free_memory_bytes=2 * GIB)
    assert won is not None
    assert won.run_id == small.id
    assert claim(engine, free_memory_bytes=2 * GIB) is None


def test_claim_skips_run_whose_environment_or_device_the_host_lacks(engine: Engine) -> None:
    add_host(engine, "a", environments=["CartPole-v1"])
    atari = make_run(engine, environment="ALE/Pong-v5")
    cuda = make_run(engine, device="cuda")
    cartpole = make_run(engine)
    won = claim(engine)
    assert won is not None
    assert won.run_id == cartpole.id
    assert claim(engine) is None
    add_host(engine, "b", devices=["cpu", "cuda:0 (some card)"], environments=["CartPole-v1", "ALE/Pong-v5"])
    for run in (atari, cuda):
        won = claim(engine, "b")
        assert won is not None
        assert won.run_id == run.id


UNKNOWN = parse_run_spec(CARTPOLE).model_dump(mode="json") | {"algorithm": "ours"}


@pytest.mark.service
@pytest.mark.parametrize("devices", [["cpu"], ["cpu", "cuda:0 (some card)"]], ids=["cpu", "gpu"])
@pytest.mark.parametrize(
    "damage", [[], "x", {"device": "cpu"}, UNKNOWN], ids=["list", "text", "object", "algorithm"]
)
def test_run_whose_specification_cannot_be_read_fails_and_blocks_no_other(
    engine: Engine, devices: list[str], damage: Any
) -> None:
    add_host(engine, "a", devices=devices)
    damaged, other = make_run(engine, priority=5), make_run(engine)
    with writing(engine) as session:
        session.execute(update(Run).where(Run.id == damaged.id).values(spec=damage))
    won = claim(engine)
    assert won is not None
    assert won.run_id == other.id
    row = run_row(engine, damaged.id)
    reason = 'its algorithm "ours" is not installed' if damage == UNKNOWN else DAMAGED
    assert (row.state, row.state_reason, row.error) == ("failed", reason, reason)


def test_concurrent_claims_never_return_the_same_run(engine: Engine) -> None:
    hosts = [f"h{i}" for i in range(4)]
    for host in hosts:
        add_host(engine, host)
    created = {make_run(engine).id for _ in range(12)}
    won: list[tuple[str, int]] = []
    barrier = Barrier(len(hosts))

    def work(host: str) -> None:
        barrier.wait()
        patience = Patience()
        while patience.lasts() and (mine := claim(engine, host)):
            won.append((mine.run_id, mine.attempt))

    threads = [Thread(target=work, args=(host,), daemon=True) for host in hosts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == sorted((run_id, 1) for run_id in created)


def test_renew_extends_lease_and_returns_stop_requests(engine: Engine) -> None:
    add_host(engine, "a")
    first, second = make_run(engine), make_run(engine)
    for _ in range(2):
        claim(engine, lease_s=1)
    with writing(engine) as session:
        session.get_one(Run, second.id).stop_requested = "kill"
        requests = claims.renew(session, "a", {first.id: 1, second.id: 1}, 3000)
    assert requests == {first.id: None, second.id: "kill"}
    with reading(engine) as session:
        now = database_now(session)
    expires = run_row(engine, first.id).lease_expires_at
    assert expires is not None
    assert expires - now > timedelta(seconds=2000)


def test_renew_ignores_other_attempt_host_or_state(engine: Engine) -> None:
    add_host(engine, "a")
    run = make_run(engine)
    claim(engine)
    with writing(engine) as session:
        assert claims.renew(session, "a", {run.id: 2}, 60) == {}
        assert claims.renew(session, "b", {run.id: 1}, 60) == {}
        assert claims.renew(session, "a", {}, 60) == {}
        service.transition(session, claims.lock(session, run.id, 1), RunState.QUEUED, "test")
        assert claims.renew(session, "a", {run.id: 1}, 60) == {}


def test_renew_extends_expired_lease_before_expire_runs(engine: Engine) -> None:
    add_host(engine, "a")
    run = make_run(engine)
    claim(engine)
    expire_lease(engine, run.id)
    with writing(engine) as session:
        assert claims.renew(session, "a", {run.id: 1}, 60) == {run.id: None}
        assert claims.expire(session) == []


def test_expire_queues_run_with_expired_lease_again(engine: Engine) -> None:
    add_host(engine, "a")
    run, other = make_run(engine), make_run(engine)
    claim(engine)
    claim(engine)
    expire_lease(engine, run.id)
    with writing(engine) as session:
        assert claims.expire(session) == [run.id]
    row = run_row(engine, run.id)
    assert (row.state, row.host, row.lease_expires_at) == ("queued", None, None)
    assert run_row(engine, other.id).state == "starting"
    with reading(engine) as session:
        moves = [t.after for t in repository.transitions(session, run.id)]
        assert repository.attempts(session, run.id)[0].ended_at is not None
        levels = [line.level for line in repository.log_lines_after(session, run.id, None, 0, 10)]
    assert levels == ["info", "info", "warning", "warning"]
    assert moves == ["queued", "starting", "lost", "queued"]
    won = claim(engine)
    assert won is not None
    assert (won.run_id, won.attempt) == (run.id, 2)


def test_expire_stops_run_with_stop_request(engine: Engine) -> None:
    add_host(engine, "a")
    run = make_run(engine)
    claim(engine)
    with writing(engine) as session:
        row = claims.lock(session, run.id, 1)
        row.stop_requested = "stop"
        service.transition(session, row, RunState.STOPPING, "asked")
    expire_lease(engine, run.id)
    with writing(engine) as session:
        claims.expire(session)
    assert run_row(engine, run.id).state == "stopped"


def test_expire_fails_run_after_ten_host_deaths_without_checkpoint(engine: Engine) -> None:
    for host in ("a", "b"):
        add_host(engine, host)
    run = make_run(engine)
    for host, expected in zip("ababababab", ["queued"] * 9 + ["failed"], strict=True):
        assert claim(engine, host) is not None
        expire_lease(engine, run.id)
        with writing(engine) as session:
            claims.expire(session)
        assert run_row(engine, run.id).state == expected
    row = run_row(engine, run.id)
    assert (
        row.error
        == row.state_reason
        == "b no longer renews its lease: its worker or host died 10 times without a new checkpoint; the "
        "latest attempts were on a, b"
    )
    with writing(engine) as session:
        actions.resume(session, run.id)
    assert run_row(engine, run.id).host_deaths == 0


def test_host_deaths_are_not_attempts_of_the_run(engine: Engine) -> None:
    add_host(engine, "a")
    run = make_run(engine)
    for _ in range(3):
        claim(engine)
        expire_lease(engine, run.id)
        with writing(engine) as session:
            claims.expire(session)
    claim(engine)
    with writing(engine) as session:
        row = claims.lock(session, run.id, 4)
        assert (row.attempts_without_checkpoint, row.host_deaths) == (1, 3)
        assert claims.state_after_death(row)[0] == RunState.QUEUED


def test_failed_run_always_has_an_error(engine: Engine) -> None:
    add_host(engine, "a")
    run = make_run(engine)
    claim(engine)
    with writing(engine) as session:
        claims.end_attempt(session, claims.lock(session, run.id, 1), RunState.FAILED, "the reason")
    assert run_row(engine, run.id).error == "the reason"


def test_lock_raises_superseded_for_all_but_newest_attempt(engine: Engine) -> None:
    add_host(engine, "a")
    run = make_run(engine)
    claim(engine)
    with writing(engine) as session:
        assert claims.lock(session, run.id, 1).id == run.id
    expire_lease(engine, run.id)
    with writing(engine) as session:
        claims.expire(session)
    for attempt in (1, 2):
        with writing(engine) as session, pytest.raises(claims.Superseded):
            claims.lock(session, run.id, attempt)
    claim(engine, "a")
    with writing(engine) as session:
        with pytest.raises(claims.Superseded):
            claims.lock(session, run.id, 1)
        assert claims.lock(session, run.id, 2).attempt == 2
        with pytest.raises(claims.Superseded):
            claims.lock(session, new_id(), 1)


def _add_rows(session: Session, run_id: str, agent_steps: int) -> None:
    session.add(episode_row(run_id, agent_steps))
    session.add(evaluation_row(run_id, agent_steps, 1.0))
    session.add(evaluation_row(run_id, agent_steps, 1.0, attempt=None))
    histogram = HistogramEvent(metric="a", agent_steps=agent_steps, wall_time_s=1, edges=[0, 1], counts=[1])
    media.add_histograms(session, session.get_one(Run, run_id), 1, [histogram])


def test_resume_from_checkpoint_supersedes_later_rows(engine: Engine) -> None:
    add_host(engine, "a")
    run = make_run(engine)
    claim(engine)
    with writing(engine) as session:
        checkpoint = add_checkpoint(session, run.id, 100, score=7.0, best_return=9.0)
        add_checkpoint(session, run.id, 101)
        for steps in (100, 101):
            _add_rows(session, run.id, steps)
        row = session.get_one(Run, run.id)
        row.agent_steps, row.wall_time_s, row.score, row.best_return = 101, 9.0, 99.0, 99.0
    with writing(engine) as session:
        claims.resume_from(session, run.id, 1, checkpoint)
    row = run_row(engine, run.id)
    assert (row.agent_steps, row.wall_time_s) == (100, 0.1)
    assert (row.score, row.best_return) == (7.0, 9.0)
    with reading(engine) as session:
        assert session.get_one(Attempt, (run.id, 1)).resumed_from_agent_steps == 100
        for table in (Checkpoint, Episode, Evaluation, Media):
            kept = select(table.agent_steps).where(~table.superseded, table.run_id == run.id)
            # The requested evaluation of the superseded checkpoint is superseded too.
            expected = [100, 100] if table is Evaluation else [100]
            assert session.scalars(kept).all() == expected, table


def test_resume_from_no_checkpoint_supersedes_every_row(engine: Engine) -> None:
    add_host(engine, "a")
    run = make_run(engine)
    claim(engine)
    with writing(engine) as session:
        _add_rows(session, run.id, 0)
        session.get_one(Run, run.id).score = 7.0
    with writing(engine) as session:
        claims.resume_from(session, run.id, 1, None)
        with pytest.raises(claims.Superseded):
            claims.resume_from(session, run.id, 2, None)
    assert run_row(engine, run.id).score is None
    with reading(engine) as session:
        assert session.scalars(select(Episode.superseded)).all() == [True]
        assert session.scalars(select(Evaluation.superseded)).all() == [True, True]
