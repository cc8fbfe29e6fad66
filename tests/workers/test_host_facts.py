import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from workers.host_facts import known_worker_id, worker_id


def test_workers_of_one_home_have_one_id_even_if_they_start_at_once(tmp_path: Path) -> None:
    for number in range(100):
        home = tmp_path / str(number)
        assert known_worker_id(home) is None
        at_once = Barrier(4)

        def start(home: Path = home, at_once: Barrier = at_once) -> str:
            at_once.wait()
            return worker_id(home)

        with ThreadPoolExecutor(4) as threads:
            ids = {started.result() for started in [threads.submit(start) for _ in range(4)]}
        assert ids == {known_worker_id(home)}
    assert worker_id(tmp_path / "another") not in ids


def test_empty_file_of_an_interrupted_start_is_no_id(tmp_path: Path) -> None:
    worker_id(tmp_path)
    for file in tmp_path.iterdir():
        os.truncate(file, 0)
    assert known_worker_id(tmp_path) is None
    assert len(worker_id(tmp_path)) == 32
    assert worker_id(tmp_path) == known_worker_id(tmp_path)


def test_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "worker-id").mkdir()
    for read in (known_worker_id, worker_id):
        with pytest.raises(IsADirectoryError):
            read(tmp_path)
