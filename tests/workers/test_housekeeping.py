import os
import time
from pathlib import Path

from sqlalchemy import Engine

from backend.db import Run
from backend.db.engine import writing
from backend.db.ids import new_id
from backend.runs import repository as runs
from tests.support.runs import make_run
from workers.context import Context
from workers.housekeeping import MIN_AGE_S, forget_deleted_runs


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
        runs.delete(session, session.get_one(Run, run.id))
    return run.id


def test_only_what_a_worker_made_for_a_run_that_was_deleted(context: Context, engine: Engine) -> None:
    assert forget_deleted_runs(context) == []
    gone = _folder(context, _deleted(engine))
    kept = [
        _folder(context, make_run(engine).id),
        _folder(context, _deleted(engine), by_worker=False),
        _folder(context, _deleted(engine), age_s=10),
    ]
    assert forget_deleted_runs(context) == [gone.name]
    assert not gone.exists()
    assert all(folder.exists() for folder in kept)


def test_another_databases_runs_stay(context: Context, engine: Engine) -> None:
    folder = _folder(context, new_id())
    assert forget_deleted_runs(context) == []
    assert folder.exists()
