from sqlalchemy import Engine, delete

from backend.db import CleanUp
from backend.db.engine import writing
from backend.fleet.storage import repository


def test_lock_clean_up_creates_the_shared_state_once(engine: Engine) -> None:
    with writing(engine) as session:
        session.execute(delete(CleanUp))
        created = repository.lock_clean_up(session)
        assert created.id == 1
        assert repository.lock_clean_up(session) is created
    with writing(engine) as session:
        assert session.query(CleanUp).count() == 1
