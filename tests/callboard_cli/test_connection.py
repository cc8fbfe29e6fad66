from collections.abc import Iterator
from pathlib import Path

import pytest

from callboard_cli.connection import save


def test_file_is_replaced_only_by_a_whole_download(tmp_path: Path) -> None:
    target = tmp_path / "points.csv"
    target.write_bytes(b"former")

    def broken() -> Iterator[bytes]:
        yield b"first part"
        raise ConnectionError

    with pytest.raises(ConnectionError):
        save(broken(), target)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("points.csv", b"former")]
    save([b"first", b" second"], target)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [
        ("points.csv", b"first second")
    ]
