"""The judge of chaos: silent where nothing that counts is lost, however odd the timing, and only there."""

import hashlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from sqlalchemy import Engine, update

from backend.db import Attempt, Checkpoint, Transition
from backend.db.engine import writing
from backend.db.ids import new_id
from backend.runs import repository as runs
from backend.runs import service
from backend.settings import Settings
from backend.specs import events
from backend.specs.states import RunState
from tests.chaos import invariants
from tests.support.databases import ON_SQLITE_FIRST
from tests.workers.support import add_host, claim, fake_run, points, run_out
from workers import claims
from workers.context import Context
from workers.engine.event_log import EventLog
from workers.recorder import Recorder

pytestmark = [pytest.mark.service, ON_SQLITE_FIRST]


class Told:
    """A run whose attempts are claimed, begun, told of, recorded and lost as real ones are."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.id = fake_run(context.engine).id
        self.attempt = 0

    def claim(self) -> None:
        assert claim(self.context.engine, "ab"[self.attempt % 2]) is not None
        self.attempt += 1

    def begin(self, file: str | None = None) -> None:
        with self.context.writing() as session:
            found = [row for row in claims.checkpoints(session, self.id) if row.file == file]
            claims.begin(session, self.id, self.attempt, found[0] if found else None)

    def start(self, file: str | None = None) -> None:
        """Claim, begin and say the first word."""
        self.claim()
        self.begin(file)
        at = int(file.split("-s")[1][:-3]) if file else 0
        self.say(events.Started(time=time.time(), device="cpu", pid=1, resumed_from=file, agent_steps=at))

    def say(self, *said: events.AnyEvent) -> None:
        log = EventLog(self.context.run_dir(self.id) / "attempts" / str(self.attempt) / "events.log")
        log.add(*said)
        log.close()

    def saved(self, agent_steps: int) -> events.CheckpointSaved:
        file = f"a{self.attempt}-s{agent_steps:012d}.pt"
        path = self.context.run_dir(self.id) / "checkpoints" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file)
        digest = hashlib.sha256(file.encode()).hexdigest()
        return events.CheckpointSaved(
            agent_steps=agent_steps, frames=agent_steps, updates=1, episodes=0, wall_time_s=1.0, file=file,
            sha256=digest, size_bytes=len(file),
        )  # fmt: skip

    def record(self) -> None:
        Recorder(self.context, self.id, self.attempt).record()

    def lose(self) -> None:
        run_out(self.context.engine, self.id)
        with self.context.writing() as session:
            assert claims.expire(session) == [self.id]

    def stop(self) -> None:
        with self.context.writing() as session:
            service.stop(session, self.id, kill=False)

    def end_before_it_begins(self) -> None:
        with self.context.writing() as session:
            claims.release(session, claims.held(session, self.id, self.attempt), RunState.STOPPED, "asked")

    def finish(self) -> None:
        self.say(events.Ended(time=time.time(), state="finished", reason="done"))
        Recorder(self.context, self.id, self.attempt).conclude(
            lambda session, run, word: claims.release(session, run, RunState.FINISHED, "done")
        )

    def violations(self) -> Sequence[str]:
        with self.context.reading() as session:
            run = runs.get(session, self.id)
            assert run is not None
            return list(invariants.check_run(session, run, [self.context.settings.runs_dir]))


@pytest.fixture
def run(database_url: str, redis_url: str, tmp_path: Path) -> Iterator[Told]:
    """A run with a recorded checkpoint at 10 and two recorded points behind it."""
    context = Context.of(Settings(home=tmp_path / "home", database_url=database_url, redis_url=redis_url))
    for host in "ab":
        add_host(context.engine, host)
    told = Told(context)
    told.start()
    told.say(points(*range(1, 11)), told.saved(10), points(11, 12))
    told.record()
    yield told
    context.close()


FIRST = "a1-s000000000010.pt"


def test_stopped_in_the_queue_after_its_host_was_lost(run: Told) -> None:
    run.say(points(13, 14))
    run.lose()
    run.stop()
    assert run.violations() == []


def test_stopped_before_it_began_again_after_its_host_was_lost(run: Told) -> None:
    run.say(points(13, 14))
    run.lose()
    run.claim()
    run.stop()
    run.end_before_it_begins()
    assert run.violations() == []


def test_stopped_before_it_began_again_after_an_attempt_that_said_nothing(run: Told) -> None:
    run.lose()
    run.claim()
    run.begin(FIRST)
    run.lose()
    run.claim()
    run.stop()
    run.end_before_it_begins()
    assert run.violations() == []


def test_a_second_checkpoint_at_the_same_step_that_was_lost(run: Told) -> None:
    run.lose()
    run.start(FIRST)
    score = events.Evaluation(
        protocol="plain", agent_steps=10, frames=10, wall_time_s=1.0, checkpoint="a2-s000000000010.pt",
        seed=1, returns=[1.0], lengths_frames=[1], mean_return=1.0,
    )  # fmt: skip
    run.say(score, run.saved(10))
    run.lose()
    run.start(FIRST)
    run.say(score, points(11, 12), run.saved(50))
    run.finish()
    assert run.violations() == []


def test_what_was_said_behind_a_checkpoint_at_its_own_step_and_lost(run: Told) -> None:
    run.say(run.saved(20))
    run.record()
    run.say(points(20, metric="speed/agent_steps_per_s"))
    run.lose()
    run.start("a1-s000000000020.pt")
    run.say(points(21), run.saved(50))
    run.finish()
    assert run.violations() == []


@pytest.fixture
def finished(run: Told) -> Told:
    """The run after a lost host, a resume and its end."""
    run.lose()
    run.start(FIRST)
    run.say(points(11), run.saved(20))
    run.finish()
    assert run.violations() == []
    return run


def test_a_lost_row_is_found(finished: Told, engine: Engine) -> None:
    with writing(engine) as session:
        session.execute(update(Checkpoint).where(Checkpoint.agent_steps == 20).values(superseded=True))
    [violation] = finished.violations()
    assert "checkpoints: 1 rows stored, 2 told by the logs; missing [(20, " in violation


def test_a_doubled_row_is_found(finished: Told, engine: Engine) -> None:
    with writing(engine) as session:
        row = session.query(Checkpoint).filter(Checkpoint.agent_steps == 20).one()
        columns = {column.name: getattr(row, column.name) for column in Checkpoint.__table__.columns}
        session.add(Checkpoint(**(columns | {"id": new_id()})))
    [violation] = finished.violations()
    assert "checkpoints: 3 rows stored, 2 told by the logs; missing [], too many [], 1 twice" in violation


def test_what_a_recorder_skipped_is_found_although_the_host_was_lost(run: Told, engine: Engine) -> None:
    run.say(points(13, 14))
    with writing(engine) as session:
        session.execute(update(Attempt).values(log_offset_bytes=1_000_000))
    run.lose()
    run.stop()
    [violation] = run.violations()
    assert "missing [(13, '13.0'), (14, '14.0')]" in violation


def test_a_resume_from_what_was_never_recorded_is_found(run: Told) -> None:
    run.say(run.saved(20))
    run.lose()
    run.claim()
    run.begin(FIRST)
    run.say(events.Started(time=1.0, device="cpu", pid=1, resumed_from="a1-s000000000020.pt", agent_steps=20))
    run.finish()
    assert run.violations()


def test_a_wrong_transition_and_an_attempt_without_end_are_found(finished: Told, engine: Engine) -> None:
    with writing(engine) as session:
        session.execute(update(Attempt).where(Attempt.number == 1).values(ended_at=None))
        session.execute(
            update(Transition).where(Transition.after == RunState.LOST).values(after=RunState.FINISHED)
        )
    wrong = finished.violations()
    assert any("moved from lost while it was finished" in violation for violation in wrong)
    assert any("attempt 1 never ended" in violation for violation in wrong)
