from collections.abc import Callable
from threading import Barrier, Thread

from sqlalchemy import Engine, event
from sqlalchemy.orm import Session

from backend.access.auth import repository
from backend.db import LoginLimit
from backend.db.engine import reading, writing
from backend.platform.principals import Role
from tests.support.waiting import PATIENCE_S


def test_has_admin_with_password_counts_no_other_role_and_no_admin_without(engine: Engine) -> None:
    def has_admin() -> bool:
        with reading(engine) as session:
            return repository.has_admin_with_password(session)

    with writing(engine) as session:
        repository.set_password_hash(session, repository.add_user(session, "o", Role.OPERATOR), "hash")
        for name in ("a", "b"):
            repository.add_user(session, name, Role.ADMIN)
    assert not has_admin()
    with writing(engine) as session:
        for name in ("c", "d"):
            repository.set_password_hash(session, repository.add_user(session, name, Role.ADMIN), "hash")
    assert has_admin()


def test_concurrent_first_failures_of_one_account_share_one_limit(engine: Engine) -> None:
    """Both look before either adds the row: the later one waits, and then finds it."""
    both = Barrier(2, timeout=PATIENCE_S)
    limits: list[str] = []

    def after_looking(wait: Callable[[], object]) -> None:
        with writing(engine) as session:
            if engine.dialect.name == "postgresql":  # SQLite has one writer at a time
                looked = False

                @event.listens_for(session, "before_flush")
                def _(session: Session, *_: object) -> None:
                    nonlocal looked
                    if not looked:
                        looked = True
                        wait()

            [limit] = repository.lock_login_limits(session, ["account:anna"])
            limits.append(limit.key)

    threads = [Thread(target=after_looking, args=(both.wait,), daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert limits == ["account:anna"] * 2
    with reading(engine) as session:
        assert session.query(LoginLimit).count() == 1
