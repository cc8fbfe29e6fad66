"""Checkpoints are whole or absent, and never run code."""

import os
import pickle
from pathlib import Path

import pytest
import torch

from workers.engine import checkpoint


def test_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    path = tmp_path / "checkpoints" / checkpoint.file_name(2, 640)
    digest, size = checkpoint.save(path, {"learner": {"theta": torch.arange(5.0)}, "returns": [1.5, None]})
    assert path.stat().st_size == size
    assert len(digest) == 64
    state = checkpoint.load(path)
    assert torch.equal(state["learner"]["theta"], torch.arange(5.0))
    assert state["returns"] == [1.5, None]
    assert os.listdir(path.parent) == [path.name]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a1-s000000000001.pt"
    checkpoint.save(path, {"n": 1})

    def full(fd: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="disk full"):
        checkpoint.save(path, {"n": 2})
    assert checkpoint.load(path)["n"] == 1
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("damage", ["torn", "empty", "flipped", "other"])
def test_damage_is_seen(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "a1-s000000000001.pt"
    checkpoint.save(path, {"theta": torch.randn(1000)})
    content = bytearray(path.read_bytes())
    if damage == "flipped":
        content[len(content) // 2] ^= 0xFF
    path.write_bytes(
        {"torn": content[:-100], "empty": b"", "flipped": content, "other": b"not a checkpoint"}[damage]
    )
    with pytest.raises(checkpoint.DamagedCheckpointError):
        checkpoint.load(path)


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch evil",)


def test_code_in_a_checkpoint_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"format": checkpoint.FORMAT, "x": Evil()}, tmp_path / "zip.pt")
    (tmp_path / "raw.pt").write_bytes(pickle.dumps(Evil()))
    for name in ("zip.pt", "raw.pt"):
        with pytest.raises(checkpoint.DamagedCheckpointError):
            checkpoint.load(tmp_path / name)
    assert not (tmp_path / "evil").exists()


def test_newest_skips_damage(tmp_path: Path) -> None:
    assert checkpoint.newest(tmp_path) is None
    for attempt, steps in ((1, 100), (1, 300), (2, 200)):
        checkpoint.save(tmp_path / checkpoint.file_name(attempt, steps), {})
    (tmp_path / checkpoint.file_name(2, 400)).write_bytes(b"torn")
    assert checkpoint.newest(tmp_path) == checkpoint.file_name(1, 300)
