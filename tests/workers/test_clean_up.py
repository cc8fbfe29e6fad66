import gzip
import os
import struct
import time
import zlib
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine, event, func, select, update

from backend.access.auth import repository as auth
from backend.coordination.context import Context
from backend.db import Attempt, Checkpoint, Episode, LogLine, PlaySession, RemovedFile, Run
from backend.db.engine import reading, writing
from backend.db.job import EVALUATION
from backend.fleet.jobs import service as jobs
from backend.fleet.storage import repository as storage_rows
from backend.fleet.storage import service as storage
from backend.fleet.storage.repository import lock_clean_up
from backend.platform.artifacts import ArtifactStore, thumbnail_file
from backend.platform.principals import Role
from backend.replays.recordings import service as recordings
from backend.runs.runs import service as runs
from backend.specs import events
from backend.specs.recordings import GameStart
from backend.specs.states import RunState
from backend.upkeep.retention import repository as retention_rows
from backend.upkeep.retention import service as retention
from backend.upkeep.retention.policy import InstallationPolicy, RetentionPolicy
from tests.support.rows import add_attempt, episode_row, evaluation_row, make_checkpoint, make_run
from tests.support.waiting import PATIENCE_S, until
from workers import host_files
from workers.clean_up import (
    CleanUpThread,
    apply_retention,
    delete_removed_files,
    remove_ended_sessions,
)
from workers.engine.training.event_log import EventLog

pytestmark = pytest.mark.service

LONG_AGO = datetime.now(UTC) - timedelta(days=30)


def _set(engine: Engine, policy: RetentionPolicy, group: str | None = None) -> None:
    with writing(engine) as session:
        user = auth.user_by_name(session, "ada") or auth.add_user(session, "ada", Role.ADMIN)
        retention.set_policy(session, group, policy, user.id)


def _run(context: Context, folder: Path, state: RunState, n: int = 6, **changes: object) -> Run:
    """A run with n checkpoints and episodes, and their files."""
    run = make_run(context.db_engine, state, **changes)
    for at in range(100, 100 * n + 1, 100):
        checkpoint = make_checkpoint(context.db_engine, run, at)
        episode = episode_row(run.id, at, replay=f"{at}.npz", episode_return=-at, replay_bytes=4)
        with writing(context.db_engine) as session:
            session.add(episode)
        for kind, name in (("checkpoints", checkpoint.file), ("replays", episode.replay)):
            (folder / name).write_bytes(b"file")
            context.store.put(folder / name, run.id, kind)  # type: ignore[arg-type]
    return run


def _left(context: Context, run: Run) -> tuple[list[int], list[int]]:
    """Agent steps of the checkpoints and episodes that are kept; each must have its file."""
    with reading(context.db_engine) as session:
        kept = session.scalars(
            select(Checkpoint).where(Checkpoint.run_id == run.id, ~Checkpoint.removed)
        ).all()
        shown = session.scalars(select(Episode).where(Episode.run_id == run.id, ~Episode.removed)).all()
    for checkpoint in kept:
        assert context.store.size_bytes(run.id, "checkpoints", checkpoint.file) == 4
    for episode in shown:
        assert context.store.size_bytes(run.id, "replays", episode.replay) == 4
    return sorted(c.agent_steps for c in kept), sorted(e.agent_steps for e in shown)


def _n_files(context: Context, run: Run) -> int:
    return sum(1 for path in Path(context.settings.home_dir, "artifacts").rglob("*") if path.is_file())


def test_pass_applies_the_policy_of_each_group(context: Context, engine: Engine, tmp_path: Path) -> None:
    plain = _run(context, tmp_path, RunState.FINISHED)
    grouped = _run(context, tmp_path, RunState.FINISHED, group="g")
    active = _run(context, tmp_path, RunState.RUNNING)
    with writing(engine) as session:
        session.add(evaluation_row(plain.id, 200, 9.0))
        for agent_steps, state in ((300, "queued"), (400, "failed")):
            evaluation = evaluation_row(plain.id, agent_steps, None, attempt=None)
            session.add(evaluation)
            job = jobs.request(session, EVALUATION, plain.id, evaluation.id, queue="cpu")
            job.state = state
        session.add(evaluation_row(active.id, 100, 9.0))
    assert apply_retention(context) == 0, "everything is kept by default"
    _set(engine, InstallationPolicy(checkpoints_best=1, checkpoints_last=1, episodes_best=1, episodes_last=1))
    _set(engine, RetentionPolicy(checkpoints_every_agent_steps=250), "g")
    assert apply_retention(context) == 3
    everything = [100, 200, 300, 400, 500, 600]
    assert _left(context, plain) == ([200, 300, 600], [100, 600]), "best, awaited, newest; best and newest"
    assert _left(context, grouped) == ([300, 500, 600], everything), "600 is the newest"
    assert _left(context, active) == ([100, 400, 500, 600], [100, 600]), "what its engine may need is kept"
    assert apply_retention(context, interval_s=0) == 0, "again, it finds nothing"


