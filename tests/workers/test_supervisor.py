import logging
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import psutil
import pytest
from sqlalchemy import Engine, select

from backend.artifacts import ArtifactStore
from backend.db import Attempt, Checkpoint, LogLine, Run
from backend.db.engine import reading, writing
from backend.runs import repository as runs
from backend.runs import service
from backend.specs.run import StopSpec
from backend.specs.states import RunState
from tests.support.databases import ON_SQLITE_FIRST
from tests.workers.fake_engine import FAMILY
from tests.workers.support import (
    FAKE_ENGINE,
    FlakyContext,
    add_host,
    claim,
    engines_of,
    fake_run,
    moves,
    run_out,
    run_row,
    stored_points,
    until,
    until_state,
)
from workers import claims, supervisor
from workers.claims import Claim
from workers.context import Context
from workers.engine_process import Birthmark
from workers.gameplay import Gameplay
from workers.supervisor import Supervisor

pytestmark = [pytest.mark.service, ON_SQLITE_FIRST]


@pytest.fixture(autouse=True)
def host(engine: Engine) -> None:
    add_host(engine, "a")


@pytest.fixture(autouse=True)
def no_engine_is_left(host: None, context: Context) -> Iterator[None]:
    yield
    until(lambda: not engines_of(context))


def _supervisor(context: Context, won: Claim) -> Supervisor:
    return Supervisor(context, won, gameplay=Gameplay(context.settings.redis), engine=FAKE_ENGINE)


def _supervise(context: Context, engine: Engine, **claimed: object) -> Supervisor:
    won = claim(engine, **claimed)  # type: ignore[arg-type]
    assert won is not None
    thread = _supervisor(context, won)
    thread.start()
    return thread


def _recorded(engine: Engine, run_id: str, agent_steps: int) -> None:
    until(lambda: run_row(engine, run_id).agent_steps >= agent_steps)


def _go(context: Context, run: Run) -> None:
    (context.run_dir(run.id) / "go").touch()


def _ask(engine: Engine, run_id: str, *, kill: bool = False) -> None:
    with writing(engine) as session:
        service.stop(session, run_id, kill=kill)


def test_a_run_to_its_end(context: Context, engine: Engine) -> None:
    run = fake_run(engine, agent_steps=45)
    _supervise(context, engine).join(60)
    row = run_row(engine, run.id)
    assert (row.state, row.state_reason, row.agent_steps) == ("finished", "reached 45 agent steps", 45)
    assert (row.host, row.lease_expires_at, row.error) == (None, None, None)
    assert stored_points(engine, run.id) == list(range(1, 46))
    assert moves(engine, run.id) == ["queued", "starting", "running", "finished"]
    with reading(engine) as session:
        assert [c.agent_steps for c in claims.checkpoints(session, run.id)] == [45, 40, 30, 20, 10]
        attempt = session.get_one(Attempt, (run.id, 1))
    log = context.run_dir(run.id) / "attempts" / "1" / "events.log"
    assert attempt.ended_at is not None
    assert attempt.log_offset_bytes == log.stat().st_size


