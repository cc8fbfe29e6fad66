import math
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import redis
from sqlalchemy import Engine, select
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session, undefer

from backend.coordination import claims
from backend.coordination.context import Context
from backend.db import Attempt, Checkpoint, Episode, Evaluation, LogLine, Media, Run
from backend.db.changes import ChangeEvent
from backend.db.engine import reading, writing
from backend.platform.artifacts import ArtifactKind, ArtifactStore
from backend.pubsub.bus import CHANNEL
from backend.runs.checkpoints import service as checkpoints
from backend.runs.evaluations import service as evaluations
from backend.specs import events
from backend.specs.states import RunState
from backend.statistics.histograms import Histogram
from tests.support.rows import PROVENANCE, add_attempt, add_host, make_run
from tests.support.waiting import PATIENCE_S, Patience
from tests.workers.support import claim, expire_lease, points, run_row, stored_points
from workers import bounds, recorder
from workers.bounds import MAX_LINES_PER_MINUTE
from workers.clean_up import delete_removed_files
from workers.engine.training.event_log import EventLog
from workers.recorder import Recorder

pytestmark = pytest.mark.service

STARTED = events.StartedEvent(time=1.0, device="cpu", pid=1)
ENDED = events.EndedEvent(time=2.0, state="finished", reason="done")
REPORT = events.ReportEvent(
    agent_steps=80, frames=320, updates=4, wall_time_s=0.5, episodes=3, agent_steps_per_s=160.0,
    mean_return_100=12.5, best_return=20.0,
)  # fmt: skip


class ClaimedRun:
    """A claimed run with an event log."""

    def __init__(self, context: Context, run_id: str, attempt: int) -> None:
        self.run_id, self.attempt = run_id, attempt
        self.folder = context.run_dir(run_id)
        self.path = self.folder / "attempts" / str(attempt) / "events.log"
        self.log = EventLog(self.path)

    def write(self, *logged: events.AnyEvent) -> None:
        self.log.add(*logged)
        self.log.flush()

    def file(self, kind: ArtifactKind, name: str, content: bytes = b"content") -> None:
        (self.folder / kind).mkdir(parents=True, exist_ok=True)
        (self.folder / kind / name).write_bytes(content)

    def checkpoint(self, agent_steps: int, *, on_disk: bool = True) -> events.CheckpointSavedEvent:
        name = f"a{self.attempt}-s{agent_steps}.pt"
        if on_disk:
            self.file("checkpoints", name)
        return events.CheckpointSavedEvent(
            agent_steps=agent_steps, frames=agent_steps, updates=1, episodes=1, wall_time_s=1.0, file=name,
            sha256="0" * 64, size_bytes=7,
        )  # fmt: skip

    def episode(self, agent_steps: int, *, on_disk: bool = True) -> events.EpisodeEvent:
        name = f"a{self.attempt}-s{agent_steps}.npz"
        if on_disk:
            self.file("replays", name)
        return events.EpisodeEvent(
            replay_sha256="0" * 64,
            agent_steps=agent_steps, frames=agent_steps, wall_time_s=1.0, seed=7, episode_return=3.0,
            length_steps=10, length_frames=40, replay=name,
        )  # fmt: skip


@pytest.fixture
def claimed(context: Context, engine: Engine) -> ClaimedRun:
    add_host(engine, "a")
    run = make_run(engine)
    assert claim(engine) is not None
    return ClaimedRun(context, run.id, 1)


def _recorder(context: Context, claimed: ClaimedRun) -> Recorder:
    return Recorder(context, claimed.run_id, claimed.attempt)


def _finish(session: Session, run: Run, final_event: events.EndedEvent | None) -> None:
    claims.end_attempt(
        session, run, RunState.FINISHED, final_event.reason if final_event else "no final event"
    )


