import math
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Engine, select
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from backend.artifacts import ArtifactStore, Kind
from backend.db import Attempt, Checkpoint, Episode, Evaluation, LogLine, Run
from backend.db.engine import reading, writing
from backend.evaluations import service as evaluations
from backend.evaluations.schemas import EvaluationRequest
from backend.specs import events
from backend.specs.states import RunState
from tests.support.runs import make_run
from tests.workers.support import add_host, claim, points, run_out, run_row, stored_points
from workers import claims, recorder
from workers.context import Context
from workers.engine.event_log import EventLog
from workers.recorder import Recorder

STARTED = events.Started(time=1.0, device="cpu", pid=1)
ENDED = events.Ended(time=2.0, state="finished", reason="done")
REPORT = events.Report(
    agent_steps=80, frames=320, updates=4, wall_time_s=0.5, episodes=3, agent_steps_per_s=160.0,
    mean_return_100=12.5, best_return=20.0,
)  # fmt: skip


class Attempted:
    """A claimed run with a log to write to."""

    def __init__(self, context: Context, run_id: str, attempt: int) -> None:
        self.run_id, self.attempt = run_id, attempt
        self.folder = context.run_dir(run_id)
        self.path = self.folder / "attempts" / str(attempt) / "events.log"
        self.log = EventLog(self.path)

    def write(self, *said: events.AnyEvent) -> None:
        self.log.add(*said)
        self.log.flush()

    def file(self, kind: Kind, name: str, content: bytes = b"content") -> None:
        (self.folder / kind).mkdir(parents=True, exist_ok=True)
        (self.folder / kind / name).write_bytes(content)

    def checkpoint(self, agent_steps: int, *, on_disk: bool = True) -> events.CheckpointSaved:
        name = f"a{self.attempt}-s{agent_steps}.pt"
        if on_disk:
            self.file("checkpoints", name)
        return events.CheckpointSaved(
            agent_steps=agent_steps, frames=agent_steps, updates=1, episodes=1, wall_time_s=1.0, file=name,
            sha256="0" * 64, size_bytes=7,
        )  # fmt: skip

    def episode(self, agent_steps: int, *, on_disk: bool = True) -> events.Episode:
        name = f"a{self.attempt}-s{agent_steps}.npz"
        if on_disk:
            self.file("replays", name)
        return events.Episode(
            agent_steps=agent_steps, frames=agent_steps, wall_time_s=1.0, seed=7, episode_return=3.0,
            length_steps=10, length_frames=40, replay=name,
        )  # fmt: skip


@pytest.fixture
def mine(context: Context, engine: Engine) -> Attempted:
    add_host(engine, "a")
    run = make_run(engine)
    assert claim(engine) is not None
    return Attempted(context, run.id, 1)


def _recorder(context: Context, mine: Attempted) -> Recorder:
    return Recorder(context, mine.run_id, mine.attempt)


def _finish(session: Session, run: Run, last_word: events.Ended | None) -> None:
    claims.release(session, run, RunState.FINISHED, last_word.reason if last_word else "no last word")


def test_a_rate_is_averaged_over_reports(context: Context, engine: Engine, mine: Attempted) -> None:
    def report(trained_s: float, rate: float) -> events.Report:
        return REPORT.model_copy(update={"wall_time_s": trained_s, "agent_steps_per_s": rate})

    def rate_after(*reports: events.Report) -> float | None:
        mine.write(*reports)
        assert _recorder(context, mine).record()
        return run_row(engine, mine.run_id).agent_steps_per_s

    mine.write(STARTED)
    assert rate_after(report(0, 160), report(1, 60)) == pytest.approx(60 + 100 * math.exp(-0.1))
    assert rate_after(report(1, 0)) == pytest.approx(60 + 100 * math.exp(-0.1)), "nothing was trained since"
    assert rate_after(report(11, 60)) == pytest.approx(60 + 100 * math.exp(-1.1))