def test_checkpoint_scored_again_by_its_engine_is_kept_next_to_better_ones_of_other_evaluations(
    context: Context, engine: Engine, tmp_path: Path
) -> None:
    run = _run(context, tmp_path, RunState.RUNNING, n=8)
    with writing(engine) as session:
        session.add_all(
            evaluation_row(run.id, at, score) for at, score in ((200, 5.0), (300, 5.0), (400, 4.0))
        )
        session.add(evaluation_row(run.id, 500, 6.0, superseded=True))
        session.add(evaluation_row(run.id, 100, 9.0, attempt=None, protocol="human_starts"))
        # What an engine that was killed as it finished measured in its second score.
        session.add(evaluation_row(run.id, 800, 7.0, checkpoint="a1-s000000000400.pt"))
    _set(engine, InstallationPolicy(checkpoints_best=1, checkpoints_last=1))
    folder = context.run_dir(run.id) / "checkpoints"
    for at in range(100, 801, 100):
        _old(context.store.get(run.id, "checkpoints", f"a1-s{at:012d}.pt", folder))
    assert apply_retention(context) == 1
    assert _left(context, run)[0] == [100, 200, 600, 700, 800]
    host_files.remove_copies(context, run.id)
    assert sorted(int(path.stem[-12:]) for path in folder.iterdir()) == [200, 600, 700, 800]


def test_retention_builds_no_object_of_an_episode_and_hosts_read_none(
    context: Context, engine: Engine, tmp_path: Path
) -> None:
    run = _run(context, tmp_path, RunState.FINISHED)
    _set(engine, InstallationPolicy(episodes_last=2, videos_days=1))
    _log(context, engine, run, recorded=True)
    built: list[object] = []
    statements: list[str] = []

    def note_statement(*args: object) -> None:
        statements.append(str(args[2]))

    def note_object(target: object, context: object) -> None:
        built.append(target)

    listeners: list[tuple[object, str, Callable[..., None]]] = [
        (Episode, "load", note_object),
        (context.db_engine, "before_cursor_execute", note_statement),
    ]
    for listener in listeners:
        event.listen(*listener)
    try:
        host_files.shorten_logs(context)
        assert not [text for text in statements if "episodes" in text]
        assert apply_retention(context) == 1
    finally:
        for listener in listeners:
            event.remove(*listener)
    assert built == []
    assert _left(context, run)[1] == [500, 600]


def test_files_are_deleted_after_their_grace_and_not_during_a_backup(
    context: Context, engine: Engine, tmp_path: Path
) -> None:
    run = _run(context, tmp_path, RunState.FINISHED)
    _set(engine, InstallationPolicy(checkpoints_last=2, episodes_last=1))
    apply_retention(context)
    assert delete_removed_files(context, grace_s=60) == 0
    with writing(engine) as session:
        storage.hold(session, 60)
    assert delete_removed_files(context, grace_s=0) == 0
    assert _n_files(context, run) == 12
    with writing(engine) as session:
        lock_clean_up(session).held_until = None
    assert delete_removed_files(context, grace_s=0) == 9
    assert _n_files(context, run) == 3
    with reading(engine) as session:
        assert session.scalars(select(RemovedFile)).all() == []
        assert [episode.agent_steps for episode in session.scalars(select(Episode))] == [600]
    assert _left(context, run) == ([500, 600], [600])


class _StoreWithLockedFile(ArtifactStore):
    """One file cannot be deleted."""

    locked: str

    def delete(self, run_id: str, kind: str, file: str) -> None:
        if file == self.locked:
            raise PermissionError(file)
        super().delete(run_id, kind, file)  # type: ignore[arg-type]


