"""What the client does when the disk of its spool is full or broken.

Nothing is raised into the training loop. What can be kept is sent later, and what cannot is counted.
"""

import errno
import os
import tempfile
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import callboard
from callboard.set_aside import replace_json
from callboard.spool import Spool
from tests.client.support import NOBODY, Target
from tests.support.waiting import PATIENCE_S, until

pytestmark = pytest.mark.long


@pytest.mark.service
def test_video_that_cannot_be_compressed_is_kept_and_sent_later(
    target: Target, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("callboard.background.FIRST_RETRY_S", 0.1)
    monkeypatch.setattr("callboard.background.HEARTBEAT_INTERVAL_S", 0.1)
    had_partial_file: list[bool] = []
    with callboard.init(algorithm="a", environment="e") as run:

        def archive(path: Path, *arguments: Any, **options: Any) -> zipfile.ZipFile:
            if len(had_partial_file) < 2 or not run.stop_requested:
                had_partial_file.append(path.exists())
                path.write_bytes(b"part of an archive")
                raise OSError(errno.ENOSPC, "No space left on device")
            return zipfile.ZipFile(path, *arguments, **options)

        on_full_disk = SimpleNamespace(ZipFile=archive, ZIP_DEFLATED=zipfile.ZIP_DEFLATED)
        monkeypatch.setattr("callboard.uploading.zipfile", on_full_disk)
        run.video(np.zeros((1, 32, 32, 3), np.uint8), agent_steps=5)
        until(lambda: len(had_partial_file) > 1)
        target.client.post(f"/api/v1/runs/{run.id}/stop").raise_for_status()
        assert run.flush(timeout_s=PATIENCE_S), "a heartbeat brings the request while the disk is full"
    assert run.n_dropped == 0
    [video] = target.client.get(f"/api/v1/runs/{run.id}/videos").json()["items"]
    assert (video["agent_steps"], video["error"]) == (5, None)
    assert not any(had_partial_file), "a part of an archive takes no space"
    assert sum("cannot be compressed now" in record.getMessage() for record in caplog.records) == 1, "once"


def test_files_that_cannot_be_written_to_the_spool_are_dropped_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Spool, "file", lambda self, upload: self.folder / "none" / upload)
    path = tmp_path / "model.pt"
    path.write_bytes(b"parameters")
    with callboard.init(algorithm="a", environment="e", url=NOBODY, token="t") as run:
        run.checkpoint(path)
        run.video(np.zeros((1, 32, 32, 3), np.uint8))
        assert run.n_dropped == 2
        path.unlink()
        run.checkpoint(path)
        assert run.n_dropped == 3
    reported = [
        record.getMessage() for record in caplog.records if "dropped and counted" in record.getMessage()
    ]
    assert len(reported) == 2, "once for each reason"
    assert "the spool is full or cannot be written" in reported[0]
    assert "cannot be read" in reported[1]


@pytest.mark.service
def test_values_wait_in_memory_until_the_disk_has_room(
    target: Target, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("callboard.background.WRITE_INTERVAL_S", 0.02)
    monkeypatch.setattr("callboard.background.MAX_BUFFERED_ROWS", 300)
    append, tried = Spool.append, list[bool]()
    is_full = True

    def fail(self: Spool, kind: str, n_rows: int, rows: bytes) -> None:
        tried.append(is_full)
        if is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        append(self, kind, n_rows, rows)

    monkeypatch.setattr(Spool, "append", fail)
    with callboard.init(algorithm="a", environment="e") as run:
        for step in range(1, 101):
            run.log({"loss/a": step, "loss/b": -step}, agent_steps=step)
            if step % 10 == 0:
                run.episode(step, 10, agent_steps=step)
                until(lambda: len(tried) > run.agent_steps // 10)  # once more since the last ten steps
        assert run.n_dropped == 0
        run.log({f"n/{n}": 0.0 for n in range(100)}, agent_steps=100)
        assert run.dropped == {"the buffer is full": 100}
        is_full = False
        run.log({"loss/a": 101.0}, agent_steps=101)
        assert run.flush(PATIENCE_S)
        is_full = True
        run.log({"loss/a": 102.0}, agent_steps=102)
    assert run.dropped == {"the buffer is full": 100, "the spool is full or cannot be written": 1}
    points = {name: [float(row["value"]) for row in rows] for name, rows in target.points(run.id).items()}
    assert points["loss/a"] == [*range(1, 102)]
    assert points["loss/b"] == [*range(-1, -101, -1)]
    assert points["rollout/episode_return"] == [*range(10, 101, 10)]
    assert sum("waits in memory" in record.getMessage() for record in caplog.records) == 1, "once an outage"


@pytest.fixture
def disks(tmp_path: Path, spools: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """The folders in which `init` tries to create a spool, by name and in this order."""
    folders = {"home": spools, "temporary": tmp_path / "temporary", "memory": tmp_path / "memory"}
    for folder in folders.values():
        folder.mkdir(exist_ok=True)
    monkeypatch.setattr(tempfile, "tempdir", str(folders["temporary"]))
    monkeypatch.setattr("callboard.starting._MEMORY", folders["memory"], raising=False)
    return folders


def fill(monkeypatch: pytest.MonkeyPatch, *folders: Path) -> None:
    """Let no manifest be written below these folders, as on a full disk."""

    def fail(path: Path, content: dict[str, Any], *, is_durable: bool = False) -> None:
        if any(folder in path.parents for folder in folders):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        replace_json(path, content, is_durable=is_durable)

    monkeypatch.setattr("callboard.spool.replace_json", fail)


@pytest.mark.parametrize("full", [["home"], ["home", "temporary"]])
def test_full_disk_at_init_moves_the_spool_to_a_folder_that_has_room(
    disks: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    full: list[str],
) -> None:
    fill(monkeypatch, *(disks[name] for name in full))
    with callboard.init(algorithm="a", environment="e", url=NOBODY, token="t") as run:
        run.log({"loss/policy": 1.0}, agent_steps=1)
    assert run.n_dropped == 0
    used = next(folder for name, folder in disks.items() if name not in full)
    [root] = used.iterdir()
    assert root.name.startswith("callboard-spool-")
    assert len([*root.glob("*/*.log")]) == 1
    assert all([*folder.iterdir()] == [] for folder in disks.values() if folder != used)
    messages = [record.getMessage() for record in caplog.records if "what is not sent" in record.getMessage()]
    assert len(messages) == 1
    assert messages[0].count("No space left on device") == len(full)
    assert messages[0].endswith(f"; what is not sent is kept in {root}")


def test_init_without_any_folder_that_has_room_raises_with_what_to_do(
    disks: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(monkeypatch, *disks.values())
    remedy = "free some space, or set CALLBOARD_HOME to a folder that can be written"
    with pytest.raises(OSError, match=f"^what is logged can be kept nowhere: .*: {remedy}$") as error:
        callboard.init(algorithm="a", environment="e", url=NOBODY, token="t")
    assert str(error.value).count("No space left on device") == 3
    assert all([*folder.iterdir()] == [] for folder in disks.values()), "nothing of it remains"