def test_every_kind_of_event_becomes_rows(context: Context, engine: Engine, mine: Attempted) -> None:
    evaluation = events.Evaluation(
        protocol="plain", agent_steps=80, frames=80, wall_time_s=1.0, checkpoint="a1-s80.pt", seed=3,
        returns=[1.0, 2.0], lengths_frames=[10, 20], mean_return=1.5,
    )  # fmt: skip
    said = [points(40, 80), REPORT, mine.episode(60), mine.checkpoint(80), evaluation]
    mine.write(STARTED, *said, events.Log(time=5.0, level="warning", message="careful"))
    assert _recorder(context, mine).record()
    run = run_row(engine, mine.run_id)
    assert (run.state, run.agent_steps, run.frames, run.updates, run.episodes) == ("running", 80, 320, 4, 3)
    assert (run.wall_time_s, run.agent_steps_per_s, run.score, run.best_return) == (0.5, 160.0, 12.5, 20.0)
    assert run.attempts_without_checkpoint == 0
    assert stored_points(engine, mine.run_id) == [40, 80]
    with reading(engine) as session:
        episode = session.scalars(select(Episode)).one()
        checkpoint = session.scalars(select(Checkpoint)).one()
        scored = session.scalars(select(Evaluation)).one()
        line = session.scalars(select(LogLine).where(LogLine.level == "warning")).one()
        assert session.get_one(Attempt, (mine.run_id, 1)).log_offset_bytes == mine.path.stat().st_size
    assert (episode.attempt, episode.episode_return, episode.seed, episode.video) == (1, 3.0, 7, None)
    assert (checkpoint.agent_steps, checkpoint.file, checkpoint.removed) == (80, "a1-s80.pt", False)
    assert (checkpoint.score, checkpoint.best_return) == (12.5, 20.0)
    assert (scored.attempt, scored.n_episodes, scored.returns, scored.mean_return) == (1, 2, [1.0, 2.0], 1.5)
    assert (line.attempt, line.message) == (1, "careful")
    assert context.store.size_bytes(mine.run_id, "checkpoints", checkpoint.file) == 7
    assert context.store.size_bytes(mine.run_id, "replays", episode.replay) == 7


def test_recording_goes_on_where_it_was(context: Context, engine: Engine, mine: Attempted) -> None:
    first = _recorder(context, mine)
    assert not first.record()
    mine.write(points(1))
    mine.write(points(2))
    assert first.record()
    assert not first.record()
    mine.write(points(3))
    again = _recorder(context, mine)
    assert again.record()
    assert not again.record()
    assert stored_points(engine, mine.run_id) == [1, 2, 3]


def test_a_flood_is_taken_in_bites(
    context: Context, engine: Engine, mine: Attempted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "MAX_BATCH_BYTES", 1)
    for step in range(5):
        mine.write(points(step))
    mine_recorder = _recorder(context, mine)
    bites = 0
    while mine_recorder.record():
        bites += 1
    assert bites == 5
    assert stored_points(engine, mine.run_id) == list(range(5))


def test_memory_grows_with_the_bite_not_with_the_flood(
    context: Context, mine: Attempted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "MAX_BATCH_BYTES", 16_000)
    mine_recorder = _recorder(context, mine)
    peaks_bytes, bites = [], []
    for n_frames in (12, 200):  # what is made once is made by the first
        for step in range(n_frames):
            mine.write(points(*range(100 * step, 100 * step + 100)))
        bites.append(0)
        tracemalloc.start()
        while mine_recorder.record():
            bites[-1] += 1
        peaks_bytes.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert bites[1] > 10 * bites[0]
    assert peaks_bytes[1] < 2 * peaks_bytes[0]


