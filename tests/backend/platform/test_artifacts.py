import errno
import os
import socket
from pathlib import Path

import pytest
from fsspec.core import url_to_fs
from s3fs import S3FileSystem

from backend.db.base import new_id
from backend.platform.artifacts import ArtifactStore, InvalidKey, StoreUnavailable

RUN = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


@pytest.fixture(params=["folder", pytest.param("s3", marks=pytest.mark.service)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "folder":
        return (tmp_path / "store").as_uri()
    s3: str = request.getfixturevalue("s3_url")
    return s3


@pytest.fixture
def store(url: str) -> ArtifactStore:
    return ArtifactStore(url)


def _file(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def test_put_file_is_returned_by_get_open_and_size(store: ArtifactStore, tmp_path: Path) -> None:
    store.put(_file(tmp_path, "a.pt", b"weights"), RUN, "checkpoints")
    assert store.size_bytes(RUN, "checkpoints", "a.pt") == 7
    with store.open(RUN, "checkpoints", "a.pt") as file:
        file.seek(3)
        assert file.read() == b"ghts"
    local = store.get(RUN, "checkpoints", "a.pt", tmp_path / "elsewhere")
    assert local.read_bytes() == b"weights"
    assert sorted(p.name for p in local.parent.iterdir()) == ["a.pt"]


def test_put_replaces_file_and_leaves_no_temporary_file(
    store: ArtifactStore, url: str, tmp_path: Path
) -> None:
    for content in (b"first", b"second"):
        store.put(_file(tmp_path, "a.npz", content), RUN, "replays")
    with store.open(RUN, "replays", "a.npz") as file:
        assert file.read() == b"second"
    files, root = url_to_fs(url, use_listings_cache=False)
    assert [Path(path).name for path in files.find(root)] == ["a.npz"]


def test_file_takes_space_once_in_folder_on_same_file_system(tmp_path: Path) -> None:
    store, other = ArtifactStore((tmp_path / "store").as_uri()), new_id()
    local = _file(tmp_path, "a.pt", b"weights")
    store.put(local, RUN, "checkpoints")
    store.put(local, RUN, "checkpoints")
    store.copy(RUN, "checkpoints", "a.pt", other, "b.pt")
    fetched = store.get(other, "checkpoints", "b.pt", tmp_path / "elsewhere")
    assert fetched.stat().st_ino == local.stat().st_ino
    assert local.stat().st_nlink == 4, "the local file, two keys and the fetched file"
    store.delete(RUN, "checkpoints", "a.pt")
    local.unlink()
    with store.open(other, "checkpoints", "b.pt") as file:
        assert file.read() == b"weights"


@pytest.mark.parametrize("number", [errno.EXDEV, errno.EPERM, errno.EMLINK])
def test_put_copies_where_hard_links_are_impossible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(source: object, target: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refuse)
    store = ArtifactStore((tmp_path / "store").as_uri())
    local = _file(tmp_path, "a.pt", b"weights")
    store.put(local, RUN, "checkpoints")
    assert local.stat().st_nlink == 1
    assert store.get(RUN, "checkpoints", "a.pt", tmp_path / "elsewhere").read_bytes() == b"weights"
    assert not list(tmp_path.rglob(".a.pt*"))


def test_failed_put_keeps_old_file(store: ArtifactStore, tmp_path: Path) -> None:
    path = _file(tmp_path, "a.npz", b"first")
    store.put(path, RUN, "replays")
    path.unlink()
    with pytest.raises(FileNotFoundError):
        store.put(path, RUN, "replays")
    assert store.size_bytes(RUN, "replays", "a.npz") == 5


def test_open_size_and_get_raise_for_missing_file(store: ArtifactStore, tmp_path: Path) -> None:
    for action in (
        lambda: store.open(RUN, "videos", "a.mp4"),
        lambda: store.size_bytes(RUN, "videos", "a.mp4"),
        lambda: store.get(RUN, "videos", "a.mp4", tmp_path),
    ):
        with pytest.raises(FileNotFoundError):
            action()
    assert not list(tmp_path.glob(".a.mp4*"))
    store.delete(RUN, "videos", "a.mp4")


def test_delete_run_deletes_files_of_that_run_only(store: ArtifactStore, tmp_path: Path) -> None:
    other = new_id()
    path = _file(tmp_path, "a.mp4", b"x")
    for run in (RUN, other):
        store.put(path, run, "videos")
    store.delete_run(RUN)
    store.delete_run(RUN)
    with pytest.raises(FileNotFoundError):
        store.size_bytes(RUN, "videos", "a.mp4")
    assert store.size_bytes(other, "videos", "a.mp4") == 1


@pytest.mark.parametrize(
    ("run", "file"),
    [
        ("../" + RUN[3:], "a.pt"),
        (RUN.lower(), "a.pt"),
        (RUN, "../a.pt"),
        (RUN, "/etc/passwd"),
        (RUN, ".hidden"),
        (RUN, ""),
        (RUN, "a\nb"),
        (RUN, "a" * 201),
    ],
)
def test_open_raises_for_names_that_could_leave_the_store(store: ArtifactStore, run: str, file: str) -> None:
    with pytest.raises(InvalidKey):
        store.open(run, "checkpoints", file)


def test_copy_creates_same_file_in_another_run(store: ArtifactStore, tmp_path: Path) -> None:
    other = new_id()
    store.put(_file(tmp_path, "a.pt", b"weights"), RUN, "checkpoints")
    store.copy(RUN, "checkpoints", "a.pt", other, "b.pt")
    with store.open(other, "checkpoints", "b.pt") as file:
        assert file.read() == b"weights"
    assert store.size_bytes(RUN, "checkpoints", "a.pt") == 7
    with pytest.raises(FileNotFoundError):
        store.copy(RUN, "checkpoints", "none.pt", other, "c.pt")


def test_folder_that_cannot_be_used_is_unavailable_and_not_empty(tmp_path: Path) -> None:
    store = ArtifactStore((tmp_path / "store").as_uri())
    file = _file(tmp_path, "a.pt", b"weights")
    store.put(file, RUN, "checkpoints")
    (tmp_path / "store").rename(tmp_path / "elsewhere")
    (tmp_path / "store").touch()
    for action in (
        lambda: store.put(file, RUN, "checkpoints"),
        lambda: store.get(RUN, "checkpoints", "a.pt", tmp_path / "here"),
        lambda: store.read(RUN, "checkpoints", "a.pt", None),
        lambda: store.size_bytes(RUN, "checkpoints", "a.pt"),
        lambda: store.copy(RUN, "checkpoints", "a.pt", new_id(), "b.pt"),
    ):
        with pytest.raises(StoreUnavailable):
            action()


@pytest.mark.service
def test_put_raises_store_away_when_bucket_or_server_is_missing(
    s3_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = _file(tmp_path, "a.pt", b"weights")
    with pytest.raises(StoreUnavailable, match="does not exist"):
        ArtifactStore("s3://bucket-that-does-not-exist/lab").put(file, RUN, "checkpoints")
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    S3FileSystem.clear_instance_cache()  # otherwise the connection to the first server is reused
    with pytest.raises(StoreUnavailable):
        ArtifactStore(f"{s3_url}/unreachable").put(file, RUN, "checkpoints")
    S3FileSystem.clear_instance_cache()
