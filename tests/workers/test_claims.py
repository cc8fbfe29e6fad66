from datetime import timedelta
from threading import Barrier, Thread

import pytest
from sqlalchemy import Engine, select

from backend.checkpoints import repository as checkpoints
from backend.db import Attempt, Checkpoint, Episode, Evaluation, Host, Run
from backend.db.clock import database_now
from backend.db.engine import reading, writing
from backend.db.ids import new_id
from backend.runs import repository as runs
from backend.specs.states import RunState
from tests.support.runs import make_run
from tests.workers.support import GIB, add_checkpoint, add_host, claim, run_out, run_row
from workers import claims


def test_claim_takes_the_lease_and_opens_an_attempt(engine: Engine) -> None:
    add_host(engine, "a")
    run = make_run(engine)
    won = claim(engine, lease_s=30)
    assert won == claims.Claim(run.id, 1, run.memory_estimate_bytes)
    row = run_row(engine, run.id)
    assert (row.state, row.host, row.attempt, row.attempts_without_checkpoint) == ("starting", "a", 1, 1)
    with reading(engine) as session:
        now = database_now(session)
        attempt = runs.attempts(session, run.id)[0]
    assert row.lease_expires_at is not None
    assert timedelta(seconds=20) < row.lease_expires_at - now <= timedelta(seconds=30)
    assert (attempt.number, attempt.host, attempt.ended_at, attempt.log_offset_bytes) == (1, "a", None, 0)


def test_highest_priority_first_then_oldest(engine: Engine) -> None:
    add_host(engine, "a")
    low = make_run(engine, priority=-1)
    first, second = make_run(engine), make_run(engine)
    high = make_run(engine, priority=5)
    order = []
    while won := claim(engine):
        order.append(won.run_id)
    assert order == [high.id, first.id, second.id, low.id]


def test_queue_and_wanted_host(engine: Engine) -> None:
    add_host(engine, "a")
    add_host(engine, "b", queues=["gpu"])
    make_run(engine, host="b")
    gpu = make_run(engine, queue="gpu")
    assert claim(engine, "a") is None
    assert claim(engine, "a", queues=["cpu", "gpu"]) is not None
    won = claim(engine, "b", queues=["gpu"])
    assert won is not None
    assert won.run_id != gpu.id


def test_draining_and_unknown_hosts_get_nothing(engine: Engine) -> None:
    add_host(engine, "a", draining=True)
    run = make_run(engine)
    assert claim(engine, "a") is None
    assert claim(engine, "stranger") is None
    with writing(engine) as session:
        session.get_one(Host, "a").draining = False
    won = claim(engine, "a")
    assert won is not None
    assert won.run_id == run.id


def test_a_run_too_large_for_the_host_is_passed_over(engine: Engine) -> None:
    add_host(engine, "a")
    big, small = make_run(engine), make_run(engine)
    with writing(engine) as session:
        session.get_one(Run, big.id).memory_estimate_bytes = 3 * GIB
    won = claim(engine, free_memory_bytes=2 * GIB)
    assert won is not None
    assert won.run_id == small.id
    assert claim(engine, free_memory_bytes=2 * GIB) is None


def test_a_run_the_host_cannot_do_is_passed_over(engine: Engine) -> None:
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