def test_agent_steps_per_s_is_averaged_over_reports(
    context: Context, engine: Engine, claimed: ClaimedRun
) -> None:
    def report(trained_s: float, rate: float) -> events.ReportEvent:
        return REPORT.model_copy(update={"wall_time_s": trained_s, "agent_steps_per_s": rate})

    def rate_after(*reports: events.ReportEvent) -> float | None:
        claimed.write(*reports)
        assert _recorder(context, claimed).record()
        return run_row(engine, claimed.run_id).agent_steps_per_s

    claimed.write(STARTED)
    assert rate_after(report(12, 160)) == 160
    # 12 s of each, the older of less weight
    slower = 60 + 100 * (1 - (1 - math.exp(-0.1)) / (1 - math.exp(-0.2)))
    assert rate_after(report(24, 60)) == pytest.approx(slower)
    assert rate_after(report(24, 0)) == pytest.approx(slower), "no training since the last report"
    weight = (1 - math.exp(-1)) / (1 - math.exp(-1.2))
    assert rate_after(report(144, 60)) == pytest.approx(60 + (slower - 60) * (1 - weight))


def test_published_change_names_the_parts_that_a_batch_changed(
    context: Context, claimed: ClaimedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        redis.Redis.from_url(context.settings.redis) as client,
        client.pubsub() as listener,
    ):
        listener.subscribe(CHANNEL)
        assert listener.get_message(timeout=PATIENCE_S) is not None  # the subscription's confirmation

        def changed(*logged: events.AnyEvent) -> list[str]:
            claimed.write(*logged)
            assert _recorder(context, claimed).record()
            message = listener.get_message(timeout=PATIENCE_S)
            assert message is not None
            return ChangeEvent.model_validate_json(message["data"]).changed

        assert changed(STARTED) == [], "a transition may change anything"
        assert changed(points(3), REPORT) == ["metrics", "progress", "series/loss"]
        assert changed(points(4), REPORT) == ["progress", "series/loss"]
        assert changed(REPORT) == ["progress"]
        monkeypatch.setattr(bounds, "MAX_SERIES", 1)
        assert changed(points(5, metric="another/metric"), REPORT) == ["log", "progress", "series/another"]
        log = events.LogEvent(time=1.0, level="info", message="a line")
        assert changed(claimed.episode(10), claimed.checkpoint(10), log) == ["checkpoints", "episodes", "log"]


def test_provenance_is_stored_with_its_attempt(context: Context, engine: Engine, claimed: ClaimedRun) -> None:
    def stored() -> dict[str, object] | None:
        assert _recorder(context, claimed).record()
        with reading(engine) as session:
            return session.get_one(Attempt, (claimed.run_id, 1)).provenance

    claimed.write(events.ProvenanceEvent(provenance=PROVENANCE))
    known = PROVENANCE.model_dump()
    assert stored() == known
    claimed.write(STARTED.model_copy(update={"device": "cuda:0 (A)", "rollout_workers": 2}))
    assert stored() == known | {"device": "cuda:0 (A)", "rollout_workers": 2}


def test_packages_of_another_version_than_in_the_attempt_before_are_logged(
    context: Context, engine: Engine, claimed: ClaimedRun
) -> None:
    before = PROVENANCE.packages | {"torch": "2.8.0", "numba": "0.60"}
    add_attempt(engine, claimed.run_id, 0, provenance=PROVENANCE.model_dump() | {"packages": before})
    claimed.write(events.ProvenanceEvent(provenance=PROVENANCE), STARTED)
    assert _recorder(context, claimed).record()
    with reading(engine) as session:
        warnings = session.scalars(select(LogLine.message).where(LogLine.level == "warning")).all()
    assert warnings == [
        "other package versions than in the attempt before: numba 0.60 to none, torch 2.8.0 to 2.9.0"
    ]


def test_packages_are_compared_with_those_of_the_last_attempt_that_reported_any(
    context: Context, engine: Engine, claimed: ClaimedRun
) -> None:
    before = PROVENANCE.packages | {"torch": "2.8.0"}
    add_attempt(engine, claimed.run_id, 0, provenance=PROVENANCE.model_dump() | {"packages": before})
    add_attempt(engine, claimed.run_id, 2)
    with writing(engine) as session:
        session.get_one(Run, claimed.run_id).attempt = 2
    later = ClaimedRun(context, claimed.run_id, 2)
    later.write(events.ProvenanceEvent(provenance=PROVENANCE), STARTED)
    assert _recorder(context, later).record()
    with reading(engine) as session:
        warnings = session.scalars(select(LogLine.message).where(LogLine.level == "warning")).all()
    assert warnings == ["other package versions than in the attempt before: torch 2.8.0 to 2.9.0"]


