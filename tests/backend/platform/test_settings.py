from pathlib import Path

import pytest
from redis import ConnectionPool
from sqlalchemy import text

from backend.db.base import new_id
from backend.db.engine import make_engine
from backend.platform.artifacts import ArtifactStore
from backend.platform.settings import Settings
from backend.pubsub import bus as bus_module
from backend.pubsub.bus import Bus
from callboard_cli.servers import temporary_redis
from tests.support.waiting import PATIENCE_S

HOMES = ["my runs", "a%20b", "100%", "a#b?c", "me@corp+x", "höme", "[a]*"]
"""Folders whose names mean something else in a URL."""


def _create_database(url: str) -> None:
    engine = make_engine(url)
    try:
        with engine.begin() as connection:
            connection.execute(text("CREATE TABLE t (x INTEGER)"))
    finally:
        engine.dispose()


def _store(home: Path, name: str, content: bytes = b"weights") -> tuple[ArtifactStore, str]:
    """The artifact store of a home, with a file, and the file's run."""
    store, run = ArtifactStore(Settings(home=home).artifacts), new_id()
    local = home.parent / name
    local.write_bytes(content)
    store.put(local, run, "checkpoints")
    local.unlink()
    return store, run


@pytest.mark.parametrize("name", HOMES)
def test_state_lies_in_home_whatever_its_name(tmp_path: Path, name: str) -> None:
    home = tmp_path / name
    settings = Settings(home=home)
    _create_database(settings.database)
    store, run = _store(home, "a.pt")
    assert list(tmp_path.iterdir()) == [home]
    assert settings.sqlite_file == home / "callboard.sqlite3"
    assert settings.sqlite_file.is_file()
    assert (home / "artifacts" / "runs" / run / "checkpoints" / "a.pt").is_file()
    assert ConnectionPool.from_url(settings.redis).connection_kwargs["path"] == str(settings.redis_socket)
    store.delete_run(run)
    assert store.is_empty()


@pytest.mark.service
def test_redis_and_celery_connect_to_socket_in_folder_with_any_name(
    short_tmp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bus_module, "TIMEOUT_S", PATIENCE_S)
    with temporary_redis(short_tmp / "ä %20#?" / "redis.sock") as url:
        bus = Bus(url)
        try:
            assert bus.ping()
            assert bus.wake("cpu")
        finally:
            bus.close()


def test_slots_are_left_to_the_worker_if_unset_or_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CALLBOARD_SLOTS", raising=False)
    assert Settings().slots is None
    monkeypatch.setenv("CALLBOARD_SLOTS", "")  # as a compose file passes a variable that is not set
    assert Settings().slots is None
    monkeypatch.setenv("CALLBOARD_SLOTS", "3")
    assert Settings().slots == 3


def test_space_around_the_name_of_a_host_is_not_part_of_it(tmp_path: Path) -> None:
    assert Settings(home=tmp_path, host_name=" vm ").host_name == "vm"
