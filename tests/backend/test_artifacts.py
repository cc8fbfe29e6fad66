import socket
from pathlib import Path

import pytest

from backend.artifacts import ArtifactStore, InvalidKey, StoreAway
from backend.db.ids import new_id

RUN = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


@pytest.fixture(params=["folder", pytest.param("s3", marks=pytest.mark.service)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ArtifactStore:
    if request.param == "folder":
        return ArtifactStore((tmp_path / "store").as_uri())
    return ArtifactStore(request.getfixturevalue("s3_url"))


def _file(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def test_put_get_open_size(store: ArtifactStore, tmp_path: Path) -> None:
    store.put(_file(tmp_path, "a.pt", b"weights"), RUN, "checkpoints")
    assert store.size_bytes(RUN, "checkpoints", "a.pt") == 7
    with store.open(RUN, "checkpoints", "a.pt") as file:
        file.seek(3)
        assert file.read() == b"ghts"
    local = store.get(RUN, "checkpoints", "a.pt", tmp_path / "elsewhere")
    assert local.read_bytes() == b"weights"
    assert sorted(p.name for p in local.parent.iterdir()) == ["a.pt"]


def test_put_replaces_and_leaves_no_temporary_file(store: ArtifactStore, tmp_path: Path) -> None:
    for content in (b"first", b"second"):
        store.put(_file(tmp_path, "a.npz", content), RUN, "replays")
    with store.open(RUN, "replays", "a.npz") as file:
        assert file.read() == b"second"
    assert [Path(p).name for p in store._fs.ls(f"{store._root}/runs/{RUN}/replays", detail=False)] == [
        "a.npz"
    ]


def test_failed_put_leaves_the_old_file(store: ArtifactStore, tmp_path: Path) -> None:
    path = _file(tmp_path, "a.npz", b"first")
    store.put(path, RUN, "replays")
    path.unlink()
    with pytest.raises(FileNotFoundError):
        store.put(path, RUN, "replays")
    assert store.size_bytes(RUN, "replays", "a.npz") == 5


def test_missing_file(store: ArtifactStore, tmp_path: Path) -> None:
    for action in (
        lambda: store.open(RUN, "videos", "a.mp4"),
        lambda: store.size_bytes(RUN, "videos", "a.mp4"),
        lambda: store.get(RUN, "videos", "a.mp4", tmp_path),
    ):
        with pytest.raises(FileNotFoundError):
            action()
    assert not list(tmp_path.glob(".a.mp4*"))
    store.delete(RUN, "videos", "a.mp4")


def test_delete_run_takes_everything_of_that_run_only(store: ArtifactStore, tmp_path: Path) -> None:
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
def test_names_that_could_leave_the_store_are_refused(store: ArtifactStore, run: str, file: str) -> None:
    with pytest.raises(InvalidKey):
        store.open(run, "checkpoints", file)


def test_copy_to_another_run(store: ArtifactStore, tmp_path: Path) -> None:
    other = new_id()
    store.put(_file(tmp_path, "a.pt", b"weights"), RUN, "checkpoints")
    store.copy(RUN, "checkpoints", "a.pt", other, "b.pt")
    with store.open(other, "checkpoints", "b.pt") as file:
        assert file.read() == b"weights"
    assert store.size_bytes(RUN, "checkpoints", "a.pt") == 7
    with pytest.raises(FileNotFoundError):
        store.copy(RUN, "checkpoints", "none.pt", other, "c.pt")


@pytest.mark.service
def test_a_store_that_is_away_is_no_missing_file(
    s3_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = _file(tmp_path, "a.pt", b"weights")
    with pytest.raises(StoreAway, match="no such place"):
        ArtifactStore("s3://nobody-made-this-bucket/lab").put(file, RUN, "checkpoints")
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    away = ArtifactStore(f"{s3_url}/away")
    away._fs.clear_instance_cache()
    with pytest.raises(StoreAway):
        ArtifactStore(f"{s3_url}/away").put(file, RUN, "checkpoints")
    away._fs.clear_instance_cache()