def test_phase_of_a_start_is_the_reason_of_its_state(
    context: Context, engine: Engine, claimed: ClaimedRun
) -> None:
    def after(*logged: events.AnyEvent) -> tuple[str, str]:
        claimed.write(*logged)
        assert _recorder(context, claimed).record()
        run = run_row(engine, claimed.run_id)
        return run.state, run.state_reason

    phase = events.StartingEvent(time=1.0, phase="starting 64 of 131 processes")
    building = events.StartingEvent(time=1.0, phase="building environments and network")
    first = events.StartingEvent(time=1.0, phase="starting 1 of 131 processes")
    assert after(building, first, phase) == ("starting", "starting 64 of 131 processes")
    with reading(engine) as session:
        logged = session.scalars(select(LogLine.message).order_by(LogLine.id)).all()
    assert logged[-2:] == [f"starting: {building.phase}", f"starting: {first.phase}"]
    assert after(building, STARTED, phase) == ("running", "training on cpu")
    with reading(engine) as session:
        logged = session.scalars(select(LogLine.message).order_by(LogLine.id)).all()
    assert logged[-3:-1] == [f"starting: {building.phase}", "running: training on cpu"]


def test_line_of_the_start_has_the_time_of_the_engine_like_those_around_it(
    context: Context, engine: Engine, claimed: ClaimedRun
) -> None:
    claimed.write(
        events.StartingEvent(time=100.0, phase="building environments and network"),
        STARTED.model_copy(update={"time": 102.0}),
        events.LogEvent(time=103.0, level="info", message="training paac"),
    )
    assert _recorder(context, claimed).record()
    with reading(engine) as session:
        lines = session.scalars(select(LogLine).order_by(LogLine.id)).all()[-3:]
    assert [(line.message.split()[0], line.time.timestamp()) for line in lines] == [
        ("starting:", 100.0),
        ("running:", 102.0),
        ("training", 103.0),
    ]


def test_log_without_provenance_leaves_it_unknown(
    context: Context, engine: Engine, claimed: ClaimedRun
) -> None:
    claimed.write(STARTED)
    assert _recorder(context, claimed).record()
    with reading(engine) as session:
        assert session.get_one(Attempt, (claimed.run_id, 1)).provenance is None