def test_file_that_cannot_be_deleted_does_not_delay_others(
    context: Context, engine: Engine, tmp_path: Path
) -> None:
    run = _run(context, tmp_path, RunState.FINISHED)
    _set(engine, InstallationPolicy(checkpoints_last=2, episodes_last=1))
    apply_retention(context)
    with reading(engine) as session:
        first = session.scalars(select(RemovedFile).order_by(RemovedFile.id)).first()
    assert first is not None
    assert first.file is not None
    store = _StoreWithLockedFile(context.settings.artifacts)
    store.locked = first.file
    assert delete_removed_files(replace(context, store=store), grace_s=0) == 8
    with reading(engine) as session:
        assert [row.file for row in session.scalars(select(RemovedFile))] == [first.file]
    assert delete_removed_files(context, grace_s=0) == 1
    assert _n_files(context, run) == 3


class _StoreWithLockedVideos(ArtifactStore):
    """No video can be deleted."""

    n_tries = 0

    def delete(self, run_id: str, kind: str, file: str) -> None:
        if kind == "videos":
            self.n_tries += 1
            raise PermissionError(file)
        super().delete(run_id, kind, file)  # type: ignore[arg-type]


def test_many_files_that_cannot_be_deleted_are_tried_once_and_do_not_delay_others(
    context: Context, engine: Engine
) -> None:
    run = make_run(engine, RunState.FINISHED)
    with writing(engine) as session:
        storage.release_files(session, run.id, "videos", [f"{n}.mp4" for n in range(130)])
        storage.release_files(session, run.id, "replays", ["1.npz", "2.npz"])
    store = _StoreWithLockedVideos(context.settings.artifacts)
    assert delete_removed_files(replace(context, store=store), grace_s=0) == 2
    assert store.n_tries == 130
    assert delete_removed_files(context, grace_s=0) == 130


class _KilledStore(ArtifactStore):
    """The worker is killed before or after the deletion of a file."""

    left: int
    after: bool

    def delete(self, run_id: str, kind: str, file: str) -> None:
        if not self.after and not self.left:
            raise SystemExit
        super().delete(run_id, kind, file)  # type: ignore[arg-type]
        if self.after and not self.left:
            raise SystemExit
        self.left -= 1


def test_clean_up_killed_at_any_point_is_completed_by_the_next(
    context: Context, engine: Engine, tmp_path: Path
) -> None:
    run = _run(context, tmp_path, RunState.FINISHED)
    _set(engine, InstallationPolicy(checkpoints_last=2, episodes_last=1))
    apply_retention(context)
    kills = 0
    for at in range(0, 9, 2):
        store = _KilledStore(context.settings.artifacts)
        store.left, store.after = at // 2, at % 4 == 0
        try:
            delete_removed_files(replace(context, store=store), grace_s=0)
        except SystemExit:
            kills += 1
        assert _left(context, run) == ([500, 600], [600]), "every kept row has its file"
    assert kills == 5
    assert delete_removed_files(context, grace_s=0) == 9
    assert _n_files(context, run) == 3


def test_video_that_is_rendered_again_is_not_deleted(
    context: Context, engine: Engine, tmp_path: Path
) -> None:
    run = make_run(engine, RunState.FINISHED)
    episode = episode_row(run.id, video="x", video_rendered_at=LONG_AGO)
    episode.video = f"{episode.id}.mp4"
    (tmp_path / episode.video).write_bytes(b"file")
    context.store.put(tmp_path / episode.video, run.id, "videos")
    with writing(engine) as session:
        session.add(episode)
    _set(engine, InstallationPolicy(videos_days=7))
    assert apply_retention(context) == 1
    with writing(engine) as session:
        row = session.get_one(Episode, episode.id)
        assert (row.video, row.removed) == (None, False)
        row.video, row.video_rendered_at = f"{episode.id}.mp4", datetime.now(UTC)
    assert delete_removed_files(context, grace_s=0) == 0
    assert context.store.size_bytes(run.id, "videos", f"{episode.id}.mp4") == 4


