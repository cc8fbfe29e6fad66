"""A file is absent or complete, whatever happens."""

import os
from pathlib import Path

import pytest

from workers.engine.files import replacing


def test_replacing_swaps_in_the_new_file(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file.txt"
    for content in ("old", "new"):
        with replacing(path) as partial:
            partial.write_text(content)
            assert partial.suffix == path.suffix
            assert path.exists() == (content == "new")
        assert path.read_text() == content
    assert os.listdir(path.parent) == ["file.txt"]


def test_replacing_leaves_the_old_file_after_an_error(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")
    with pytest.raises(NotADirectoryError, match="nowhere"), replacing(path) as partial:
        _fail_half_way(partial)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file.txt"]


def _fail_half_way(partial: Path) -> None:
    partial.write_text("ne")
    (partial / "nowhere").read_text()