def test_every_kind_of_event_is_stored_as_rows(context: Context, engine: Engine, claimed: ClaimedRun) -> None:
    evaluation = events.EvaluationEvent(
        protocol="plain", agent_steps=80, frames=80, wall_time_s=1.0, checkpoint="a1-s80.pt", seed=3,
        returns=[1.0, 2.0], lengths_frames=[10, 20], mean_return=1.5,
    )  # fmt: skip
    logged: list[events.AnyEvent] = [
        points(40, 80),
        events.HistogramEvent(metric="a", agent_steps=80, wall_time_s=1.0, edges=[0, 1, 2], counts=[3, 4]),
        REPORT,
        claimed.episode(60),
        claimed.checkpoint(80),
        evaluation,
    ]
    claimed.write(STARTED, *logged, events.LogEvent(time=5.0, level="warning", message="careful"))
    assert _recorder(context, claimed).record()
    run = run_row(engine, claimed.run_id)
    assert (run.state, run.agent_steps, run.frames, run.updates, run.episodes) == ("running", 80, 320, 4, 3)
    assert (run.wall_time_s, run.agent_steps_per_s, run.score, run.best_return) == (0.5, 160.0, 12.5, 20.0)
    assert run.attempts_without_checkpoint == 0
    assert stored_points(engine, claimed.run_id) == [40, 80]
    with reading(engine) as session:
        episode = session.scalars(select(Episode)).one()
        checkpoint = session.scalars(select(Checkpoint)).one()
        scored = session.scalars(select(Evaluation)).one()
        histogram = session.scalars(select(Media).options(undefer(Media.bins))).one()
        line = session.scalars(select(LogLine).where(LogLine.level == "warning")).one()
        assert session.get_one(Attempt, (claimed.run_id, 1)).log_offset_bytes == claimed.path.stat().st_size
    assert (episode.attempt, episode.episode_return, episode.seed, episode.video) == (1, 3.0, 7, None)
    assert (checkpoint.agent_steps, checkpoint.file, checkpoint.removed) == (80, "a1-s80.pt", False)
    assert (checkpoint.score, checkpoint.best_return) == (12.5, 20.0)
    assert (scored.attempt, scored.n_episodes, scored.returns, scored.mean_return) == (1, 2, [1.0, 2.0], 1.5)
    assert (histogram.kind, histogram.attempt, histogram.agent_steps) == ("histogram", 1, 80)
    assert Histogram.of_bytes(histogram.bins or b"").counts.tolist() == [3, 4]
    assert (line.attempt, line.message) == (1, "careful")
    assert context.store.size_bytes(claimed.run_id, "checkpoints", checkpoint.file) == 7
    assert context.store.size_bytes(claimed.run_id, "replays", episode.replay) == 7
    assert (claimed.folder / "checkpoints" / checkpoint.file).stat().st_nlink == 2, "one file, two names"
    assert not (claimed.folder / "replays" / episode.replay).exists(), "only the store needs it"
    with reading(engine) as session:
        assert session.scalars(select(Episode.replay_bytes)).one() == 7


def test_new_recorder_resumes_at_stored_offset(context: Context, engine: Engine, claimed: ClaimedRun) -> None:
    first = _recorder(context, claimed)
    assert not first.record()
    claimed.write(points(1))
    claimed.write(points(2))
    assert first.record()
    assert not first.record()
    claimed.write(points(3))
    again = _recorder(context, claimed)
    assert again.record()
    assert not again.record()
    assert stored_points(engine, claimed.run_id) == [1, 2, 3]


def test_long_log_is_recorded_in_batches(
    context: Context, engine: Engine, claimed: ClaimedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "MAX_BATCH_BYTES", 1)
    for step in range(5):
        claimed.write(points(step))
    run_recorder = _recorder(context, claimed)
    batches = 0
    patience = Patience()
    while patience.lasts() and run_recorder.record():
        batches += 1
    assert batches == 5
    assert stored_points(engine, claimed.run_id) == list(range(5))


@pytest.mark.long
def test_memory_is_bounded_by_batch_size(
    context: Context, claimed: ClaimedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "MAX_BATCH_BYTES", 16_000)
    run_recorder = _recorder(context, claimed)
    peaks_bytes, batches = [], []
    for n_frames in (12, 200):  # one-time allocations fall into the first measurement
        for step in range(n_frames):
            claimed.write(points(*range(100 * step, 100 * step + 100)))
        batches.append(0)
        tracemalloc.start()
        patience = Patience()
        while patience.lasts() and run_recorder.record():
            batches[-1] += 1
        peaks_bytes.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert batches[1] > 10 * batches[0]
    assert peaks_bytes[1] < 2 * peaks_bytes[0]


def test_incomplete_frame_is_recorded_when_complete(
    context: Context, engine: Engine, claimed: ClaimedRun
) -> None:
    claimed.write(points(1))
    claimed.write(points(2))
    whole = claimed.path.read_bytes()
    claimed.path.write_bytes(whole[:-3])
    run_recorder = _recorder(context, claimed)
    assert run_recorder.record()
    assert stored_points(engine, claimed.run_id) == [1]
    assert not run_recorder.record()
    claimed.path.write_bytes(whole)
    assert run_recorder.record()
    assert stored_points(engine, claimed.run_id) == [1, 2]


