import errno
import logging
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from sqlalchemy import Engine, select

from backend.coordination import claims
from backend.coordination.claims import Claim
from backend.coordination.context import Context
from backend.db import Attempt, Checkpoint, LogLine, Run
from backend.db.engine import reading, writing
from backend.platform.artifacts import ArtifactKind, ArtifactStore
from backend.runs.checkpoints import service as checkpoints
from backend.runs.runs import actions, service
from backend.specs import events
from backend.specs.run import StopSpec
from backend.specs.states import RunState
from tests.support.frames import unpack_frame
from tests.support.rows import add_host, evaluation_row
from tests.support.waiting import PATIENCE_S, until
from tests.workers.fake_engine import GRANDCHILD
from tests.workers.support import (
    ENDLESS,
    FAKE_ENGINE,
    FlakyContext,
    claim,
    engines_of,
    fake_run,
    lose,
    moves,
    points,
    run_row,
    stored_points,
    until_state,
)
from workers import engine_process, resume, supervisor
from workers.engine.files import file_sha256
from workers.engine.training.event_log import EventLog
from workers.engine_process import MAX_NICENESS, EngineProcess, ProcessIdentity
from workers.gameplay import Gameplay
from workers.supervisor import Supervisor

pytestmark = pytest.mark.service


@pytest.fixture(autouse=True)
def host(engine: Engine) -> None:
    add_host(engine, "a")


@pytest.fixture(autouse=True)
def no_engine_is_left(host: None, context: Context) -> Iterator[None]:
    yield
    until(lambda: not engines_of(context.settings.runs_dir))


def _supervisor(context: Context, won: Claim) -> Supervisor:
    return Supervisor(context, won, gameplay=Gameplay(context.settings.redis), command=FAKE_ENGINE)


def _supervise(context: Context, engine: Engine, **claimed: object) -> Supervisor:
    won = claim(engine, **claimed)  # type: ignore[arg-type]
    assert won is not None
    thread = _supervisor(context, won)
    thread.start()
    return thread


def _await_recorded(engine: Engine, run_id: str, agent_steps: int) -> None:
    until(lambda: run_row(engine, run_id).agent_steps >= agent_steps)


def _continue(context: Context, run: Run) -> None:
    (context.run_dir(run.id) / "go").touch()


def _request_stop(engine: Engine, run_id: str, *, kill: bool = False) -> None:
    with writing(engine) as session:
        actions.stop(session, run_id, kill=kill)


def _logged(engine: Engine, run_id: str, level: str) -> list[str]:
    with reading(engine) as session:
        lines = select(LogLine.message).where(LogLine.run_id == run_id, LogLine.level == level)
        return list(session.scalars(lines.order_by(LogLine.id)))


def test_supervised_run_finishes_and_is_recorded(context: Context, engine: Engine) -> None:
    run = fake_run(engine, agent_steps=45)
    _supervise(context, engine).join(PATIENCE_S)
    row = run_row(engine, run.id)
    assert (row.state, row.state_reason, row.agent_steps) == ("finished", "reached 45 agent steps", 45)
    assert (row.host, row.lease_expires_at, row.error) == (None, None, None)
    assert stored_points(engine, run.id) == list(range(1, 46))
    assert moves(engine, run.id) == ["queued", "starting", "running", "finished"]
    with reading(engine) as session:
        assert [c.agent_steps for c in checkpoints.resumable(session, run.id)] == [45, 40, 30, 20, 10]
        attempt = session.get_one(Attempt, (run.id, 1))
    log = context.run_dir(run.id) / "attempts" / "1" / "events.log"
    assert attempt.ended_at is not None
    assert attempt.log_offset_bytes == log.stat().st_size


