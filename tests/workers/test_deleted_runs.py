import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine, update
from sqlalchemy.orm import Session

from backend.coordination.context import Context
from backend.db import Run
from backend.db.base import new_id
from backend.db.engine import reading, writing
from backend.db.run import RESTORABLE_S
from backend.runs.runs import actions, service
from backend.specs.states import RunState
from tests.support.rows import make_run
from tests.support.waiting import PATIENCE_S, until
from workers import jobs
from workers.clean_up import (
    JOB_FOLDER_MIN_AGE_S,
    MIN_AGE_S,
    CleanUpThread,
    delete_removed_files,
    purge_deleted_runs,
    remove_deleted_runs,
)

pytestmark = pytest.mark.service


def _folder(context: Context, run_id: str, *, by_worker: bool = True, age_s: float = MIN_AGE_S + 60) -> Path:
    folder = context.run_dir(run_id)
    (folder / "attempts" / "1").mkdir(parents=True)
    if by_worker:
        (folder / "attempts" / "1" / "engine.json").write_text("{}")
    then = time.time() - age_s
    os.utime(folder, (then, then))
    return folder


def _deleted(engine: Engine) -> str:
    run = make_run(engine)
    with writing(engine) as session:
        service.remove(session, session.get_one(Run, run.id))
    return run.id


def _pass_time_to_restore(engine: Engine, *run_ids: str) -> None:
    with writing(engine) as session:
        past = datetime.now(UTC) - timedelta(seconds=RESTORABLE_S + 60)
        session.execute(update(Run).where(Run.id.in_(run_ids)).values(deleted_at=past))


def test_remove_deleted_runs_removes_only_old_worker_folders_of_deleted_runs(
    context: Context, engine: Engine
) -> None:
    assert remove_deleted_runs(context) == []
    gone = _folder(context, _deleted(engine))
    kept = [
        _folder(context, make_run(engine).id),
        _folder(context, _deleted(engine), by_worker=False),
        _folder(context, _deleted(engine), age_s=10),
    ]
    assert remove_deleted_runs(context) == [gone.name]
    assert not gone.exists()
    assert all(folder.exists() for folder in kept)


def test_remove_deleted_runs_keeps_runs_of_other_databases(context: Context, engine: Engine) -> None:
    folder = _folder(context, new_id())
    assert remove_deleted_runs(context) == []
    assert folder.exists()


def test_purge_deletes_runs_and_files_once_they_cannot_be_restored(
    context: Context, engine: Engine, tmp_path: Path
) -> None:
    file = tmp_path / "a.pt"
    file.write_bytes(b"x")
    old, recent = (make_run(engine, RunState.FINISHED).id for _ in range(2))
    for run_id in (old, recent):
        context.store.put(file, run_id, "checkpoints")
        with writing(engine) as session:
            actions.delete(session, run_id, restorable=True)
    _pass_time_to_restore(engine, old)
    assert purge_deleted_runs(context) == [old]
    assert context.store.size_bytes(old, "checkpoints", "a.pt") == 1, "rows come first"
    assert delete_removed_files(context, grace_s=60) == 1
    with pytest.raises(FileNotFoundError):
        context.store.size_bytes(old, "checkpoints", "a.pt")
    assert context.store.size_bytes(recent, "checkpoints", "a.pt") == 1
    assert purge_deleted_runs(context) == []
    assert delete_removed_files(context, grace_s=60) == 0


def test_each_run_is_purged_in_a_transaction_of_its_own(
    context: Context, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (make_run(engine, RunState.FINISHED).id for _ in range(2))
    for run_id in (first, second):
        with writing(engine) as session:
            actions.delete(session, run_id, restorable=True)
    _pass_time_to_restore(engine, first, second)
    remove = service.remove

    def remove_first(session: Session, run: Run) -> None:
        if run.id == second:
            raise RuntimeError("killed")
        remove(session, run)

    monkeypatch.setattr(service, "remove", remove_first)
    with pytest.raises(RuntimeError, match="killed"):
        purge_deleted_runs(context)
    with reading(engine) as session:
        assert service.deleted_among(session, [first, second]) == {first}


def test_job_folder_of_a_killed_worker_is_removed_once_it_is_old(context: Context) -> None:
    assert JOB_FOLDER_MIN_AGE_S >= 2 * jobs.TIMEOUT_S
    abandoned, recent = (context.run_dir(new_id()) / "jobs" / name for name in ("a-x", "b-y"))
    for folder, age_s in ((abandoned, JOB_FOLDER_MIN_AGE_S + 60), (recent, 60.0)):
        folder.mkdir(parents=True)
        (folder / "checkpoint.pt").write_bytes(b"weights")
        then = time.time() - age_s
        os.utime(folder, (then, then))
    clean_up = CleanUpThread(context)
    clean_up.start()
    try:
        until(lambda: not abandoned.exists())
    finally:
        clean_up.begin_stop()
        clean_up.join(PATIENCE_S)
    assert recent.exists()