def test_truncated_log_tail_is_dropped_with_warning(
    context: Context, engine: Engine, claimed: ClaimedRun
) -> None:
    claimed.write(points(1))
    with claimed.path.open("ab") as file:
        file.write(b"\x07\x00\x00\x00torn")
    _recorder(context, claimed).conclude(_finish)
    assert stored_points(engine, claimed.run_id) == [1]
    with reading(engine) as session:
        line = session.scalars(select(LogLine).where(LogLine.level == "warning")).one()
    assert "last 8 bytes" in line.message


def test_damaged_batch_of_live_log_is_skipped_and_logged(
    context: Context, engine: Engine, claimed: ClaimedRun
) -> None:
    live = _recorder(context, claimed)
    claimed.write(STARTED, points(1))
    assert live.record()
    before = claimed.path.stat().st_size
    claimed.write(points(2))
    content = bytearray(claimed.path.read_bytes())
    content[before + 20] ^= 1
    claimed.path.write_bytes(content)
    assert not live.record()  # it may be a batch that is being written
    claimed.write(points(3), claimed.checkpoint(3))
    claimed.write(ENDED)
    live.conclude(_finish)
    assert stored_points(engine, claimed.run_id) == [1, 3]
    assert run_row(engine, claimed.run_id).state_reason == "done"
    with reading(engine) as session:
        line = session.scalars(select(LogLine).where(LogLine.level == "error")).one()
        assert [c.agent_steps for c in checkpoints.resumable(session, claimed.run_id)] == [3]
    assert f"bytes from byte {before:,} on were skipped" in line.message


class _CrashAfterPut(ArtifactStore):
    """The worker dies after the file is stored and before its row is."""

    def put(self, local: Path, run_id: str, kind: ArtifactKind, file: str | None = None) -> None:
        super().put(local, run_id, kind, file)
        raise SystemExit


def test_crash_between_file_and_row_is_recovered_by_next_recorder(
    context: Context, engine: Engine, claimed: ClaimedRun
) -> None:
    claimed.write(points(80), claimed.checkpoint(80), claimed.episode(80))
    crashing = replace(context, store=_CrashAfterPut(context.settings.artifacts))
    with pytest.raises(SystemExit):
        _recorder(crashing, claimed).record()
    with reading(engine) as session:
        assert session.scalars(select(Checkpoint)).all() == []
    assert context.store.size_bytes(claimed.run_id, "checkpoints", "a1-s80.pt") == 7
    assert _recorder(context, claimed).record()
    with reading(engine) as session:
        assert len(session.scalars(select(Checkpoint)).all()) == 1
        assert len(session.scalars(select(Episode)).all()) == 1
    assert stored_points(engine, claimed.run_id) == [80]


@dataclass(frozen=True)
class _LostResponse(Context):
    """The database commits but its response is lost, once for each exception in `lost`."""

    lost: list[Exception] = field(default_factory=list)

    @contextmanager
    def writing(self) -> Iterator[Session]:
        with super().writing() as session:
            yield session
        if self.lost:
            raise OperationalError("COMMIT", {}, self.lost.pop())


def test_commit_whose_response_was_lost_is_not_repeated(
    context: Context, engine: Engine, claimed: ClaimedRun
) -> None:
    claimed.write(points(1), claimed.episode(1))
    lost = [Exception("connection lost")]
    lossy = _LostResponse(context.settings, context.db_engine, context.store, context.bus, lost)
    run_recorder = Recorder(lossy, claimed.run_id, 1)
    with pytest.raises(OperationalError):
        run_recorder.record()
    claimed.write(points(2))
    patience = Patience()
    while patience.lasts() and run_recorder.record():
        pass
    assert stored_points(engine, claimed.run_id) == [1, 2]
    with reading(engine) as session:
        assert len(session.scalars(select(Episode)).all()) == 1


@dataclass(frozen=True)
class _Locked(Context):
    """The database cannot commit, once for each exception in `refused`."""

    refused: list[Exception] = field(default_factory=list)

    @contextmanager
    def writing(self) -> Iterator[Session]:
        with super().writing() as session:
            yield session
            if self.refused:
                raise OperationalError("COMMIT", {}, self.refused.pop())


