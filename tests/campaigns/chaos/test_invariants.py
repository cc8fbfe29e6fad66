"""The invariants of chaos campaigns: no violation without lost or duplicate rows, whatever the timing."""

import gzip
import hashlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import MappingProxyType

import pytest
from sqlalchemy import Engine, delete, update

from backend.coordination import claims
from backend.coordination.context import Context
from backend.db import Attempt, Checkpoint, LogLine, Transition
from backend.db.base import new_id
from backend.db.engine import writing
from backend.platform.settings import Settings
from backend.runs.checkpoints import service as checkpoints
from backend.runs.runs import actions, service
from backend.specs import events
from backend.specs.states import RunState
from tests.campaigns.chaos import invariants
from tests.campaigns.chaos.stack import repair_logs
from tests.support.rows import add_host
from tests.workers.fake_engine import flip_bit
from tests.workers.support import claim, expire_lease, fake_run, points
from workers.engine.training.event_log import EventLog
from workers.recorder import Recorder

pytestmark = [pytest.mark.service, pytest.mark.long]


class ChaosRun:
    """A run whose attempts are claimed, started, logged, recorded and lost as real ones are."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.id = fake_run(context.db_engine).id
        self.attempt = 0

    def claim(self) -> None:
        assert claim(self.context.db_engine, "ab"[self.attempt % 2]) is not None
        self.attempt += 1

    def begin(self, file: str | None = None) -> None:
        with self.context.writing() as session:
            rows = [row for row in checkpoints.resumable(session, self.id) if row.file == file]
            claims.resume_from(session, self.id, self.attempt, rows[0] if rows else None)

    def start(self, file: str | None = None) -> None:
        """Claim the run, begin the attempt and log its started event."""
        self.claim()
        self.begin(file)
        at = int(file.split("-s")[1][:-3]) if file else 0
        self.emit(
            events.StartedEvent(time=time.time(), device="cpu", pid=1, resumed_from=file, agent_steps=at)
        )

    def emit(self, *logged: events.AnyEvent) -> None:
        log = EventLog(self.context.run_dir(self.id) / "attempts" / str(self.attempt) / "events.log")
        log.add(*logged)
        log.close()

    def saved(self, agent_steps: int) -> events.CheckpointSavedEvent:
        file = f"a{self.attempt}-s{agent_steps:012d}.pt"
        path = self.context.run_dir(self.id) / "checkpoints" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file)
        digest = hashlib.sha256(file.encode()).hexdigest()
        return events.CheckpointSavedEvent(
            agent_steps=agent_steps, frames=agent_steps, updates=1, episodes=0, wall_time_s=1.0, file=file,
            sha256=digest, size_bytes=len(file),
        )  # fmt: skip

    def record(self) -> None:
        Recorder(self.context, self.id, self.attempt).record()

    def lose(self) -> None:
        expire_lease(self.context.db_engine, self.id)
        with self.context.writing() as session:
            assert claims.expire(session) == [self.id]

    def stop(self) -> None:
        with self.context.writing() as session:
            actions.stop(session, self.id, kill=False)

    def release_before_start(self) -> None:
        with self.context.writing() as session:
            claims.end_attempt(
                session, claims.lock(session, self.id, self.attempt), RunState.STOPPED, "asked"
            )

    def finish(self) -> None:
        self.emit(events.EndedEvent(time=time.time(), state="finished", reason="done"))
        Recorder(self.context, self.id, self.attempt).conclude(
            lambda session, run, ended: claims.end_attempt(session, run, RunState.FINISHED, "done")
        )

    @property
    def log_path(self) -> Path:
        return self.context.run_dir(self.id) / "attempts" / str(self.attempt) / "events.log"

    def violations(self, damage: invariants.Damage = MappingProxyType({})) -> Sequence[str]:
        with self.context.reading() as session:
            run = service.find(session, self.id)
            assert run is not None
            return list(invariants.check_run(session, run, [self.context.settings.runs_dir], damage))


@pytest.fixture
def run(database_url: str, redis_url: str, tmp_path: Path) -> Iterator[ChaosRun]:
    """A run with a recorded checkpoint at 10 and two recorded points behind it."""
    context = Context.from_settings(
        Settings(home=tmp_path / "home", database_url=database_url, redis_url=redis_url)
    )
    for host in "ab":
        add_host(context.db_engine, host)
    chaos_run = ChaosRun(context)
    chaos_run.start()
    chaos_run.emit(points(*range(1, 11)), chaos_run.saved(10), points(11, 12))
    chaos_run.record()
    yield chaos_run
    context.close()


FIRST = "a1-s000000000010.pt"


def test_no_violation_when_run_is_stopped_in_queue_after_host_loss(run: ChaosRun) -> None:
    run.emit(points(13, 14))
    run.lose()
    run.stop()
    assert run.violations() == []


def test_no_violation_when_run_is_stopped_before_second_attempt_starts(run: ChaosRun) -> None:
    run.emit(points(13, 14))
    run.lose()
    run.claim()
    run.stop()
    run.release_before_start()
    assert run.violations() == []


def test_no_violation_when_run_is_stopped_after_attempt_without_events(run: ChaosRun) -> None:
    run.lose()
    run.claim()
    run.begin(FIRST)
    run.lose()
    run.claim()
    run.stop()
    run.release_before_start()
    assert run.violations() == []


def test_no_violation_when_second_checkpoint_at_same_step_is_lost(run: ChaosRun) -> None:
    run.lose()
    run.start(FIRST)
    score = events.EvaluationEvent(
        protocol="plain", agent_steps=10, frames=10, wall_time_s=1.0, checkpoint="a2-s000000000010.pt",
        seed=1, returns=[1.0], lengths_frames=[1], mean_return=1.0,
    )  # fmt: skip
    run.emit(score, run.saved(10))
    run.lose()
    run.start(FIRST)
    run.emit(score, points(11, 12), run.saved(50))
    run.finish()
    assert run.violations() == []


def test_no_violation_when_points_after_checkpoint_at_its_step_are_lost(run: ChaosRun) -> None:
    run.emit(run.saved(20))
    run.record()
    run.emit(points(20, metric="speed/agent_steps_per_s"))
    run.lose()
    run.start("a1-s000000000020.pt")
    run.emit(points(21), run.saved(50))
    run.finish()
    assert run.violations() == []


@pytest.fixture
def finished(run: ChaosRun) -> ChaosRun:
    """The run after a host loss, a resume and its end."""
    run.lose()
    run.start(FIRST)
    run.emit(points(11), run.saved(20))
    run.finish()
    assert run.violations() == []
    return run


def test_missing_row_is_a_violation(finished: ChaosRun, engine: Engine) -> None:
    with writing(engine) as session:
        session.execute(update(Checkpoint).where(Checkpoint.agent_steps == 20).values(superseded=True))
    [violation] = finished.violations()
    assert "checkpoints: 1 rows stored, 2 in the logs; missing [(20, " in violation


def test_duplicate_row_is_a_violation(finished: ChaosRun, engine: Engine) -> None:
    with writing(engine) as session:
        row = session.query(Checkpoint).filter(Checkpoint.agent_steps == 20).one()
        columns = {column.name: getattr(row, column.name) for column in Checkpoint.__table__.columns}
        session.add(Checkpoint(**(columns | {"id": new_id()})))
    [violation] = finished.violations()
    assert "checkpoints: 3 rows stored, 2 in the logs; missing [], unexpected [], 1 duplicates" in violation


def test_events_skipped_by_recorder_are_a_violation_despite_host_loss(run: ChaosRun, engine: Engine) -> None:
    run.emit(points(13, 14))
    with writing(engine) as session:
        session.execute(update(Attempt).values(log_offset_bytes=1_000_000))
    run.lose()
    run.stop()
    [violation] = run.violations()
    assert "missing [(13, '13.0'), (14, '14.0')]" in violation


def test_resume_from_unrecorded_checkpoint_is_a_violation(run: ChaosRun) -> None:
    run.emit(run.saved(20))
    run.lose()
    run.claim()
    run.begin(FIRST)
    run.emit(
        events.StartedEvent(time=1.0, device="cpu", pid=1, resumed_from="a1-s000000000020.pt", agent_steps=20)
    )
    run.finish()
    assert run.violations()


def test_illegal_transition_and_attempt_without_end_are_violations(
    finished: ChaosRun, engine: Engine
) -> None:
    with writing(engine) as session:
        session.execute(update(Attempt).where(Attempt.number == 1).values(ended_at=None))
        session.execute(
            update(Transition).where(Transition.after == RunState.LOST).values(after=RunState.FINISHED)
        )
    wrong = finished.violations()
    assert any("moved from lost while it was finished" in violation for violation in wrong)
    assert any("attempt 1 never ended" in violation for violation in wrong)


def test_rows_of_a_damaged_frame_may_be_missing_if_the_log_reports_it(run: ChaosRun, engine: Engine) -> None:
    place = run.log_path.stat().st_size + 20
    run.emit(points(13))
    run.emit(points(14))
    flip_bit(run.log_path, place)
    run.finish()
    # As a worker does while its disk is full.
    run.log_path.with_name("events.log.gz").write_bytes(gzip.compress(run.log_path.read_bytes()))
    run.log_path.unlink()
    repair_logs(run.context.settings.runs_dir, {run.log_path: [place]})
    assert run.violations({run.log_path: [place]}) == []
    [violation] = run.violations()
    assert "missing [(13, '13.0')]" in violation
    with writing(engine) as session:
        session.execute(delete(LogLine).where(LogLine.level == "error"))
    assert "its log does not say so" in run.violations({run.log_path: [place]})[0]


def test_rows_next_to_a_damaged_frame_may_not_be_missing(run: ChaosRun) -> None:
    run.emit(points(13))
    place = run.log_path.stat().st_size + 20
    run.emit(points(14))
    flip_bit(run.log_path, place - 40)
    run.finish()
    flip_bit(run.log_path, place - 40)
    [violation] = run.violations({run.log_path: [place]})
    assert "missing [(13, '13.0')]" in violation


def test_start_at_another_step_than_the_checkpoint_is_a_violation(run: ChaosRun) -> None:
    run.lose()
    run.claim()
    run.begin(FIRST)
    run.emit(events.StartedEvent(time=1.0, device="cpu", pid=1, resumed_from=FIRST, agent_steps=9))
    run.finish()
    assert any("resumed from a1-s000000000010.pt at step 9" in violation for violation in run.violations())