def test_a_frame_being_written_waits(context: Context, engine: Engine, mine: Attempted) -> None:
    mine.write(points(1))
    mine.write(points(2))
    whole = mine.path.read_bytes()
    mine.path.write_bytes(whole[:-3])
    mine_recorder = _recorder(context, mine)
    assert mine_recorder.record()
    assert stored_points(engine, mine.run_id) == [1]
    assert not mine_recorder.record()
    mine.path.write_bytes(whole)
    assert mine_recorder.record()
    assert stored_points(engine, mine.run_id) == [1, 2]


def test_a_torn_tail_is_cut_and_told(context: Context, engine: Engine, mine: Attempted) -> None:
    mine.write(points(1))
    with mine.path.open("ab") as file:
        file.write(b"\x07\x00\x00\x00torn")
    _recorder(context, mine).conclude(_finish)
    assert stored_points(engine, mine.run_id) == [1]
    with reading(engine) as session:
        line = session.scalars(select(LogLine).where(LogLine.level == "warning")).one()
    assert "last 8 bytes" in line.message


class _CrashAfterPut(ArtifactStore):
    """The worker dies when the file is kept and its row is not."""

    def put(self, local: Path, run_id: str, kind: Kind) -> None:
        super().put(local, run_id, kind)
        raise SystemExit


def test_crash_between_the_file_and_its_row(context: Context, engine: Engine, mine: Attempted) -> None:
    mine.write(points(80), mine.checkpoint(80), mine.episode(80))
    crashing = replace(context, store=_CrashAfterPut(context.settings.artifacts))
    with pytest.raises(SystemExit):
        _recorder(crashing, mine).record()
    with reading(engine) as session:
        assert session.scalars(select(Checkpoint)).all() == []
    assert context.store.size_bytes(mine.run_id, "checkpoints", "a1-s80.pt") == 7
    assert _recorder(context, mine).record()
    with reading(engine) as session:
        assert len(session.scalars(select(Checkpoint)).all()) == 1
        assert len(session.scalars(select(Episode)).all()) == 1
    assert stored_points(engine, mine.run_id) == [80]


class _LostAnswer(Context):
    """The database commits and its answer is lost on the way."""

    @contextmanager
    def writing(self) -> Iterator[Session]:
        with super().writing() as session:
            yield session
        raise OperationalError("COMMIT", {}, Exception("connection lost"))


def test_a_commit_whose_answer_was_lost_is_not_repeated(
    context: Context, engine: Engine, mine: Attempted
) -> None:
    mine.write(points(1), mine.episode(1))
    mine_recorder = Recorder(
        _LostAnswer(context.settings, context.engine, context.store, context.bus), mine.run_id, 1
    )
    with pytest.raises(OperationalError):
        mine_recorder.record()
    mine_recorder._context = context
    mine.write(points(2))
    while mine_recorder.record():
        pass
    assert stored_points(engine, mine.run_id) == [1, 2]
    with reading(engine) as session:
        assert len(session.scalars(select(Episode)).all()) == 1


def test_a_superseded_attempt_changes_nothing(context: Context, engine: Engine, mine: Attempted) -> None:
    mine_recorder = _recorder(context, mine)
    mine.write(points(1))
    mine_recorder.record()
    run_out(engine, mine.run_id)
    with writing(engine) as session:
        claims.expire(session)
    before = run_row(engine, mine.run_id)
    mine.write(points(2), REPORT)
    for _ in range(2):
        with pytest.raises(claims.Superseded):
            mine_recorder.record()
        with pytest.raises(claims.Superseded):
            mine_recorder.conclude(_finish)
        claim(engine)
    after = run_row(engine, mine.run_id)
    assert (after.agent_steps, after.attempt) == (before.agent_steps, 2)
    assert stored_points(engine, mine.run_id) == [1]