def test_retried_batch_counts_once_towards_bounds(
    context: Context, engine: Engine, claimed: ClaimedRun
) -> None:
    now = time.time()
    starting = events.StartingEvent(time=now, phase="importing")
    messages = [f"line {n}" for n in range(400)]
    claimed.write(starting, *(events.LogEvent(time=now, level="info", message=m) for m in messages))
    refused: list[Exception] = [Exception("database is locked")]
    locked = _Locked(context.settings, context.db_engine, context.store, context.bus, refused)
    run_recorder = Recorder(locked, claimed.run_id, 1)
    with pytest.raises(OperationalError):
        run_recorder.record()
    assert run_recorder.record()
    with reading(engine) as session:
        rows = session.scalars(select(LogLine.message).where(LogLine.attempt == 1).order_by(LogLine.id))
        assert list(rows)[-401:] == ["starting: importing", *messages]


def test_batch_whose_response_was_lost_counts_towards_bounds(
    context: Context, engine: Engine, claimed: ClaimedRun
) -> None:
    now = time.time()
    starting = events.StartingEvent(time=now, phase="importing")
    logged = [events.LogEvent(time=now, level="info", message=f"line {n}") for n in range(400)]
    claimed.write(starting, *logged)
    lost = [Exception("connection lost")]
    lossy = _LostResponse(context.settings, context.db_engine, context.store, context.bus, lost)
    run_recorder = Recorder(lossy, claimed.run_id, 1)
    with pytest.raises(OperationalError):
        run_recorder.record()
    claimed.write(starting, *logged)
    patience = Patience()
    while patience.lasts() and run_recorder.record():
        pass
    with reading(engine) as session:
        rows = session.scalars(select(LogLine.message).where(LogLine.attempt == 1).order_by(LogLine.id))
        messages = list(rows)
    assert messages.count("starting: importing") == 1
    assert sum(message.startswith("line ") for message in messages) == MAX_LINES_PER_MINUTE - 1
    assert messages[-1].startswith("201 log lines were dropped")


def test_lines_before_the_start_count_towards_bounds(
    context: Context, engine: Engine, claimed: ClaimedRun
) -> None:
    now = time.time()
    logged = [events.LogEvent(time=now, level="info", message=f"line {n}") for n in range(1_000)]
    claimed.write(*logged, events.StartedEvent(time=now, device="cpu", pid=1))
    run_recorder = Recorder(context, claimed.run_id, 1)
    while run_recorder.record():
        pass
    with reading(engine) as session:
        rows = session.scalars(select(LogLine.message).where(LogLine.attempt == 1))
        assert sum(message.startswith("line ") for message in rows) == MAX_LINES_PER_MINUTE


def test_recorder_of_superseded_attempt_raises_and_stores_nothing(
    context: Context, engine: Engine, claimed: ClaimedRun
) -> None:
    run_recorder = _recorder(context, claimed)
    claimed.write(points(1))
    run_recorder.record()
    expire_lease(engine, claimed.run_id)
    with writing(engine) as session:
        claims.expire(session)
    before = run_row(engine, claimed.run_id)
    claimed.write(points(2), REPORT)
    for _ in range(2):
        with pytest.raises(claims.Superseded):
            run_recorder.record()
        with pytest.raises(claims.Superseded):
            run_recorder.conclude(_finish)
        claim(engine)
    after = run_row(engine, claimed.run_id)
    assert (after.agent_steps, after.attempt) == (before.agent_steps, 2)
    assert stored_points(engine, claimed.run_id) == [1]


def test_final_event_is_recorded_by_conclude(context: Context, engine: Engine, claimed: ClaimedRun) -> None:
    claimed.write(STARTED, points(1))
    claimed.write(points(2), ENDED)
    run_recorder = _recorder(context, claimed)
    patience = Patience()
    while patience.lasts() and run_recorder.record():
        pass
    assert run_recorder.has_final_event
    assert run_row(engine, claimed.run_id).state == "running"
    assert stored_points(engine, claimed.run_id) == [1]
    run_recorder.conclude(_finish)
    run = run_row(engine, claimed.run_id)
    assert (run.state, run.state_reason, run.host) == ("finished", "done", None)
    assert stored_points(engine, claimed.run_id) == [1, 2]
    with reading(engine) as session:
        assert session.get_one(Attempt, (claimed.run_id, 1)).outcome == "finished: done"