def test_thumbnail_is_kept_and_removed_with_its_episode(
    context: Context, engine: Engine, tmp_path: Path
) -> None:
    """An old video goes, the thumbnail beside it stays; retention of episodes removes it too."""
    run = make_run(engine, RunState.FINISHED)
    old, new = (
        episode_row(
            run.id,
            steps,
            replay=f"{steps}.npz",
            video="x.mp4",
            video_rendered_at=LONG_AGO,
            thumbnail_bytes=4,
            thumbnail_sha256="0" * 64,
        )
        for steps in (100, 200)
    )
    for name in (thumbnail_file(old.id), thumbnail_file(new.id)):
        (tmp_path / name).write_bytes(b"file")
        context.store.put(tmp_path / name, run.id, "videos")
    with writing(engine) as session:
        session.add_all([old, new])
    with reading(engine) as session:
        assert retention_rows.by_kind(session)["videos"] == (4, 8)
    _set(engine, InstallationPolicy(videos_days=7))
    assert apply_retention(context) == 1
    with reading(engine) as session:
        row = session.get_one(Episode, old.id)
        assert (row.video, row.thumbnail_bytes) == (None, 4)
        for episode in (old, new):
            assert storage_rows.has_video(session, run.id, thumbnail_file(episode.id))
            assert not storage_rows.has_video(session, run.id, f"{episode.id}.mp4")
    _set(engine, InstallationPolicy(episodes_last=1))
    assert apply_retention(context) == 1
    delete_removed_files(context, grace_s=0)
    assert context.store.size_bytes(run.id, "videos", thumbnail_file(new.id)) == 4
    with pytest.raises(FileNotFoundError):
        context.store.size_bytes(run.id, "videos", thumbnail_file(old.id))
    with reading(engine) as session:
        assert retention_rows.by_kind(session)["videos"] == (1, 4)


def test_old_log_lines_are_removed_in_parts(
    context: Context, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "MAX_ROWS", 3)
    run = make_run(engine, RunState.FINISHED)
    with writing(engine) as session:
        session.execute(update(LogLine).values(time=LONG_AGO))
        lines = [{"time": LONG_AGO, "level": "info", "message": str(n)} for n in range(7)]
        lines.append({"time": datetime.now(UTC), "level": "info", "message": "new"})
        runs.add_log_lines(session, run.id, 1, lines)
    _set(engine, InstallationPolicy(log_lines_days=7))
    assert apply_retention(context) == 1
    with reading(engine) as session:
        assert [line.message for line in session.scalars(select(LogLine))] == ["new"]


def _old(path: Path) -> None:
    then = time.time() - 3600
    os.utime(path, (then, then))


def _log(context: Context, engine: Engine, run: Run, *, recorded: bool) -> Path:
    folder = context.run_dir(run.id) / "attempts" / "1"
    log = EventLog(folder / "events.log")
    log.add(*(events.LogEvent(time=1.0, level="info", message="a line") for _ in range(1_000)))
    log.close()
    (folder / "engine.json").write_text("{}")
    size = (folder / "events.log").stat().st_size
    add_attempt(engine, run.id, ended_at=LONG_AGO, log_offset_bytes=size if recorded else 0)
    _old(folder / "events.log")
    return folder / "events.log"


@pytest.mark.parametrize("action", ["compress", "remove", "keep"])
def test_recorded_event_logs_are_compressed_or_removed(context: Context, engine: Engine, action: str) -> None:
    recorded, unrecorded = (make_run(engine, RunState.FINISHED) for _ in range(2))
    path, other = (_log(context, engine, run, recorded=run is recorded) for run in (recorded, unrecorded))
    content = path.read_bytes()
    _set(engine, InstallationPolicy(event_logs=action))  # type: ignore[arg-type]
    for _ in range(2):
        host_files.shorten_logs(context)
    assert other.exists(), "not all of it is in the database"
    assert path.exists() == (action == "keep")
    compressed = path.with_name("events.log.gz")
    with reading(engine) as session:
        log_bytes = session.get_one(Attempt, (recorded.id, 1)).log_bytes
    if action == "compress":
        assert gzip.decompress(compressed.read_bytes()) == content
        assert log_bytes == compressed.stat().st_size < len(content) / 5
        host_files.decompress(compressed)
        assert path.read_bytes() == content
    else:
        assert not compressed.exists()
        assert log_bytes == (0 if action == "remove" else None)


def _damage_log(path: Path) -> None:
    """An undamaged frame with an event of another version."""
    payload = b'[{"type": "of another version"}]'
    path.write_bytes(struct.pack("<II", len(payload), zlib.crc32(payload)) + payload)


def _replace_log_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _fill_disk(path: Path) -> None:
    path.with_name("events.log.gz.partial").symlink_to("/dev/full")