def test_the_last_word_waits_for_the_end(context: Context, engine: Engine, mine: Attempted) -> None:
    mine.write(STARTED, points(1))
    mine.write(points(2), ENDED)
    mine_recorder = _recorder(context, mine)
    while mine_recorder.record():
        pass
    assert mine_recorder.ended
    assert run_row(engine, mine.run_id).state == "running"
    assert stored_points(engine, mine.run_id) == [1]
    mine_recorder.conclude(_finish)
    run = run_row(engine, mine.run_id)
    assert (run.state, run.state_reason, run.host) == ("finished", "done", None)
    assert stored_points(engine, mine.run_id) == [1, 2]
    with reading(engine) as session:
        assert session.get_one(Attempt, (mine.run_id, 1)).outcome == "finished: done"


def test_files_thinned_out_before_they_were_recorded(
    context: Context, engine: Engine, mine: Attempted
) -> None:
    mine.write(mine.checkpoint(40, on_disk=False), mine.episode(40, on_disk=False), points(40))
    assert _recorder(context, mine).record()
    with reading(engine) as session:
        assert session.scalars(select(Checkpoint)).one().removed
        assert session.scalars(select(Episode)).all() == []
        assert claims.checkpoints(session, mine.run_id) == []
    assert stored_points(engine, mine.run_id) == [40]


def test_thinned_out_checkpoints_leave_the_store(context: Context, engine: Engine, mine: Attempted) -> None:
    mine_recorder = _recorder(context, mine)
    mine.write(mine.checkpoint(40))
    mine_recorder.record()
    mine.write(mine.checkpoint(80), events.CheckpointsRemoved(files=["a1-s40.pt"]))
    mine_recorder.record()
    with reading(engine) as session:
        assert [c.file for c in claims.checkpoints(session, mine.run_id)] == ["a1-s80.pt"]
    assert context.store.size_bytes(mine.run_id, "checkpoints", "a1-s80.pt") == 7
    with pytest.raises(FileNotFoundError):
        context.store.size_bytes(mine.run_id, "checkpoints", "a1-s40.pt")


def test_a_checkpoint_that_waits_to_be_scored_stays(
    context: Context, engine: Engine, mine: Attempted
) -> None:
    mine_recorder = _recorder(context, mine)
    mine.write(mine.checkpoint(40))
    mine_recorder.record()
    with writing(engine) as session:
        evaluations.request(session, mine.run_id, EvaluationRequest(episodes=2))
    mine.write(mine.checkpoint(60), mine.checkpoint(80))
    mine.write(events.CheckpointsRemoved(files=["a1-s40.pt", "a1-s60.pt"]))
    mine_recorder.record()
    with reading(engine) as session:
        kept = [c.file for c in claims.checkpoints(session, mine.run_id)]
    assert kept == ["a1-s80.pt", "a1-s40.pt"]
    assert context.store.size_bytes(mine.run_id, "checkpoints", "a1-s40.pt") == 7
    with pytest.raises(FileNotFoundError):
        context.store.size_bytes(mine.run_id, "checkpoints", "a1-s60.pt")


def test_what_an_earlier_attempt_left_behind(context: Context, engine: Engine, mine: Attempted) -> None:
    mine.write(STARTED, points(1))
    _recorder(context, mine).record()
    mine.write(points(2), mine.checkpoint(2), points(3))
    run_out(engine, mine.run_id)
    with writing(engine) as session:
        claims.expire(session)
    assert claim(engine) is not None
    earlier = Recorder(context, mine.run_id, 1, fence=2)
    assert earlier.record()
    assert stored_points(engine, mine.run_id) == [1, 2, 3]
    assert run_row(engine, mine.run_id).state == "starting"
    with writing(engine) as session:
        claims.begin(session, mine.run_id, 2, claims.checkpoints(session, mine.run_id)[0])
    assert stored_points(engine, mine.run_id) == [1, 2]


def test_text_the_database_cannot_hold(context: Context, engine: Engine, mine: Attempted) -> None:
    mine.write(events.Log(time=5.0, level="error", message="a\x00b"))
    assert _recorder(context, mine).record()
    with reading(engine) as session:
        assert session.scalars(select(LogLine.message).where(LogLine.level == "error")).one() == "a\ufffdb"