def test_events_of_already_removed_files_are_recorded_as_removed(
    context: Context, engine: Engine, claimed: ClaimedRun
) -> None:
    claimed.write(claimed.checkpoint(40, on_disk=False), claimed.episode(40, on_disk=False), points(40))
    assert _recorder(context, claimed).record()
    with reading(engine) as session:
        assert session.scalars(select(Checkpoint)).one().removed
        assert session.scalars(select(Episode)).all() == []
        assert checkpoints.resumable(session, claimed.run_id) == []
    assert stored_points(engine, claimed.run_id) == [40]


def test_removed_checkpoints_are_deleted_from_store(
    context: Context, engine: Engine, claimed: ClaimedRun
) -> None:
    run_recorder = _recorder(context, claimed)
    claimed.write(claimed.checkpoint(40))
    run_recorder.record()
    claimed.write(claimed.checkpoint(80), events.CheckpointsRemovedEvent(files=["a1-s40.pt"]))
    run_recorder.record()
    with reading(engine) as session:
        assert [c.file for c in checkpoints.resumable(session, claimed.run_id)] == ["a1-s80.pt"]
    assert context.store.size_bytes(claimed.run_id, "checkpoints", "a1-s40.pt") == 7, "someone may read it"
    assert delete_removed_files(context, grace_s=0) == 1
    assert context.store.size_bytes(claimed.run_id, "checkpoints", "a1-s80.pt") == 7
    with pytest.raises(FileNotFoundError):
        context.store.size_bytes(claimed.run_id, "checkpoints", "a1-s40.pt")


def test_checkpoint_with_pending_evaluation_is_kept(
    context: Context, engine: Engine, claimed: ClaimedRun
) -> None:
    run_recorder = _recorder(context, claimed)
    claimed.write(claimed.checkpoint(40))
    run_recorder.record()
    with writing(engine) as session:
        evaluations.request(session, claimed.run_id, n_episodes=2)
    claimed.write(claimed.checkpoint(60), claimed.checkpoint(80))
    claimed.write(events.CheckpointsRemovedEvent(files=["a1-s40.pt", "a1-s60.pt"]))
    run_recorder.record()
    with reading(engine) as session:
        kept = [c.file for c in checkpoints.resumable(session, claimed.run_id)]
    assert kept == ["a1-s80.pt", "a1-s40.pt"]
    assert delete_removed_files(context, grace_s=0) == 1
    assert context.store.size_bytes(claimed.run_id, "checkpoints", "a1-s40.pt") == 7
    with pytest.raises(FileNotFoundError):
        context.store.size_bytes(claimed.run_id, "checkpoints", "a1-s60.pt")


def test_recorder_with_fence_records_rest_of_earlier_attempt(
    context: Context, engine: Engine, claimed: ClaimedRun
) -> None:
    claimed.write(STARTED, points(1))
    _recorder(context, claimed).record()
    claimed.write(points(2), claimed.checkpoint(2), points(3))
    expire_lease(engine, claimed.run_id)
    with writing(engine) as session:
        claims.expire(session)
    assert claim(engine) is not None
    earlier = Recorder(context, claimed.run_id, 1, fence=2)
    assert earlier.record()
    assert stored_points(engine, claimed.run_id) == [1, 2, 3]
    assert run_row(engine, claimed.run_id).state == "starting"
    with writing(engine) as session:
        claims.resume_from(session, claimed.run_id, 2, checkpoints.resumable(session, claimed.run_id)[0])
    assert stored_points(engine, claimed.run_id) == [1, 2]


def test_null_character_in_log_message_is_replaced(
    context: Context, engine: Engine, claimed: ClaimedRun
) -> None:
    claimed.write(events.LogEvent(time=5.0, level="error", message="a\x00b"))
    assert _recorder(context, claimed).record()
    with reading(engine) as session:
        assert session.scalars(select(LogLine.message).where(LogLine.level == "error")).one() == "a\ufffdb"