def test_every_line_says_which_run(
    context: Context, engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    run = fake_run(engine, agent_steps=1)
    _supervise(context, engine).join(60)
    said = {r.getMessage(): vars(r) for r in caplog.records if r.name == "workers.supervisor"}
    assert set(said) == {"engine.started", "run.settled"}
    assert {(line["run_id"], line["attempt"]) for line in said.values()} == {(run.id, 1)}


def test_a_killed_engine_goes_on_from_its_checkpoint(context: Context, engine: Engine) -> None:
    run = fake_run(engine, die={"1": {"at": 25, "how": signal.SIGKILL}})
    _supervise(context, engine).join(60)
    row = run_row(engine, run.id)
    assert row.state == "queued"
    assert "SIGKILL" in row.state_reason
    assert stored_points(engine, run.id) == list(range(1, 26))
    _supervise(context, engine).join(60)
    assert run_row(engine, run.id).state == "finished"
    assert stored_points(engine, run.id) == list(range(1, 51))
    with reading(engine) as session:
        assert session.get_one(Attempt, (run.id, 2)).resumed_from_agent_steps == 20


def test_an_engine_that_never_gets_anywhere_fails(context: Context, engine: Engine) -> None:
    die = {str(attempt): {"at": 5, "how": signal.SIGSEGV} for attempt in (1, 2, 3)}
    run = fake_run(engine, die=die)
    for expected in ("queued", "queued", "failed"):
        _supervise(context, engine).join(60)
        assert run_row(engine, run.id).state == expected


@pytest.mark.parametrize(("how", "error"), [("raise", "Traceback: x"), ("exit", "last words on stderr")])
def test_an_error_of_ours_fails_with_its_text(context: Context, engine: Engine, how: str, error: str) -> None:
    run = fake_run(engine, die={"1": {"at": 5, "how": how}})
    _supervise(context, engine).join(60)
    row = run_row(engine, run.id)
    assert (row.state, row.error) == ("failed", error)
    assert stored_points(engine, run.id) == [1, 2, 3, 4, 5]


def test_stop_then_resume_is_one_continuous_series(context: Context, engine: Engine) -> None:
    run = fake_run(engine, agent_steps=10_000)
    thread = _supervise(context, engine)
    _recorded(engine, run.id, 15)
    _ask(engine, run.id)
    thread.tell("stop")
    thread.join(60)
    row = run_row(engine, run.id)
    assert (row.state, row.stop_requested) == ("stopped", None)
    stopped_at = row.agent_steps
    assert stored_points(engine, run.id) == list(range(1, stopped_at + 1))
    end = stopped_at + 30
    with writing(engine) as session:
        service.resume(session, run.id, StopSpec(agent_steps=end))
    _supervise(context, engine).join(60)
    assert run_row(engine, run.id).state == "finished"
    assert stored_points(engine, run.id) == list(range(1, end + 1))
    with reading(engine) as session:
        assert session.get_one(Attempt, (run.id, 2)).resumed_from_agent_steps == stopped_at


def test_kill_takes_every_descendant(context: Context, engine: Engine) -> None:
    run = fake_run(engine, agent_steps=10_000, family=True)
    thread = _supervise(context, engine)
    until(lambda: any(FAMILY in str(process.cmdline()) for process in engines_of(context)))
    _recorded(engine, run.id, 1)
    _ask(engine, run.id, kill=True)
    thread.tell("kill")
    thread.join(60)
    row = run_row(engine, run.id)
    assert (row.state, row.state_reason) == ("stopped", "ended at once")


def test_an_engine_that_does_not_listen_is_killed(
    context: Context, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "STOP_PATIENCE_S", 0.5)
    run = fake_run(engine, agent_steps=10_000, deaf=True)
    thread = _supervise(context, engine)
    _recorded(engine, run.id, 1)
    _ask(engine, run.id)
    thread.tell("stop")
    thread.join(60)
    row = run_row(engine, run.id)
    assert (row.state, row.state_reason) == ("stopped", "ended by force: it did not stop when asked")


def test_handing_back_saves_and_queues_without_blame(context: Context, engine: Engine) -> None:
    run = fake_run(engine, agent_steps=10_000, checkpoint_every=10_000)
    thread = _supervise(context, engine)
    _recorded(engine, run.id, 5)
    thread.hand_back()
    thread.join(60)
    row = run_row(engine, run.id)
    assert (row.state, row.attempts_without_checkpoint) == ("queued", 0)
    with reading(engine) as session:
        newest = claims.checkpoints(session, run.id)[0]
    assert newest.agent_steps == row.agent_steps == stored_points(engine, run.id)[-1]


def test_stop_before_the_engine_has_begun(context: Context, engine: Engine) -> None:
    run = fake_run(engine)
    won = claim(engine)
    assert won is not None
    _ask(engine, run.id)
    thread = _supervisor(context, won)
    thread.tell("stop")
    thread.start()
    thread.join(60)
    assert moves(engine, run.id) == ["queued", "starting", "stopping", "stopped"]
    assert not (context.run_dir(run.id) / "attempts").exists()


def test_a_lost_run_is_dropped_without_a_word(context: Context, engine: Engine) -> None:
    run = fake_run(engine, agent_steps=10_000)
    thread = _supervise(context, engine)
    _recorded(engine, run.id, 5)
    run_out(engine, run.id)
    with writing(engine) as session:
        claims.expire(session)
        won = claims.claim(session, "a", queues=["cpu"], free_memory_bytes=2**40, lease_s=60)
    before = run_row(engine, run.id)
    thread.join(60)  # its next write finds the run another's
    assert not thread.is_alive()
    after = run_row(engine, run.id)
    assert won is not None
    assert (after.state, after.attempt, after.revision) == ("starting", 2, before.revision)
    assert moves(engine, run.id) == ["queued", "starting", "running", "lost", "queued", "starting"]


def test_told_that_it_lost_the_run(context: Context, engine: Engine) -> None:
    run = fake_run(engine, agent_steps=10_000)
    thread = _supervise(context, engine)
    _recorded(engine, run.id, 5)
    thread.lose()
    thread.join(60)
    assert run_row(engine, run.id).state == "running"  # not its business any more


def _die_and_queue(context: Context, engine: Engine) -> Run:
    run = fake_run(engine, die={"1": {"at": 35, "how": signal.SIGKILL}})
    _supervise(context, engine).join(60)
    assert run_row(engine, run.id).state == "queued"
    return run


def _resumed_at(engine: Engine, run_id: str) -> int:
    assert run_row(engine, run_id).state == "finished"
    assert stored_points(engine, run_id) == list(range(1, 51))
    with reading(engine) as session:
        return session.get_one(Attempt, (run_id, 2)).resumed_from_agent_steps


def test_a_checkpoint_missing_here_comes_from_the_store(context: Context, engine: Engine) -> None:
    run = _die_and_queue(context, engine)
    for file in (context.run_dir(run.id) / "checkpoints").iterdir():
        file.unlink()
    _supervise(context, engine).join(60)
    assert _resumed_at(engine, run.id) == 30


def test_checkpoints_on_an_s3_server(context: Context, engine: Engine, s3_url: str) -> None:
    lab = replace(context, store=ArtifactStore(s3_url))
    run = fake_run(engine, die={"1": {"at": 35, "how": signal.SIGKILL}})
    _supervise(lab, engine).join(60)
    shutil.rmtree(context.run_dir(run.id) / "checkpoints")
    _supervise(lab, engine).join(60)
    assert _resumed_at(engine, run.id) == 30
    with lab.store.open(run.id, "checkpoints", "a2-s000000000050.pt") as file:
        assert b'"agent_steps": 50' in file.read()


def test_damaged_everywhere_the_next_older_serves(context: Context, engine: Engine) -> None:
    run = _die_and_queue(context, engine)
    local = context.run_dir(run.id) / "checkpoints" / "a1-s000000000030.pt"
    local.write_bytes(b"damaged")
    context.store.put(local, run.id, "checkpoints")
    _supervise(context, engine).join(60)
    assert _resumed_at(engine, run.id) == 20
    with reading(engine) as session:
        warnings = session.scalars(select(LogLine.message).where(LogLine.level == "warning")).all()
        assert any("a1-s000000000030.pt is missing or damaged" in message for message in warnings)
        damaged = session.scalars(select(Checkpoint).where(Checkpoint.agent_steps == 30)).all()
        assert [c.superseded for c in damaged if c.attempt == 1] == [True]


def test_no_intact_checkpoint_at_all_begins_anew(context: Context, engine: Engine) -> None:
    run = _die_and_queue(context, engine)
    with writing(engine) as session:
        for checkpoint in session.scalars(select(Checkpoint)):
            checkpoint.sha256 = "0" * 64
    _supervise(context, engine).join(60)
    assert _resumed_at(engine, run.id) == 0


def _flaky(context: Context) -> FlakyContext:
    return FlakyContext(context.settings, context.engine, context.store, context.bus)


def test_training_goes_on_while_the_database_is_away(context: Context, engine: Engine) -> None:
    run = fake_run(engine, agent_steps=60, wait_at=5)
    flaky = _flaky(context)
    thread = _supervise(flaky, engine)
    _recorded(engine, run.id, 5)
    flaky.away.append(True)
    _go(context, run)
    log = context.run_dir(run.id) / "attempts" / "1" / "events.log"
    until(lambda: b"reached 60" in log.read_bytes())
    assert run_row(engine, run.id).agent_steps < 60
    flaky.away.clear()
    thread.join(60)
    assert run_row(engine, run.id).state == "finished"
    assert stored_points(engine, run.id) == list(range(1, 61))


def test_worker_dies_while_the_database_is_away(context: Context, engine: Engine) -> None:
    """What only the log of this host knows is recorded by the next attempt here, its checkpoints too."""
    run = fake_run(engine, agent_steps=50, wait_at=5, die={"1": {"at": 35, "how": signal.SIGKILL}})
    flaky = _flaky(context)
    thread = _supervise(flaky, engine)
    _recorded(engine, run.id, 5)
    flaky.away.append(True)
    _go(context, run)
    log = context.run_dir(run.id) / "attempts" / "1" / "events.log"
    until(lambda: b'"agent_steps":[35]' in log.read_bytes())
    thread.lose()  # the worker is gone, nothing was recorded since
    thread.join(60)
    assert run_row(engine, run.id).agent_steps < 30
    run_out(engine, run.id)
    with writing(engine) as session:
        claims.expire(session)
    _supervise(context, engine).join(60)
    assert _resumed_at(engine, run.id) == 30


def test_worker_dies_after_the_engine_has_finished(context: Context, engine: Engine) -> None:
    run = fake_run(engine, agent_steps=20, wait_at=5)
    flaky = _flaky(context)
    thread = _supervise(flaky, engine)
    _recorded(engine, run.id, 5)
    flaky.away.append(True)
    _go(context, run)
    log = context.run_dir(run.id) / "attempts" / "1" / "events.log"
    until(lambda: b"reached 20" in log.read_bytes())
    thread.lose()
    thread.join(60)
    run_out(engine, run.id)
    with writing(engine) as session:
        claims.expire(session)
    _supervise(context, engine).join(60)
    row = run_row(engine, run.id)
    assert (row.state, row.attempt) == ("finished", 2)
    assert stored_points(engine, run.id) == list(range(1, 21))
    assert not (context.run_dir(run.id) / "attempts" / "2").exists()


def test_an_engine_that_outlived_its_worker_is_killed_first(context: Context, engine: Engine) -> None:
    run = fake_run(engine, agent_steps=20)
    folder = context.run_dir(run.id) / "attempts" / "1"
    folder.mkdir(parents=True)
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as survivor:
        Birthmark(folder).write(survivor.pid)
        claim(engine)
        run_out(engine, run.id)
        with writing(engine) as session:
            claims.expire(session)
        thread = _supervise(context, engine)
        survivor.wait(timeout=30)
        thread.join(60)
    assert run_row(engine, run.id).state == "finished"


def test_a_survivor_is_left_for_its_own_supervisor_to_reap(context: Context) -> None:
    """A host that lost a run and won it again has two supervisors of it for a moment."""
    folder = context.run_dir("x") / "attempts" / "1"
    folder.mkdir(parents=True)
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as survivor:
        Birthmark(folder).write(survivor.pid)
        assert Birthmark(folder).kill_survivor()
        assert os.waitid(os.P_PID, survivor.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        assert survivor.wait(timeout=1) == -signal.SIGKILL


def test_a_birthmark_of_another_process_harms_nobody(tmp_path: object, context: Context) -> None:
    folder = context.run_dir("x") / "attempts" / "1"
    folder.mkdir(parents=True)
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as other:
        Birthmark(folder).write(other.pid)
        text = (folder / "engine.json").read_text()
        born = psutil.Process(other.pid).create_time()
        (folder / "engine.json").write_text(text.replace(str(born), str(born - 100)))
        assert not Birthmark(folder).kill_survivor()
        assert other.poll() is None
        with suppress(ProcessLookupError):
            other.kill()


def test_our_own_error_fails_the_run(context: Context, engine: Engine) -> None:
    run = fake_run(engine)
    with writing(engine) as session:
        row = session.get_one(Run, run.id)
        row.spec = row.spec | {"algorithm": "forgotten"}
    _supervise(context, engine).join(60)
    row = run_row(engine, run.id)
    assert row.state == "failed"
    assert "forgotten" in row.state_reason
    assert row.error is not None
    assert "Traceback" in row.error


def test_an_engine_is_polite_to_the_rest_of_the_machine(context: Context, engine: Engine) -> None:
    run = fake_run(engine, agent_steps=10_000)
    thread = _supervise(context, engine)
    _recorded(engine, run.id, 1)
    assert thread.rss_bytes() > 2**20
    (process,) = engines_of(context)
    assert process.nice() >= 10
    with writing(engine) as session:
        runs.transition(session, claims.held(session, run.id, 1), RunState.LOST, "test")
    until_state(engine, run.id, "lost")
    thread.join(60)
