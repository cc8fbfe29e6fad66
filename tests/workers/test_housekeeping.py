import os
import time
from pathlib import Path

from sqlalchemy import Engine

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


def test_only_what_a_worker_made_for_a_run_that_is_no_more(context: Context, engine: Engine) -> None:
    assert forget_deleted_runs(context) == []
    deleted = _folder(context, "01M7W7C9JWHJM9YNCV5T8SCRXZ")
    kept = [
        _folder(context, make_run(engine).id),
        _folder(context, "01M7W7C9JWHJM9YNCV5T8SCRX1", by_worker=False),
        _folder(context, "01M7W7C9JWHJM9YNCV5T8SCRX2", age_s=10),
    ]
    assert forget_deleted_runs(context) == [deleted.name]
    assert not deleted.exists()
    assert all(folder.exists() for folder in kept)
