from pathlib import Path

import pytest
from redis import ConnectionPool
from sqlalchemy import text

from backend.artifacts import ArtifactStore
from backend.cli.servers import temporary_redis
from backend.db.base import new_id
from backend.db.engine import make_engine
from backend.live import bus as bus_module
from backend.live.bus import Bus
from backend.settings import Settings
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
            assert bus.send_task("callboard.wake", "cpu")
        finally:
            bus.close()


@pytest.mark.parametrize(("name", "earlier"), [("my runs", "my%20runs"), ("me@corp", "me%40corp")])
def test_artifacts_of_earlier_versions_are_found(tmp_path: Path, name: str, earlier: str) -> None:
    _, run = _store(tmp_path / earlier, "old.pt")
    old = tmp_path / earlier / "artifacts" / "runs" / run / "checkpoints" / "old.pt"
    store, new_run = _store(tmp_path / name, "new.pt")
    assert store.read(run, "checkpoints", "old.pt", None) == b"weights"
    assert store.size_bytes(run, "checkpoints", "old.pt") == 7
    assert store.get(run, "checkpoints", "old.pt", tmp_path / "local").read_bytes() == b"weights"
    store.copy(run, "checkpoints", "old.pt", new_run, "copy.pt")
    assert store.read(new_run, "checkpoints", "copy.pt", None) == b"weights"
    in_home = sorted(path.name for path in (tmp_path / name / "artifacts").rglob("*.pt"))
    assert in_home == ["copy.pt", "new.pt"]
    store.delete_run(new_run)
    assert old.is_file()
    assert not store.is_empty()
    store.delete(run, "checkpoints", "old.pt")
    assert not old.exists()
    store.delete_run(run)
    assert store.is_empty()


def test_file_in_home_has_precedence_over_one_of_an_earlier_version(tmp_path: Path) -> None:
    _, run = _store(tmp_path / "my%20runs", "a.pt", b"old")
    store = ArtifactStore(Settings(home=tmp_path / "my runs").artifacts)
    (tmp_path / "a.pt").write_bytes(b"new")
    store.put(tmp_path / "a.pt", run, "checkpoints")
    assert store.read(run, "checkpoints", "a.pt", None) == b"new"


def test_database_of_earlier_versions_is_found_next_to_home_in_use(tmp_path: Path) -> None:
    _create_database(Settings(home=tmp_path / "a b").database)
    home = tmp_path / "a%20b"
    assert Settings(home=home).sqlite_file == home / "callboard.sqlite3", "another installation's"
    (home / "runs").mkdir(parents=True)
    assert Settings(home=home).sqlite_file == tmp_path / "a b" / "callboard.sqlite3"
    (home / "callboard.sqlite3").touch()
    assert Settings(home=home).sqlite_file == home / "callboard.sqlite3"


def test_slots_are_left_to_the_worker_if_unset_or_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CALLBOARD_SLOTS", raising=False)
    assert Settings().slots is None
    monkeypatch.setenv("CALLBOARD_SLOTS", "")  # as a compose file passes a variable that is not set
    assert Settings().slots is None
    monkeypatch.setenv("CALLBOARD_SLOTS", "3")
    assert Settings().slots == 3