@pytest.mark.parametrize("urgent", [False, True])
@pytest.mark.parametrize("spoil", [_damage_log, _replace_log_by_folder, _fill_disk])
def test_unreadable_log_of_one_run_delays_neither_other_runs_nor_deletion(
    context: Context, engine: Engine, tmp_path: Path, spoil: Callable[[Path], None], urgent: bool
) -> None:
    paths = []
    for is_bad in (False, True, False):  # a bad one before or after each good one
        run = make_run(engine, RunState.FINISHED)
        paths.append(_log(context, engine, run, recorded=spoil is _fill_disk or not is_bad))
    spoil(paths[1])
    _old(paths[1])
    stored = _run(context, tmp_path, RunState.FINISHED, n=2)
    with writing(engine) as session:
        storage.release_files(session, stored.id, "videos", ["gone.mp4"])
        session.execute(update(RemovedFile).values(removed_at=LONG_AGO))
    _set(engine, InstallationPolicy(checkpoints_last=1))
    clean_up = CleanUpThread(context)
    if urgent:
        clean_up.run_now()
    clean_up.start()
    try:
        until(lambda: not paths[2].exists())
    finally:
        clean_up.begin_stop()
        clean_up.join(PATIENCE_S)
    assert not paths[0].exists()
    assert paths[1].exists()
    names = {path.name for path in paths[1].parent.iterdir()}
    assert names == {"events.log", "engine.json"}, "no part of a compressed copy"
    assert _left(context, stored)[0] == [200]
    with reading(engine) as session:
        assert "gone.mp4" not in session.scalars(select(RemovedFile.file)).all()


def test_files_of_killed_engines_and_transfers_are_removed(
    context: Context, engine: Engine, tmp_path: Path
) -> None:
    run = _run(context, tmp_path, RunState.RUNNING)
    folder = context.run_dir(run.id) / "checkpoints"
    folder.mkdir(parents=True, exist_ok=True)
    names = ("a1-s000000000700.partial.pt", ".a1-s000000000100.pt.0123", "a1-s000000000800.partial.pt")
    for name in names:
        (folder / name).write_bytes(b"half of it")
    for name in names[:2]:
        os.utime(folder / name, (0, 0))
    host_files.remove_copies(context, run.id)
    assert [name for name in names if (folder / name).exists()] == [names[2]]


def test_host_keeps_only_the_copies_that_an_engine_may_read(
    context: Context, engine: Engine, tmp_path: Path
) -> None:
    for state, kept in ((RunState.RUNNING, [100, 400, 500, 600]), (RunState.FINISHED, [])):
        run = _run(context, tmp_path, state)
        with writing(engine) as session:
            session.add(evaluation_row(run.id, 100, 9.0))
            assert session.scalar(select(func.count()).select_from(Checkpoint)) != 0
        folder = context.run_dir(run.id) / "checkpoints"
        for at in (*range(100, 601, 100), 700):
            file = f"a1-s{at:012d}.pt"
            if at < 700:
                context.store.get(run.id, "checkpoints", file, folder)
            else:
                (folder / file).write_bytes(b"not recorded")
            _old(folder / file)
        host_files.remove_copies(context, run.id)
        assert sorted(int(path.stem[-12:]) for path in folder.iterdir()) == [*kept, 700]
        assert _left(context, run)[0] == [100, 200, 300, 400, 500, 600]


def test_sessions_that_ended_long_ago_are_deleted_and_their_recordings_stay(
    context: Context, engine: Engine
) -> None:
    now = datetime.now(UTC)
    with writing(engine) as session:
        player = auth.add_user(session, "ada", Role.OPERATOR)
        for name, state, ended_at in (("A", "ended", LONG_AGO), ("B", "ended", now), ("C", "running", None)):
            session.add(
                PlaySession(
                    id=name * 26,
                    user_id=player.id,
                    environment="CartPole-v1",
                    environment_config={},
                    scripted=False,
                    state=state,
                    created_at=LONG_AGO,
                    ended_at=ended_at,
                )
            )
        start = GameStart(seed=1, frames_per_step=1, action_names=[], rom_sha256=None, versions={})
        kept = recordings.start(
            session,
            session_id="A" * 26,
            user_id=player.id,
            environment="CartPole-v1",
            environment_config={},
            protocol="human_play",
            game=start,
        ).id
    assert remove_ended_sessions(context) == 1
    assert remove_ended_sessions(context) == 0
    with reading(engine) as session:
        assert sorted(session.scalars(select(PlaySession.id))) == ["B" * 26, "C" * 26]
        assert recordings.get(session, kept).session_id == "A" * 26