@pytest.mark.service
def test_workers_racing_never_win_the_same_run(engine: Engine) -> None:
    hosts = [f"h{i}" for i in range(4)]
    for host in hosts:
        add_host(engine, host)
    made = {make_run(engine).id for _ in range(12)}
    won: list[tuple[str, int]] = []
    barrier = Barrier(len(hosts))

    def work(host: str) -> None:
        barrier.wait()
        while mine := claim(engine, host):
            won.append((mine.run_id, mine.attempt))

    threads = [Thread(target=work, args=(host,)) for host in hosts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == sorted((run_id, 1) for run_id in made)


def test_renewal_extends_and_tells_wishes(engine: Engine) -> None:
    add_host(engine, "a")
    first, second = make_run(engine), make_run(engine)
    for _ in range(2):
        claim(engine, lease_s=1)
    with writing(engine) as session:
        session.get_one(Run, second.id).stop_requested = "kill"
        wishes = claims.renew(session, "a", {first.id: 1, second.id: 1}, 100)
    assert wishes == {first.id: None, second.id: "kill"}
    with reading(engine) as session:
        now = database_now(session)
    expires = run_row(engine, first.id).lease_expires_at
    assert expires is not None
    assert expires - now > timedelta(seconds=90)


def test_renewal_is_refused_to_another_attempt_host_or_state(engine: Engine) -> None:
    add_host(engine, "a")
    run = make_run(engine)
    claim(engine)
    with writing(engine) as session:
        assert claims.renew(session, "a", {run.id: 2}, 60) == {}
        assert claims.renew(session, "b", {run.id: 1}, 60) == {}
        assert claims.renew(session, "a", {}, 60) == {}
        runs.transition(session, claims.held(session, run.id, 1), RunState.QUEUED, "test")
        assert claims.renew(session, "a", {run.id: 1}, 60) == {}


def test_a_lease_that_ran_out_unnoticed_may_be_renewed(engine: Engine) -> None:
    add_host(engine, "a")
    run = make_run(engine)
    claim(engine)
    run_out(engine, run.id)
    with writing(engine) as session:
        assert claims.renew(session, "a", {run.id: 1}, 60) == {run.id: None}
        assert claims.expire(session) == []


def test_expiry_loses_the_run_and_queues_it_again(engine: Engine) -> None:
    add_host(engine, "a")
    run, other = make_run(engine), make_run(engine)
    claim(engine)
    claim(engine)
    run_out(engine, run.id)
    with writing(engine) as session:
        assert claims.expire(session) == [run.id]
    row = run_row(engine, run.id)
    assert (row.state, row.host, row.lease_expires_at) == ("queued", None, None)
    assert run_row(engine, other.id).state == "starting"
    with reading(engine) as session:
        moves = [t.after for t in runs.transitions(session, run.id)]
        assert runs.attempts(session, run.id)[0].ended_at is not None
    assert moves == ["queued", "starting", "lost", "queued"]
    won = claim(engine)
    assert won is not None
    assert (won.run_id, won.attempt) == (run.id, 2)


def test_expiry_of_a_run_that_was_to_stop_stops_it(engine: Engine) -> None:
    add_host(engine, "a")
    run = make_run(engine)
    claim(engine)
    with writing(engine) as session:
        row = claims.held(session, run.id, 1)
        row.stop_requested = "stop"
        runs.transition(session, row, RunState.STOPPING, "asked")
    run_out(engine, run.id)
    with writing(engine) as session:
        claims.expire(session)
    assert run_row(engine, run.id).state == "stopped"


def test_three_attempts_without_a_checkpoint_fail(engine: Engine) -> None:
    add_host(engine, "a")
    run = make_run(engine)
    for expected in ("queued", "queued", "failed"):
        assert claim(engine) is not None
        run_out(engine, run.id)
        with writing(engine) as session:
            claims.expire(session)
        assert run_row(engine, run.id).state == expected
    assert "3 attempts" in run_row(engine, run.id).state_reason


def test_held_refuses_all_but_the_newest_attempt(engine: Engine) -> None:
    add_host(engine, "a")
    run = make_run(engine)
    claim(engine)
    with writing(engine) as session:
        assert claims.held(session, run.id, 1).id == run.id
    run_out(engine, run.id)
    with writing(engine) as session:
        claims.expire(session)
    for attempt in (1, 2):
        with writing(engine) as session, pytest.raises(claims.Superseded):
            claims.held(session, run.id, attempt)
    claim(engine, "a")
    with writing(engine) as session:
        with pytest.raises(claims.Superseded):
            claims.held(session, run.id, 1)
        assert claims.held(session, run.id, 2).attempt == 2
        with pytest.raises(claims.Superseded):
            claims.held(session, new_id(), 1)


def test_checkpoints_to_go_on_from_newest_first(engine: Engine) -> None:
    run = make_run(engine)
    with writing(engine) as session:
        for steps in (100, 300, 200):
            add_checkpoint(session, run.id, steps)
        add_checkpoint(session, run.id, 400, removed=True)
        add_checkpoint(session, run.id, 500, superseded=True)
        assert [c.agent_steps for c in claims.checkpoints(session, run.id)] == [300, 200, 100]


def test_of_two_checkpoints_at_one_step_the_later_attempts_is_newer(engine: Engine) -> None:
    """Ids tell the time of the host that recorded them, and its clock may be behind."""
    run = make_run(engine)
    with writing(engine) as session:
        add_checkpoint(session, run.id, 100, attempt=1, id="01M7WS1D3MAN5RKM6F5VFFNCC2")
        add_checkpoint(session, run.id, 100, attempt=2, id="01M7WS1D3MAN5RKM6F5VFFNCC1")
        assert [c.attempt for c in claims.checkpoints(session, run.id)] == [2, 1]
        newest = checkpoints.newest(session, run.id)
        assert newest is not None
        assert newest.attempt == 2


def _kept_rows(session, run_id: str, agent_steps: int) -> None:  # type: ignore[no-untyped-def]
    now = database_now(session)
    common = {"run_id": run_id, "attempt": 1, "agent_steps": agent_steps, "frames": 0, "wall_time_s": 0.0}
    session.add(
        Episode(
            id=new_id(), kind="training", recorded_at=now, seed=1, episode_return=1.0, length_steps=1,
            length_frames=1, replay="r.npz", **common,
        )
    )  # fmt: skip
    evaluation = {
        "requested_at": now, "protocol": "plain", "n_episodes": 1, "seed": 1, "checkpoint": "c.pt",
        "returns": [1.0], "lengths_frames": [1], "mean_return": 1.0,
    }  # fmt: skip
    session.add(Evaluation(id=new_id(), **common, **evaluation))
    session.add(Evaluation(id=new_id(), **(common | {"attempt": None}), **evaluation))


def test_begin_supersedes_what_came_after_the_checkpoint(engine: Engine) -> None:
    add_host(engine, "a")
    run = make_run(engine)
    claim(engine)
    with writing(engine) as session:
        checkpoint = add_checkpoint(session, run.id, 100, score=7.0, best_return=9.0)
        add_checkpoint(session, run.id, 101)
        for steps in (100, 101):
            _kept_rows(session, run.id, steps)
        row = session.get_one(Run, run.id)
        row.agent_steps, row.wall_time_s, row.score, row.best_return = 101, 9.0, 99.0, 99.0
    with writing(engine) as session:
        claims.begin(session, run.id, 1, checkpoint)
    row = run_row(engine, run.id)
    assert (row.agent_steps, row.wall_time_s) == (100, 0.1)
    assert (row.score, row.best_return) == (7.0, 9.0)
    with reading(engine) as session:
        assert session.get_one(Attempt, (run.id, 1)).resumed_from_agent_steps == 100
        for table in (Checkpoint, Episode, Evaluation):
            kept = select(table.agent_steps).where(~table.superseded, table.run_id == run.id)
            # The evaluation someone asked for of the superseded checkpoint goes with it.
            expected = [100, 100] if table is Evaluation else [100]
            assert session.scalars(kept).all() == expected, table


def test_begin_without_checkpoint_supersedes_everything(engine: Engine) -> None:
    add_host(engine, "a")
    run = make_run(engine)
    claim(engine)
    with writing(engine) as session:
        _kept_rows(session, run.id, 0)
        session.get_one(Run, run.id).score = 7.0
    with writing(engine) as session:
        claims.begin(session, run.id, 1, None)
        with pytest.raises(claims.Superseded):
            claims.begin(session, run.id, 2, None)
    assert run_row(engine, run.id).score is None
    with reading(engine) as session:
        assert session.scalars(select(Episode.superseded)).all() == [True]
        assert session.scalars(select(Evaluation.superseded)).all() == [True, True]
