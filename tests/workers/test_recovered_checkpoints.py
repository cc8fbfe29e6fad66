"""Checkpoints whose entries in the event log were damaged: found on disk and used, if they are intact."""

import zipfile
from pathlib import Path

import pytest
from sqlalchemy import Engine, select

from backend.coordination import claims
from backend.coordination.context import Context
from backend.db import Checkpoint, LogLine
from backend.db.engine import reading
from backend.specs import events
from tests.support.rows import add_host
from tests.workers.fake_engine import flip_bit
from tests.workers.support import claim, expire_lease, fake_run, points, stored_points
from workers import resume
from workers.engine.files import file_sha256
from workers.engine.training.event_log import EventLog
from workers.recorder import Recorder

pytestmark = pytest.mark.service


class LostAttempt:
    """A first attempt with intact checkpoint 10, and one at 20 whose entry can be damaged."""

    def __init__(self, context: Context) -> None:
        self.context, self.engine = context, context.db_engine
        add_host(self.engine, "a")
        self.id = fake_run(self.engine).id
        self.folder = context.run_dir(self.id)
        assert claim(self.engine) is not None
        self.path = self.folder / "attempts" / "1" / "events.log"
        self.log = EventLog(self.path)
        self.write(events.StartedEvent(time=1.0, device="cpu", pid=1))
        self.write(points(*range(1, 11)), self.report(10))
        self.write(self.saved(10))
        self.write(points(*range(11, 21)), self.report(20))

    def write(self, *logged: events.AnyEvent) -> int:
        """Write a frame; return its offset."""
        offset = self.path.stat().st_size
        self.log.add(*logged)
        self.log.flush()
        return offset

    def report(self, agent_steps: int) -> events.ReportEvent:
        return events.ReportEvent(
            agent_steps=agent_steps, frames=4 * agent_steps, updates=7, wall_time_s=1.5, episodes=3,
            agent_steps_per_s=10.0, mean_return_100=2.5, best_return=4.0,
        )  # fmt: skip

    def saved(self, agent_steps: int) -> events.CheckpointSavedEvent:
        path = self.file(agent_steps)
        path.parent.mkdir(exist_ok=True)
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("state.json", f'{{"agent_steps": {agent_steps}}}')
        return events.CheckpointSavedEvent(
            agent_steps=agent_steps, frames=4 * agent_steps, updates=7, episodes=3, wall_time_s=1.5,
            file=path.name, sha256=file_sha256(path), size_bytes=path.stat().st_size,
        )  # fmt: skip

    def file(self, agent_steps: int) -> Path:
        return self.folder / "checkpoints" / f"a1-s{agent_steps:012d}.pt"

    def resumes_from(self) -> str | None:
        """Lose the attempt and prepare the next one."""
        expire_lease(self.engine, self.id)
        with self.context.writing() as session:
            assert claims.expire(session) == [self.id]
        won = claim(self.engine)
        assert won is not None
        return resume.prepare(self.context, won)


@pytest.fixture
def lost(context: Context) -> LostAttempt:
    return LostAttempt(context)


@pytest.mark.parametrize("followed", [True, False])
def test_checkpoint_with_damaged_entry_is_recorded_and_used(
    lost: LostAttempt, engine: Engine, followed: bool
) -> None:
    entry = lost.write(lost.saved(20))
    if followed:
        lost.write(points(21), lost.report(21))
    flip_bit(lost.path, entry + 20)
    assert lost.resumes_from() == lost.file(20).name
    assert stored_points(engine, lost.id) == list(range(1, 21))
    with reading(engine) as session:
        row = session.scalars(select(Checkpoint).where(Checkpoint.agent_steps == 20)).one()
        messages = session.scalars(select(LogLine.message)).all()
    assert (row.frames, row.updates, row.episodes, row.wall_time_s) == (80, 7, 3, 1.5)
    assert (row.score, row.best_return, row.sha256) == (2.5, 4.0, file_sha256(lost.file(20)))
    assert any(f"checkpoint {row.file} was found on disk" in message for message in messages)
    lost.file(20).unlink()  # it was stored before its row was committed
    assert lost.context.store.size_bytes(lost.id, "checkpoints", row.file) == row.size_bytes


def test_damaged_checkpoint_with_damaged_entry_is_not_used(lost: LostAttempt) -> None:
    entry = lost.write(lost.saved(20))
    lost.write(points(21))
    flip_bit(lost.path, entry + 20)
    flip_bit(lost.file(20), 45)  # in the state
    assert lost.resumes_from() == lost.file(10).name


@pytest.mark.parametrize(
    ("at", "value"), [(8, 0x01), (10, 0x08), (10, 0x40)], ids=["encrypted", "deflated", "unknown method"]
)
def test_checkpoint_with_damaged_zip_directory_and_damaged_entry_is_not_used(
    lost: LostAttempt, at: int, value: int
) -> None:
    entry = lost.write(lost.saved(20))
    lost.write(points(21))
    flip_bit(lost.path, entry + 20)
    content = bytearray(lost.file(20).read_bytes())
    content[content.index(b"PK\x01\x02") + at] ^= value
    lost.file(20).write_bytes(content)
    assert lost.resumes_from() == lost.file(10).name


def test_checkpoint_without_entry_in_an_undamaged_log_is_not_used(lost: LostAttempt) -> None:
    lost.saved(20)
    assert lost.resumes_from() == lost.file(10).name


def test_damage_elsewhere_does_not_use_a_checkpoint_without_entry(lost: LostAttempt) -> None:
    damaged = lost.write(points(21))
    lost.write(points(22), lost.report(22))
    lost.saved(22)
    flip_bit(lost.path, damaged + 20)
    assert lost.resumes_from() == lost.file(10).name


def test_recorded_checkpoint_whose_entry_is_damaged_later_is_recorded_once(
    lost: LostAttempt, engine: Engine
) -> None:
    entry = lost.write(lost.saved(20))
    Recorder(lost.context, lost.id, 1).record()
    lost.write(points(21))
    flip_bit(lost.path, entry + 20)
    assert lost.resumes_from() == lost.file(20).name
    with reading(engine) as session:
        assert len(session.scalars(select(Checkpoint).where(Checkpoint.agent_steps == 20)).all()) == 1