def test_stop_of_engine_that_hangs_at_its_start_kills_it(
    context: Context, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert supervisor.START_STOP_TIMEOUT_S < 10.0, "the longest that a stop of a start may take"
    monkeypatch.setattr(supervisor, "START_STOP_TIMEOUT_S", 0.2)
    monkeypatch.setattr(supervisor, "STOP_TIMEOUT_S", 2 * PATIENCE_S)
    run = fake_run(engine, never_starts=True)
    thread = _supervise(context, engine)
    until(lambda: (context.run_dir(run.id) / "hangs").exists())
    assert run_row(engine, run.id).state == "starting"
    _request_stop(engine, run.id)
    thread.request("stop")
    thread.join(PATIENCE_S)
    row = run_row(engine, run.id)
    assert (row.state, row.state_reason) == ("stopped", "killed: the stop timed out")


def test_log_lines_contain_run_id_and_attempt(
    context: Context, engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    run = fake_run(engine, agent_steps=1)
    _supervise(context, engine).join(PATIENCE_S)
    logged = {r.getMessage(): vars(r) for r in caplog.records if r.name == "workers.supervisor"}
    assert set(logged) == {"engine.started", "attempt.ended"}
    assert {(line["run_id"], line["attempt"]) for line in logged.values()} == {(run.id, 1)}


def test_run_of_killed_engine_resumes_from_its_checkpoint(context: Context, engine: Engine) -> None:
    run = fake_run(engine, die={"1": {"at": 25, "how": signal.SIGKILL}})
    _supervise(context, engine).join(PATIENCE_S)
    row = run_row(engine, run.id)
    assert row.state == "queued"
    assert "SIGKILL, possibly out of memory" in row.state_reason
    assert _logged(engine, run.id, "warning") == [f"queued: {row.state_reason}"]
    assert stored_points(engine, run.id) == list(range(1, 26))
    _supervise(context, engine).join(PATIENCE_S)
    assert run_row(engine, run.id).state == "finished"
    assert stored_points(engine, run.id) == list(range(1, 51))
    with reading(engine) as session:
        assert session.get_one(Attempt, (run.id, 2)).resumed_from_agent_steps == 20


def test_run_whose_final_event_is_damaged_is_queued_again_and_finishes(
    context: Context, engine: Engine
) -> None:
    run = fake_run(engine, damages_end=1)
    _supervise(context, engine).join(PATIENCE_S)
    row = run_row(engine, run.id)
    assert row.state == "queued"
    assert row.state_reason.startswith("the end of its event log is damaged (check the disk of a): to resume")
    _supervise(context, engine).join(PATIENCE_S)
    assert run_row(engine, run.id).state == "finished"
    assert stored_points(engine, run.id) == list(range(1, 51))


def test_run_fails_after_three_crashes_without_checkpoint(context: Context, engine: Engine) -> None:
    die = {str(attempt): {"at": 5, "how": signal.SIGSEGV} for attempt in (1, 2, 3)}
    run = fake_run(engine, die=die)
    for expected in ("queued", "queued", "failed"):
        _supervise(context, engine).join(PATIENCE_S)
        assert run_row(engine, run.id).state == expected
    row = run_row(engine, run.id)
    assert row.state_reason == (
        "engine killed (SIGSEGV, a crash in native code): 3 attempts without a new checkpoint"
    )
    assert _logged(engine, run.id, "error") == [f"failed: {row.state_reason}"]


@pytest.mark.parametrize(("how", "error"), [("raise", "Traceback: x"), ("exit", "last line on stderr")])
def test_engine_error_fails_run_with_its_text(context: Context, engine: Engine, how: str, error: str) -> None:
    run = fake_run(engine, die={"1": {"at": 5, "how": how}})
    _supervise(context, engine).join(PATIENCE_S)
    row = run_row(engine, run.id)
    assert (row.state, row.error) == ("failed", error)
    assert stored_points(engine, run.id) == [1, 2, 3, 4, 5]


def test_full_disk_of_engine_queues_run_again_with_the_reason(context: Context, engine: Engine) -> None:
    run = fake_run(engine, die={str(attempt): {"at": 5, "how": "full"} for attempt in range(1, 5)})
    faults: list[int] = []
    for _ in range(4):  # more often than a run may fail by itself
        won = claim(engine)
        assert won is not None
        thread = Supervisor(
            context,
            won,
            gameplay=Gameplay(context.settings.redis),
            command=FAKE_ENGINE,
            on_disk_fault=faults.append,
        )
        thread.start()
        thread.join(PATIENCE_S)
        row = run_row(engine, run.id)
        assert (row.state, row.attempts_without_checkpoint) == ("queued", 0)
        assert row.state_reason == "the disk of a failed: No space left on device"
    assert faults == [errno.ENOSPC] * 4


class _FullStore(ArtifactStore):
    """An artifact store whose files do not fit on this host's disk."""

    def get(self, run_id: str, kind: ArtifactKind, file: str, folder: Path) -> Path:
        raise OSError(errno.EDQUOT, "Disk quota exceeded")


class _HangingStore(ArtifactStore):
    """An artifact store that does not answer before it is released."""

    released = threading.Event()
    asked = threading.Event()

    def put(self, local: Path, run_id: str, kind: ArtifactKind, file: str | None = None) -> None:
        self.asked.set()
        self.released.wait(PATIENCE_S)
        super().put(local, run_id, kind, file)


@pytest.mark.parametrize("how", ["kill", "supersede"])
def test_engine_is_killed_while_the_store_does_not_answer(context: Context, engine: Engine, how: str) -> None:
    store = _HangingStore(context.settings.artifacts)
    _HangingStore.released.clear()
    _HangingStore.asked.clear()
    run = fake_run(engine, agent_steps=ENDLESS)
    thread = _supervise(replace(context, store=store), engine)
    assert store.asked.wait(PATIENCE_S)
    if how == "kill":
        _request_stop(engine, run.id, kill=True)
        thread.request("kill")
    else:
        thread.supersede()
    until(lambda: not engines_of(context.settings.runs_dir))
    assert thread.is_alive()
    store.released.set()
    thread.join(PATIENCE_S)
    assert run_row(engine, run.id).state == ("stopped" if how == "kill" else "running")


def test_full_disk_before_the_engine_starts_queues_run_again(context: Context, engine: Engine) -> None:
    run = _die_and_queue(context, engine)
    shutil.rmtree(context.run_dir(run.id) / "checkpoints")
    full = replace(context, store=_FullStore(context.settings.artifacts))
    _supervise(full, engine).join(PATIENCE_S)
    row = run_row(engine, run.id)
    assert (row.state, row.state_reason) == ("queued", "the disk of a failed: Disk quota exceeded")


def test_run_starts_once_its_host_can_start_a_process_and_store_its_identity(
    context: Context, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "_MAX_BACKOFF_S", 0.01)
    write = ProcessIdentity.write
    started: list[EngineProcess] = []
    no_process = [BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")]
    no_file = [OSError(errno.EMFILE, "Too many open files")]

    def start(*arguments: Any, **options: Any) -> EngineProcess:
        if no_process:
            raise no_process.pop()
        started.append(EngineProcess(*arguments, **options))
        return started[-1]

    def write_or_fail(identity: ProcessIdentity, pid: int) -> None:
        if no_file:
            raise no_file.pop()
        write(identity, pid)

    monkeypatch.setattr(supervisor, "EngineProcess", start)
    monkeypatch.setattr(ProcessIdentity, "write", write_or_fail)
    run = fake_run(engine, agent_steps=5, wait_at=1)
    thread = _supervise(context, engine)
    until(lambda: len(started) == 2 or not thread.is_alive())
    _continue(context, run)
    thread.join(PATIENCE_S)
    row = run_row(engine, run.id)
    assert (row.state, row.attempt) == ("finished", 1)
    assert [process.returncode for process in started] == [-signal.SIGKILL, 0]


def test_silence_of_an_engine_is_logged(
    context: Context, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "SILENT_S", 0.0)
    run = fake_run(engine, agent_steps=10, wait_at=5)
    thread = _supervise(context, engine)
    until(lambda: any("has reported nothing" in line for line in _logged(engine, run.id, "warning")))
    _await_recorded(engine, run.id, 5)
    _continue(context, run)
    thread.join(PATIENCE_S)
    assert run_row(engine, run.id).state == "finished"


def test_killed_run_whose_folder_was_removed_ends(context: Context, engine: Engine) -> None:
    run = fake_run(engine, wait_at=5)
    thread = _supervise(context, engine)
    _await_recorded(engine, run.id, 5)
    shutil.rmtree(context.run_dir(run.id))
    _request_stop(engine, run.id, kill=True)
    thread.request("kill")
    thread.join(PATIENCE_S)
    row = run_row(engine, run.id)
    assert (row.state, row.state_reason) == ("stopped", "killed on request")


def test_stopped_and_resumed_run_has_one_continuous_series(context: Context, engine: Engine) -> None:
    run = fake_run(engine, agent_steps=ENDLESS)
    thread = _supervise(context, engine)
    _await_recorded(engine, run.id, 15)
    _request_stop(engine, run.id)
    thread.request("stop")
    thread.join(PATIENCE_S)
    row = run_row(engine, run.id)
    assert (row.state, row.stop_requested) == ("stopped", None)
    stopped_at = row.agent_steps
    assert stored_points(engine, run.id) == list(range(1, stopped_at + 1))
    end = stopped_at + 30
    with writing(engine) as session:
        actions.resume(session, run.id, StopSpec(agent_steps=end))
    _supervise(context, engine).join(PATIENCE_S)
    assert run_row(engine, run.id).state == "finished"
    assert stored_points(engine, run.id) == list(range(1, end + 1))
    with reading(engine) as session:
        assert session.get_one(Attempt, (run.id, 2)).resumed_from_agent_steps == stopped_at


def test_kill_ends_every_descendant_of_engine(context: Context, engine: Engine) -> None:
    run = fake_run(engine, agent_steps=ENDLESS, grandchild=True)
    thread = _supervise(context, engine)
    until(
        lambda: any(GRANDCHILD in str(process.cmdline()) for process in engines_of(context.settings.runs_dir))
    )
    _await_recorded(engine, run.id, 1)
    _request_stop(engine, run.id, kill=True)
    thread.request("kill")
    thread.join(PATIENCE_S)
    row = run_row(engine, run.id)
    assert (row.state, row.state_reason) == ("stopped", "killed on request")


def test_engine_that_ignores_stop_is_killed(
    context: Context, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "STOP_TIMEOUT_S", 0.5)
    run = fake_run(engine, agent_steps=ENDLESS, ignores_stop=True)
    thread = _supervise(context, engine)
    _await_recorded(engine, run.id, 1)
    _request_stop(engine, run.id)
    thread.request("stop")
    thread.join(PATIENCE_S)
    row = run_row(engine, run.id)
    assert (row.state, row.state_reason) == ("stopped", "killed: the stop timed out")


def test_release_saves_checkpoint_and_queues_run_without_counting_attempt(
    context: Context, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "SHUTDOWN_STOP_TIMEOUT_S", PATIENCE_S)
    run = fake_run(engine, agent_steps=ENDLESS, checkpoint_every=ENDLESS)
    thread = _supervise(context, engine)
    _await_recorded(engine, run.id, 5)
    thread.requeue_for_shutdown()
    thread.join(PATIENCE_S)
    row = run_row(engine, run.id)
    assert (row.state, row.attempts_without_checkpoint) == ("queued", 0)
    with reading(engine) as session:
        newest = checkpoints.resumable(session, run.id)[0]
    assert newest.agent_steps == row.agent_steps == stored_points(engine, run.id)[-1]


def test_stop_request_before_start_stops_run_without_engine(context: Context, engine: Engine) -> None:
    run = fake_run(engine)
    won = claim(engine)
    assert won is not None
    _request_stop(engine, run.id)
    thread = _supervisor(context, won)
    thread.request("stop")
    thread.start()
    thread.join(PATIENCE_S)
    assert moves(engine, run.id) == ["queued", "starting", "stopping", "stopped"]
    assert not (context.run_dir(run.id) / "attempts").exists()


def test_supervisor_of_lost_run_changes_nothing(context: Context, engine: Engine) -> None:
    run = fake_run(engine, agent_steps=ENDLESS)
    thread = _supervise(context, engine)
    _await_recorded(engine, run.id, 5)
    with writing(engine) as session:
        lose(session, run.id)
        won = claims.claim(session, "a", queues=["cpu"], free_memory_bytes=2**40, lease_s=60)
    before = run_row(engine, run.id)
    thread.join(PATIENCE_S)  # its next write finds that the run belongs to another attempt
    assert not thread.is_alive()
    after = run_row(engine, run.id)
    assert won is not None
    assert (after.state, after.attempt, after.revision) == ("starting", 2, before.revision)
    assert moves(engine, run.id) == ["queued", "starting", "running", "lost", "queued", "starting"]


def test_lose_ends_supervisor_and_leaves_run_state(context: Context, engine: Engine) -> None:
    run = fake_run(engine, agent_steps=ENDLESS)
    thread = _supervise(context, engine)
    _await_recorded(engine, run.id, 5)
    thread.supersede()
    thread.join(PATIENCE_S)
    assert run_row(engine, run.id).state == "running"  # another attempt is responsible now


def _die_and_queue(context: Context, engine: Engine, algorithm: str = "paac") -> Run:
    run = fake_run(engine, algorithm=algorithm, die={"1": {"at": 35, "how": signal.SIGKILL}})
    _supervise(context, engine).join(PATIENCE_S)
    assert run_row(engine, run.id).state == "queued"
    return run


def _resumed_at(engine: Engine, run_id: str) -> int:
    assert run_row(engine, run_id).state == "finished"
    assert stored_points(engine, run_id) == list(range(1, 51))
    with reading(engine) as session:
        return session.get_one(Attempt, (run_id, 2)).resumed_from_agent_steps


def test_missing_local_checkpoint_is_fetched_from_store(context: Context, engine: Engine) -> None:
    run = _die_and_queue(context, engine)
    for file in (context.run_dir(run.id) / "checkpoints").iterdir():
        file.unlink()
    _supervise(context, engine).join(PATIENCE_S)
    assert _resumed_at(engine, run.id) == 30


def test_what_an_environment_prints_is_bounded(
    context: Context, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_process, "MAX_OUTPUT_BYTES", 10_000)
    die = {"1": {"at": 50, "how": "exit"}}
    run = fake_run(engine, agent_steps=60, prints=1_000, step_s=0.02, die=die)
    _supervise(context, engine).join(PATIENCE_S)
    output = context.run_dir(run.id) / "attempts" / "1" / "stderr.log"
    assert output.stat().st_size < 50_000
    assert output.read_bytes().endswith(b"x\nlast line on stderr\n")
    assert sum("it prints a lot" in line for line in _logged(engine, run.id, "warning")) == 1


def test_run_waits_for_a_store_that_is_not_mounted(
    context: Context, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "_MAX_BACKOFF_S", 0.01)
    run = _die_and_queue(context, engine)
    shutil.rmtree(context.run_dir(run.id) / "checkpoints")
    store = context.settings.home_dir / "artifacts"
    away = store.rename(store.with_name("away"))
    resuming = _supervise(context, engine)
    until(lambda: any("has no file of this run" in line for line in _logged(engine, run.id, "warning")))
    assert stored_points(engine, run.id)[-1] >= 30
    shutil.rmtree(store, ignore_errors=True)
    away.rename(store)
    resuming.join(PATIENCE_S)
    assert _resumed_at(engine, run.id) == 30
    assert sum("has no file of this run" in line for line in _logged(engine, run.id, "warning")) == 1


def test_best_checkpoint_is_fetched_from_store_for_its_second_score(context: Context, engine: Engine) -> None:
    """As on another host than that which saved it."""
    run = _die_and_queue(context, engine, "dqn")
    with writing(engine) as session:
        session.add_all(evaluation_row(run.id, at, score) for at, score in ((10, 9.0), (20, 5.0)))
    folder = context.run_dir(run.id) / "checkpoints"
    shutil.rmtree(folder)
    _supervise(context, engine).join(PATIENCE_S)
    assert _resumed_at(engine, run.id) == 30
    assert sorted(path.name for path in folder.glob("a1-*")) == [
        "a1-s000000000010.pt",
        "a1-s000000000030.pt",
    ]


def test_checkpoints_are_stored_and_fetched_from_s3(context: Context, engine: Engine, s3_url: str) -> None:
    lab = replace(context, store=ArtifactStore(s3_url))
    run = fake_run(engine, die={"1": {"at": 35, "how": signal.SIGKILL}})
    _supervise(lab, engine).join(PATIENCE_S)
    shutil.rmtree(context.run_dir(run.id) / "checkpoints")
    _supervise(lab, engine).join(PATIENCE_S)
    assert _resumed_at(engine, run.id) == 30
    with lab.store.open(run.id, "checkpoints", "a2-s000000000050.pt") as file:
        assert b'"agent_steps": 50' in file.read()


def test_run_resumes_from_older_checkpoint_when_newest_is_damaged(context: Context, engine: Engine) -> None:
    run = _die_and_queue(context, engine)
    local = context.run_dir(run.id) / "checkpoints" / "a1-s000000000030.pt"
    local.write_bytes(b"damaged")
    context.store.put(local, run.id, "checkpoints")
    _supervise(context, engine).join(PATIENCE_S)
    assert _resumed_at(engine, run.id) == 20
    with reading(engine) as session:
        warnings = session.scalars(select(LogLine.message).where(LogLine.level == "warning")).all()
        assert any("a1-s000000000030.pt is missing or damaged" in message for message in warnings)
        damaged = session.scalars(select(Checkpoint).where(Checkpoint.agent_steps == 30)).all()
        assert [c.superseded for c in damaged if c.attempt == 1] == [True]


def test_run_resumes_from_older_checkpoint_when_newest_cannot_be_read(
    context: Context, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = _die_and_queue(context, engine)

    def read_or_fail(path: Path) -> str:
        if path.name == "a1-s000000000030.pt":
            raise OSError(errno.EIO, "Input/output error")
        return file_sha256(path)

    monkeypatch.setattr(resume, "file_sha256", read_or_fail)
    _supervise(context, engine).join(PATIENCE_S)
    assert _resumed_at(engine, run.id) == 20


def test_run_resumes_from_older_checkpoint_when_newest_is_damaged_after_it_was_checked(
    context: Context, engine: Engine
) -> None:
    run = fake_run(engine, die={"1": {"at": 35, "how": signal.SIGKILL}}, damages_resumed=2)
    for expected in ("queued", "queued", "finished"):
        _supervise(context, engine).join(PATIENCE_S)
        row = run_row(engine, run.id)
        assert row.state == expected, row.error
    reason = "its engine could not read the checkpoint to resume from: it will resume from an intact one"
    warnings = _logged(engine, run.id, "warning")
    assert warnings[1:] == [
        f"queued: {reason}",
        "checkpoint a1-s000000000030.pt is missing or damaged: trying an older one",
    ]
    assert stored_points(engine, run.id) == list(range(1, 51))
    with reading(engine) as session:
        assert session.get_one(Attempt, (run.id, 3)).resumed_from_agent_steps == 20


def test_run_without_intact_checkpoint_restarts_from_zero(context: Context, engine: Engine) -> None:
    run = _die_and_queue(context, engine)
    with writing(engine) as session:
        for checkpoint in session.scalars(select(Checkpoint)):
            checkpoint.sha256 = "0" * 64
    _supervise(context, engine).join(PATIENCE_S)
    assert _resumed_at(engine, run.id) == 0
    warnings = [
        message for message in _logged(engine, run.id, "warning") if "is missing or damaged" in message
    ]
    ways_out = [message.partition(" is missing or damaged: ")[2] for message in warnings]
    assert ways_out == ["trying an older one"] * (len(warnings) - 1) + ["starting from scratch"]


def _flaky(context: Context) -> FlakyContext:
    return FlakyContext(context.settings, context.db_engine, context.store, context.bus)


def test_frames_are_published_while_the_run_is_watched(
    context: Context, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched, published = [False], []
    monkeypatch.setattr(Gameplay, "is_watched", lambda *_: watched[0])
    monkeypatch.setattr(Gameplay, "publish", lambda _, run_id, frame: published.append((run_id, frame)))
    run = fake_run(engine, agent_steps=ENDLESS)
    thread = _supervise(context, engine)
    _await_recorded(engine, run.id, 1)
    assert published == []
    watched[0] = True
    until(lambda: published)
    assert {(run_id, unpack_frame(frame)[1]) for run_id, frame in published} == {(run.id, b"frame")}
    _request_stop(engine, run.id)
    thread.request("stop")
    thread.join(PATIENCE_S)


def test_training_continues_during_database_outage(
    context: Context, engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    run = fake_run(engine, agent_steps=60, wait_at=5)
    flaky = _flaky(context)
    thread = _supervise(flaky, engine)
    _await_recorded(engine, run.id, 5)
    flaky.outage.append(True)
    _continue(context, run)
    log = context.run_dir(run.id) / "attempts" / "1" / "events.log"
    until(lambda: b"reached 60" in log.read_bytes())
    lags = []
    for n in (1, 2):
        until(lambda: [line.getMessage() for line in caplog.records].count("supervisor.retrying") >= n)  # noqa: B023
        lags.append(thread.recorder_lag_s())
    assert 0.0 < lags[0] < lags[1]
    assert run_row(engine, run.id).agent_steps < 60
    flaky.outage.clear()
    thread.join(PATIENCE_S)
    assert run_row(engine, run.id).state == "finished"
    assert stored_points(engine, run.id) == list(range(1, 61))


def test_next_attempt_records_log_of_worker_that_died_in_database_outage(
    context: Context, engine: Engine
) -> None:
    """The next attempt on this host records the events and checkpoints that only its log contains."""
    run = fake_run(engine, agent_steps=50, wait_at=5, die={"1": {"at": 35, "how": signal.SIGKILL}})
    flaky = _flaky(context)
    thread = _supervise(flaky, engine)
    _await_recorded(engine, run.id, 5)
    flaky.outage.append(True)
    _continue(context, run)
    log = context.run_dir(run.id) / "attempts" / "1" / "events.log"
    until(lambda: b'"agent_steps":[35]' in log.read_bytes())
    thread.supersede()  # the worker is gone and has recorded nothing since
    thread.join(PATIENCE_S)
    assert run_row(engine, run.id).agent_steps < 30
    with writing(engine) as session:
        lose(session, run.id)
    _supervise(context, engine).join(PATIENCE_S)
    assert _resumed_at(engine, run.id) == 30


def test_log_is_recorded_though_the_attempt_after_it_started_no_engine(
    context: Context, engine: Engine
) -> None:
    run = fake_run(engine, agent_steps=50, wait_at=5, die={"1": {"at": 35, "how": signal.SIGKILL}})
    flaky = _flaky(context)
    thread = _supervise(flaky, engine)
    _await_recorded(engine, run.id, 5)
    flaky.outage.append(True)
    _continue(context, run)
    log = context.run_dir(run.id) / "attempts" / "1" / "events.log"
    until(lambda: b'"agent_steps":[35]' in log.read_bytes())
    thread.supersede()
    thread.join(PATIENCE_S)
    for _ in range(2):  # the worker died; so did the next one, before it had prepared the run
        with writing(engine) as session:
            lose(session, run.id)
        won = claim(engine)
    assert won is not None
    attempt = _supervisor(context, won)
    attempt.start()
    attempt.join(PATIENCE_S)
    assert run_row(engine, run.id).state == "finished"
    assert stored_points(engine, run.id) == list(range(1, 51))
    with reading(engine) as session:
        assert session.get_one(Attempt, (run.id, 3)).resumed_from_agent_steps == 30


def test_run_finished_by_dead_worker_is_recorded_as_finished(context: Context, engine: Engine) -> None:
    run = fake_run(engine, agent_steps=20, wait_at=5)
    flaky = _flaky(context)
    thread = _supervise(flaky, engine)
    _await_recorded(engine, run.id, 5)
    flaky.outage.append(True)
    _continue(context, run)
    log = context.run_dir(run.id) / "attempts" / "1" / "events.log"
    until(lambda: b"reached 20" in log.read_bytes())
    thread.supersede()
    thread.join(PATIENCE_S)
    with writing(engine) as session:
        lose(session, run.id)
    _supervise(context, engine).join(PATIENCE_S)
    row = run_row(engine, run.id)
    assert (row.state, row.attempt) == ("finished", 2)
    assert stored_points(engine, run.id) == list(range(1, 21))
    assert not (context.run_dir(run.id) / "attempts" / "2").exists()


def test_engine_that_outlived_its_worker_is_killed_before_next_attempt(
    context: Context, engine: Engine
) -> None:
    run = fake_run(engine, agent_steps=20)
    folder = context.run_dir(run.id) / "attempts" / "1"
    folder.mkdir(parents=True)
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as survivor:
        ProcessIdentity(folder).write(survivor.pid)
        claim(engine)
        with writing(engine) as session:
            lose(session, run.id)
        thread = _supervise(context, engine)
        survivor.wait(timeout=PATIENCE_S)
        thread.join(PATIENCE_S)
    assert run_row(engine, run.id).state == "finished"


def _earlier_attempt(context: Context, run: Run) -> Path:
    """Write the folder of an attempt 1 that the database, which was restored since, does not know."""
    folder = context.run_dir(run.id) / "attempts" / "1"
    log = EventLog(folder / "events.log")
    log.add(
        events.StartedEvent(time=1.0, device="cpu", pid=1),
        points(100),
        events.EndedEvent(time=2.0, state="failed", reason="of the earlier attempt"),
    )
    log.close()
    return folder


def test_log_of_reused_attempt_number_is_not_recorded_when_attempt_is_stopped_before_its_start(
    context: Context, engine: Engine
) -> None:
    run = fake_run(engine, agent_steps=20)
    _earlier_attempt(context, run)
    won = claim(engine)
    assert won is not None
    _request_stop(engine, run.id)
    attempt = _supervisor(context, won)
    attempt.request("stop")
    attempt.run()
    assert run_row(engine, run.id).state == "stopped"
    assert stored_points(engine, run.id) == []


def test_folder_of_reused_attempt_number_is_set_aside_and_its_engine_killed(
    context: Context, engine: Engine
) -> None:
    run = fake_run(engine, agent_steps=20)
    folder = _earlier_attempt(context, run)
    content = (folder / "events.log").read_bytes()
    won = claim(engine)
    assert won is not None
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as survivor:
        try:
            ProcessIdentity(folder).write(survivor.pid)
            thread = _supervisor(context, won)
            thread.start()
            thread.join(PATIENCE_S)
            row = run_row(engine, run.id)
            assert (row.state, row.attempt) == ("finished", 1)
            assert survivor.wait(timeout=PATIENCE_S) == -signal.SIGKILL
        finally:
            survivor.kill()
    assert stored_points(engine, run.id) == list(range(1, 21))
    [aside] = folder.parent.glob("1.*")
    assert (aside / "events.log").read_bytes() == content


def test_kill_survivor_does_not_reap_the_process(context: Context) -> None:
    """A host that lost a run and claimed it again has two supervisors of it for a moment."""
    folder = context.run_dir("x") / "attempts" / "1"
    folder.mkdir(parents=True)
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as survivor:
        ProcessIdentity(folder).write(survivor.pid)
        assert ProcessIdentity(folder).kill_survivor()
        assert os.waitid(os.P_PID, survivor.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        assert survivor.wait(timeout=1) == -signal.SIGKILL


def test_kill_survivor_spares_process_with_other_start_time(tmp_path: object, context: Context) -> None:
    folder = context.run_dir("x") / "attempts" / "1"
    folder.mkdir(parents=True)
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as other:
        ProcessIdentity(folder).write(other.pid)
        text = (folder / "engine.json").read_text()
        started_at = psutil.Process(other.pid).create_time()
        (folder / "engine.json").write_text(text.replace(str(started_at), str(started_at - 100)))
        assert not ProcessIdentity(folder).kill_survivor()
        assert other.poll() is None
        with suppress(ProcessLookupError):
            other.kill()


def test_invalid_spec_fails_run_with_traceback(context: Context, engine: Engine) -> None:
    run = fake_run(engine)
    with writing(engine) as session:
        row = session.get_one(Run, run.id)
        row.spec = row.spec | {"config": row.spec["config"] | {"forgotten": 1}}
    _supervise(context, engine).join(PATIENCE_S)
    row = run_row(engine, run.id)
    assert row.state == "failed"
    assert "forgotten" in row.state_reason
    assert row.error is not None
    assert "Traceback" in row.error


def test_engine_that_starts_does_not_yield_the_cpu(context: Context, engine: Engine) -> None:
    yielding = replace(context, settings=context.settings.model_copy(update={"engine_niceness": 7}))
    run = fake_run(engine, never_starts=True)
    thread = _supervise(yielding, engine)
    until(lambda: (context.run_dir(run.id) / "hangs").exists())
    (process,) = engines_of(context.settings.runs_dir)
    niceness = process.nice()
    _request_stop(engine, run.id, kill=True)
    thread.request("kill")
    thread.join(PATIENCE_S)
    assert niceness == psutil.Process().nice()


def test_engine_and_its_descendants_yield_the_cpu_once_it_trains(context: Context, engine: Engine) -> None:
    yielding = replace(context, settings=context.settings.model_copy(update={"engine_niceness": 7}))
    run = fake_run(engine, agent_steps=ENDLESS, grandchild=True)
    thread = _supervise(yielding, engine)
    _await_recorded(engine, run.id, 1)
    assert thread.memory_bytes() > 2**20
    niceness = min(psutil.Process().nice() + 7, MAX_NICENESS)
    until(lambda: [process.nice() for process in engines_of(context.settings.runs_dir)] == [niceness] * 2)
    with writing(engine) as session:
        service.transition(session, claims.lock(session, run.id, 1), RunState.LOST, "test")
    until_state(engine, run.id, "lost")
    thread.join(PATIENCE_S)
