"""The order of those that write to SQLite."""

import shutil
import sqlite3
from pathlib import Path
from threading import Thread

import pytest
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

from backend.db import Host
from backend.db.engine import commit, make_engine, reading, writing
from backend.db.write_lock import WriteLock
from tests.support.rows import host_row
from tests.support.waiting import PATIENCE_S, until


def test_threads_have_the_lock_in_the_order_of_their_arrival() -> None:
    lock = WriteLock()
    assert lock.acquire(0)
    order: list[int] = []

    def work(n: int) -> None:
        assert lock.acquire(PATIENCE_S)
        order.append(n)
        lock.release()

    threads = []
    for n in range(10):
        threads.append(Thread(target=work, args=(n,)))
        threads[-1].start()
        until(lambda n=n: lock.n_waiting == n + 1, every_s=0.001)  # type: ignore[misc]
    lock.release()
    # Whoever asks again at once comes after those that wait.
    work(10)
    for thread in threads:
        thread.join()
    assert order == [*range(11)]


def test_thread_that_waits_too_long_leaves_the_line() -> None:
    lock = WriteLock()
    assert lock.acquire(0)
    assert not lock.acquire(0.01)
    assert lock.n_waiting == 0
    lock.release()
    assert lock.acquire(0)


@pytest.fixture
def path(sqlite_template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copyfile(sqlite_template, tmp_path / "callboard.sqlite3"))


def test_writer_takes_the_lock_once_another_process_has_released_it(path: Path) -> None:
    engine = make_engine(f"sqlite:///{path}")
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")

    def write(name: str, wait_s: float) -> None:
        with writing(engine, wait_s=wait_s) as session:
            session.add(host_row(name))

    with pytest.raises(OperationalError, match="database is locked"):
        write("refused", 0.05)
    thread = Thread(target=write, args=("kept", PATIENCE_S))
    thread.start()
    other.execute("ROLLBACK")
    thread.join()
    other.close()
    with reading(engine) as session:
        assert session.scalars(select(Host.id)).all() == ["kept"]
    engine.dispose()


def test_committed_transaction_leaves_the_lock_before_its_block_ends(path: Path) -> None:
    engine = make_engine(f"sqlite:///{path}")
    with writing(engine) as first:
        first.add(host_row("a"))
        commit(first)
        with writing(engine, wait_s=PATIENCE_S) as second:
            second.add(host_row("b"))
            second.flush()
    with reading(engine) as session:
        assert session.scalars(select(Host.id).order_by(Host.id)).all() == ["a", "b"]
    engine.dispose()
