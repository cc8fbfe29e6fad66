"""Spools that a disk or a loss of power has damaged.

The law: a spool is cut at its first bad frame. What is before it is stored, once, and the rest is set aside.
"""

import errno
import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import callboard
from callboard.__main__ import run_client
from callboard.manifest import Manifest, SpoolUnreadable
from callboard.set_aside import DAMAGED
from callboard.spool import MAX_REQUEST_ROWS, SEGMENT_BYTES, Request, Spool, new_ulid
from tests.client.support import NOBODY, Target

N_FRAMES = 4
N_ROWS = 3
"""Rows of a frame."""


@dataclass
class Server:
    """Stores a sequence number once, and refuses one that is too high."""

    n_stored: int = 0
    rows: list[int] = field(default_factory=list)

    def post(self, spool: Spool, request: Request) -> Request:
        """Store a request; it is returned as it was stored."""
        if request.sequence > self.n_stored + 1:
            request = spool.renumber(request, self.n_stored + 1)
        if request.sequence == self.n_stored + 1:
            self.n_stored += 1
            self.rows += json.loads(request.rows)
        return request


def write(root: Path, *, n_frames: int = N_FRAMES) -> Path:
    """The folder of a spool whose process has ended, with the rows 0, 1, 2 and so on."""
    manifest = Manifest(new_ulid(), NOBODY, "0" * 26, None, "a e")
    spool = Spool.create(manifest, root)
    for first in range(0, n_frames * N_ROWS, N_ROWS):
        spool.append("log", N_ROWS, json.dumps([*range(first, first + N_ROWS)]).encode())
    spool.close()
    return spool.folder


def send(folder: Path, server: Server) -> dict[str, int]:
    """Send a spool; return what is set aside, by reason."""
    spool = Spool.open(folder)
    assert spool is not None
    while (request := spool.next()) is not None:
        spool.confirm(server.post(spool, request), stored=True)
    kept = spool.refusals()
    assert spool.finish() is not bool(kept)
    assert folder.exists() is bool(kept), "deleted if it was sent as a whole, and only then"
    return kept


def damages(content: bytes) -> Iterator[tuple[str, bytes]]:
    """One changed bit, zeros up to the end, and a byte more or less, at places of all frames."""
    for at in (*range(12), *range(12, len(content), 11), len(content) - 1):
        changed = bytearray(content)
        changed[at] ^= 1 << at % 8
        yield f"bit of byte {at}", bytes(changed)
    for at in range(0, len(content), 17):
        yield f"zeros from {at}", content[:at] + bytes(len(content) - at)
        yield (
            f"zeros from {at} on for 20 bytes",
            (content[:at] + bytes(20) + content[at + 20 :])[: len(content)],
        )
    for at in range(0, len(content), 23):
        yield f"without byte {at}", content[:at] + content[at + 1 :]
        yield f"one more at {at}", content[:at] + b"x" + content[at:]


def n_rows_before(whole: bytes, content: bytes) -> int:
    """The rows of the frames before the first one that a change has not left as it was."""
    offset = n_rows = 0
    while offset < len(whole):
        end = offset + 8 + int.from_bytes(whole[offset : offset + 4], "little")
        if content[offset:end] != whole[offset:end]:
            break
        offset, n_rows = end, n_rows + N_ROWS
    return n_rows


@pytest.mark.parametrize("segment_bytes", [100, SEGMENT_BYTES])
def test_spool_is_cut_at_its_first_bad_frame_and_the_rest_is_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, segment_bytes: int
) -> None:
    monkeypatch.setattr("callboard.spool.SEGMENT_BYTES", segment_bytes)
    folder = write(tmp_path)
    segments = sorted(folder.glob("*.log"))
    copy = tmp_path / "copy"
    first = 0
    for segment in segments:
        whole = segment.read_bytes()
        for what, content in damages(whole):
            shutil.copytree(folder, copy)
            (copy / segment.name).write_bytes(content)
            server = Server()
            kept = send(copy, server)
            n_intact = first + n_rows_before(whole, content)
            if content.startswith(whole):  # a byte more, behind the last frame
                n_intact = len(server.rows)
            assert server.rows == [*range(n_intact)], (segment.name, what)
            is_torn = segment == segments[-1] and what == f"without byte {len(whole) - 1}"
            assert bool(kept.get(DAMAGED)) is (n_intact < N_FRAMES * N_ROWS and not is_torn), what
            shutil.rmtree(copy, ignore_errors=True)
        first += n_rows_before(whole, whole)


