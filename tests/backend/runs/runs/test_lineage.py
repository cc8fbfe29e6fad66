import pytest
from sqlalchemy import Engine, event

from backend.db import Run
from backend.db.clock import database_now
from backend.db.engine import reading, writing
from backend.runs.runs import repository
from backend.runs.runs import service as run_service
from tests.support.rows import make_fork, make_run

pytestmark = pytest.mark.service


def roots(engine: Engine, *ids: str) -> list[str]:
    with reading(engine) as session:
        root_of = repository.lineage_roots(session, [session.get_one(Run, run_id) for run_id in ids])
    return [root_of[run_id] for run_id in ids]


def test_root_is_the_first_run_of_the_lineage_also_where_it_was_set_aside(engine: Engine) -> None:
    first, other = make_run(engine), make_run(engine)
    child = make_fork(engine, first.id, 100)
    grandchild = make_fork(engine, child.id, 200)
    nephew = make_fork(engine, first.id, 100, seed=7)
    asked = [grandchild.id, nephew.id, child.id, first.id, other.id]
    expected = [first.id] * 4 + [other.id]
    assert roots(engine, *asked) == expected
    with writing(engine) as session:
        session.get_one(Run, child.id).deleted_at = database_now(session)
    assert roots(engine, grandchild.id, nephew.id) == [first.id] * 2


def test_forks_of_a_deleted_run_are_one_lineage_if_they_start_at_the_same_step(engine: Engine) -> None:
    first = make_run(engine)
    forks = [make_fork(engine, first.id, at) for at in (100, 100, 200)]
    grandchild = make_fork(engine, forks[0].id, 300)
    with writing(engine) as session:
        run_service.remove(session, session.get_one(Run, first.id))
    same, again, later, youngest = roots(engine, *(fork.id for fork in forks), grandchild.id)
    assert same == again == youngest
    assert later not in (same, *(fork.id for fork in forks))


def test_roots_of_many_forks_take_one_query(engine: Engine) -> None:
    parents = [make_run(engine) for _ in range(3)]
    forks = [make_fork(engine, make_fork(engine, parent.id, 100).id, 200) for parent in parents]
    statements: list[str] = []

    def note(*args: object) -> None:
        statements.append(str(args[2]))

    with reading(engine) as session:
        runs = [session.get_one(Run, fork.id) for fork in forks]
        event.listen(engine, "before_cursor_execute", note)
        root_of = repository.lineage_roots(session, runs)
        event.remove(engine, "before_cursor_execute", note)
    assert list(root_of.values()) == [parent.id for parent in parents]
    assert len(statements) == 1
