from sqlalchemy import Engine

from backend.db.engine import writing
from backend.runs.checkpoints import repository
from tests.support.rows import make_run
from tests.workers.support import add_checkpoint


def test_checkpoints_to_resume_from_are_newest_first(engine: Engine) -> None:
    run = make_run(engine)
    with writing(engine) as session:
        for steps in (100, 300, 200):
            add_checkpoint(session, run.id, steps)
        add_checkpoint(session, run.id, 400, removed=True)
        add_checkpoint(session, run.id, 500, superseded=True)
        assert [c.agent_steps for c in repository.resumable(session, run.id)] == [300, 200, 100]


def test_checkpoint_of_later_attempt_is_newer_at_same_step(engine: Engine) -> None:
    """Ids contain the time of the recording host, whose clock may be behind."""
    run = make_run(engine)
    with writing(engine) as session:
        add_checkpoint(session, run.id, 100, attempt=1, id="01M7WS1D3MAN5RKM6F5VFFNCC2")
        add_checkpoint(session, run.id, 100, attempt=2, id="01M7WS1D3MAN5RKM6F5VFFNCC1")
        assert [c.attempt for c in repository.resumable(session, run.id)] == [2, 1]
        newest = repository.latest(session, run.id)
        assert newest is not None
        assert newest.attempt == 2