@pytest.mark.parametrize("n_joined", [1, N_FRAMES])
@pytest.mark.parametrize("was_stored", [False, True])
def test_request_whose_answer_was_lost_is_neither_doubled_nor_lost_by_damage(
    tmp_path: Path, was_stored: bool, n_joined: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MAX_REQUEST_ROWS, "log", n_joined * N_ROWS)
    folder = write(tmp_path)
    spool = Spool.open(folder)
    assert spool is not None
    request = spool.next()
    assert request is not None
    server = Server()
    if was_stored:
        server.post(spool, request)
    spool.append("log", N_ROWS, json.dumps([*range(12, 15)]).encode())
    spool.close()
    whole = (folder / "00000001.log").read_bytes()
    copy = tmp_path / "copy"
    for what, content in damages(whole):
        if "more" in what or "without" in what:
            continue  # a disk moves no bytes
        shutil.copytree(folder, copy)
        (copy / "00000001.log").write_bytes(content)
        after = Server(server.n_stored, list(server.rows))
        kept = send(copy, after)
        missing = set(range(15)) - {*after.rows}
        assert len(after.rows) == len({*after.rows}), what
        assert not missing or kept.get(DAMAGED), what
        assert {*range(n_rows_before(whole, content))} <= {*after.rows}, what
        shutil.rmtree(copy, ignore_errors=True)


def delete_lock(folder: Path) -> None:
    (folder / "lock").unlink()


def empty_manifest(folder: Path) -> None:
    (folder / "run.json").write_bytes(b"")


def empty_request(folder: Path) -> None:
    (folder / "request.json").write_bytes(b"")


@pytest.mark.parametrize("damage", [delete_lock, empty_manifest, empty_request])
def test_spool_that_cannot_be_read_is_listed_until_it_is_discarded(
    tmp_path: Path,
    damage: Callable[[Path], None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = write(tmp_path)
    damage(folder)
    with pytest.raises(SpoolUnreadable):
        Spool.open(folder)
    for _ in range(2):
        done = callboard.sync(tmp_path)
        assert [(kept.run, kept.n_rows, kept.folder) for kept in done.refused] == [(folder.name, 12, folder)]
        assert (done.n_spools, done.n_remaining) == (0, 1)
    monkeypatch.setattr("sys.argv", ["callboard", "sync", "--folder", str(tmp_path)])
    assert run_client() == 1
    assert f"run {folder.name}: 12 rows are set aside" in capsys.readouterr().err
    assert callboard.sync(tmp_path, run="0" * 26).refused == [], "whose it is is not known"
    assert callboard.discard(folder.name, tmp_path) == 12
    assert not folder.exists()


def test_spool_that_cannot_be_locked_is_listed_and_never_discarded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script may use it, and it can be sent once files can be locked."""
    folder = write(tmp_path)
    (tmp_path / "begins").mkdir()
    (tmp_path / "begins" / "lock").touch()

    def fails(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", fails)
        done = callboard.sync(tmp_path)
        assert [(kept.run, kept.reason) for kept in done.refused] == [
            (folder.name, "it cannot be locked: No locks available")
        ]
        assert done.n_remaining == 1
        assert callboard.discard(folder.name, tmp_path) == 0
    assert len(send(folder, Server())) == 0


@pytest.mark.parametrize("names", [[], ["lock"], ["lock", "run.json"], ["notes.txt"]])
def test_folder_without_anything_logged_is_no_spool(tmp_path: Path, names: list[str]) -> None:
    folder = tmp_path / "x"
    folder.mkdir()
    for name in names:
        (folder / name).touch()
    done = callboard.sync(tmp_path)
    assert (done.refused, done.n_remaining, done.problems) == ([], 0, [])


@pytest.mark.service
def test_rows_from_damage_on_are_set_aside_and_reported(target: Target, tmp_path: Path) -> None:
    run = callboard.init(algorithm="a", environment="e")
    run.close()
    spool = Spool.create(Manifest(new_ulid(), target.service.url, run.id, None, "a e"), tmp_path)
    for step in range(5):
        row = {"metric": "loss/policy", "agent_steps": [step], "wall_time_s": [1.0], "value": [1.0]}
        spool.append("points", 1, json.dumps([row | {"frames": None}]).encode())
    content = bytearray((spool.folder / "00000001.log").read_bytes())
    content[len(content) // 2] ^= 1
    (spool.folder / "00000001.log").write_bytes(bytes(content))
    spool.close()
    done = callboard.sync(tmp_path)
    assert (done.n_spools, done.n_rows, done.n_refused, done.problems) == (0, 2, 3, [])
    [kept] = done.refused
    assert (kept.run, kept.n_rows, kept.reason) == (run.id, 3, DAMAGED)
