"""Attacks by files of others, and by whoever fills the disk."""

import io
import os
import subprocess
import tarfile
import time
import zipfile
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

import httpx
import numpy as np
import psutil
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary

from backend.analysis.metrics import tfevents
from backend.db.base import new_id
from tests.campaigns.attacks.target import MIB, Report, Target
from tests.support.external import SOURCE
from tests.support.installation import CALLBOARD, Installation, environment
from tests.support.rows import external_request

MAX_IMPORT_MIB = 400
"""Of a command that reads a file of others."""
MAX_ADDRESSES_BYTES = 6 * 2**30
"""Address space of it, so that a fault does not take the memory of this machine."""
ROOM_MIB = 40
"""What may be stored on the disk that is nearly full."""
ENDLESS_MIB = 400
"""What is sent to it at most: more has been refused or was never counted."""


def _check_command(report: Report, arguments: Sequence[str], home: Path) -> str:
    """Run a command of Callboard; it ends by itself, without a traceback and with little memory."""
    process = psutil.Popen(
        [*CALLBOARD, *arguments],
        env=environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    process.rlimit(psutil.RLIMIT_AS, (MAX_ADDRESSES_BYTES, MAX_ADDRESSES_BYTES))
    peak_mib, end = 0.0, monotonic() + 60
    while process.poll() is None and monotonic() < end:
        try:
            peak_mib = max(peak_mib, process.memory_info().rss / MIB)
        except psutil.Error:
            break
        time.sleep(0.02)
    if process.poll() is None:
        process.kill()
        report.problems.append(f"{arguments[0]} does not end")
    output: str = process.communicate()[0].decode(errors="replace")
    report.answers[f"{arguments[0]} exit {process.returncode}"] += 1
    printed = output.strip().splitlines() or ["nothing"]
    report.details += f" {arguments[0]} {peak_mib:.0f} MiB: {printed[-1][:120]};"
    if "Traceback" in output:
        report.problems.append(f"{arguments[0]}: {output.strip().splitlines()[-1][:200]}")
    if peak_mib > MAX_IMPORT_MIB:
        report.problems.append(f"{arguments[0]} used {peak_mib:.0f} MiB")
    return output


def hostile_event_files(target: Target, report: Report) -> None:
    """Event files with tensors of 10^9 and 2^60 elements, times that are none, and a tag of 1 MB."""
    strange = Event(wall_time=float("nan"), step=-1, summary=Summary())
    for n_elements in (10**9, 2**60):
        tensor = strange.summary.value.add(tag="tensor").tensor
        tensor.dtype = 1
        tensor.float_val.append(1.0)
        tensor.tensor_shape.dim.add(size=n_elements)
    strange.summary.value.add(tag="t" * 2**20, simple_value=1.0)
    strange.summary.value.add(tag="loss", simple_value=float("inf"))
    late = Event(wall_time=1e300, step=2**62, summary=Summary())
    late.summary.value.add(tag="loss", simple_value=1.0)
    with TemporaryDirectory() as name:
        folder = Path(name) / "run"
        folder.mkdir()
        records = b"".join(tfevents.record(event.SerializeToString()) for event in (strange, late))
        (folder / "events.out.tfevents.1").write_bytes(records)
        (folder / "events.out.tfevents.2").write_bytes(b"\xff" * 7 + b"\x7f" + os.urandom(1_000))
        _check_command(report, ["import", "tensorboard", name], target.home)


def hostile_backups(target: Target, report: Report) -> None:
    """An archive whose sparse manifest claims 3 GiB, one with a link, and one that names a folder above."""
    header = tarfile.TarInfo("manifest.json")
    header.size = 512
    block = bytearray(header.tobuf(tarfile.GNU_FORMAT))
    size = b"\x80" + (3 * 2**30).to_bytes(11, "big")
    block[156:157], block[257:265] = b"S", b"ustar  \0"
    block[386:410], block[410:422], block[483:495] = b"%011o\0%011o\0" % (0, 512), size, size
    block[148:156] = b" " * 8
    block[148:155] = b"%06o\0" % sum(block)
    with TemporaryDirectory() as name:
        archives = {kind: Path(name) / f"{kind}.tar" for kind in ("sparse", "link", "above")}
        archives["sparse"].write_bytes(bytes(block) + b"x" * 512 + bytes(10_240))
        for kind, member in (("link", tarfile.TarInfo("manifest.json")), ("above", tarfile.TarInfo("../x"))):
            if kind == "link":
                member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
            with tarfile.open(archives[kind], "w") as archive:
                archive.addfile(member, io.BytesIO(b""))
        for kind, path in archives.items():
            home = Path(name) / kind
            _check_command(report, ["restore", str(path)], home)
            if (home / "callboard.sqlite3").exists():
                report.problems.append(f"the archive {kind} was restored")


def archives_of_two_members(target: Target, report: Report) -> None:
    """Frames whose member `frames.npy` is small, beside one called `frames` of 1 GiB."""
    small, whole = io.BytesIO(), io.BytesIO()
    np.save(small, np.zeros((1, 64, 64, 3), np.uint8))
    header = io.BytesIO()
    shape = (2**30 // (512 * 512 * 3), 512, 512, 3)
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("frames.npy", small.getvalue())
        with archive.open("frames", "w", force_zip64=True) as member:
            member.write(header.getvalue())
            for _ in range(2**30 // 2**22):
                member.write(bytes(2**22))
    content = whole.getvalue()
    with httpx.Client(headers={"Authorization": f"Bearer {target.tokens['external']}"}, timeout=60) as client:
        run = client.post(f"{target.url}/api/v1/runs", json=external_request()).json()["items"][0]["id"]
        path, upload = f"{target.url}/api/v1/runs/{run}", new_id()
        answer = client.put(f"{path}/uploads/{upload}", params={"offset": 0}, content=content)
        report.answers[f"upload {answer.status_code}"] += 1
        fields = {"upload": upload, "size_bytes": len(content), "sha256": sha256(content).hexdigest()}
        body = {"source": SOURCE, "sequence": 1, "agent_steps": 1, "wall_time_s": 1.0, "form": "frames"}
        answer = client.post(f"{path}/videos", json=body | fields)
        report.answers[f"video {answer.status_code}"] += 1
    peak_mib, end = 0.0, monotonic() + 8
    while monotonic() < end:  # while a process of the worker encodes it
        for process in target.process("worker").children(recursive=True):
            try:
                peak_mib = max(peak_mib, process.memory_info().rss / MIB)
            except psutil.Error:
                continue
        time.sleep(0.05)
    report.details = f"archive of {len(content):,} bytes; peak of the worker's processes {peak_mib:.0f} MiB"
    if peak_mib > 2 * MAX_IMPORT_MIB:
        report.problems.append(f"a process of the worker used {peak_mib:.0f} MiB")


def logs_until_the_disk_is_full(target: Target, report: Report) -> None:
    """A script logs to an installation on a disk that is nearly full; it is refused, and reads are not."""
    with TemporaryDirectory(prefix="cb-") as name:
        free = psutil.disk_usage(name).free
        full = Installation(Path(name) / "home", slots=1, min_free_disk_bytes=free - ROOM_MIB * MIB)
        try:
            client = full.log_in()
            run = client.post("/api/v1/runs", json=external_request()).json()["items"][0]["id"]
            sent, sequence, status = 0, 0, 200
            line = {"time": "2026-01-01T00:00:00Z", "level": "info", "message": "x" * 1_800}
            while status == 200 and sent < ENDLESS_MIB * MIB:
                sequence += 1
                body = {"source": SOURCE, "sequence": sequence, "lines": [line] * 1_000}
                answer = client.post(f"/api/v1/runs/{run}/log", json=body)
                status, sent = answer.status_code, sent + len(answer.request.content)
            report.answers[f"log {status}"] += 1
            report.details = f"refused after {sent / MIB:.0f} MiB"
            if status not in (429, 503):
                report.problems.append(f"{sent / MIB:.0f} MiB were stored on a disk that is nearly full")
            for path in ("/api/v1/runs", f"/api/v1/runs/{run}", "/api/v1/hosts", "/healthz"):
                read = client.get(path).status_code
                report.answers[f"read {read}"] += 1
                if read != 200:
                    report.problems.append(f"{path} answered {read} while the disk was nearly full")
            if "free some space" not in answer.text and status == 503:
                report.problems.append(f"the refusal does not name the disk: {answer.text[:200]}")
        finally:
            full.stop()


FILES: dict[str, Callable[[Target, Report], None]] = {
    attack.__name__: attack
    for attack in (hostile_event_files, hostile_backups, archives_of_two_members, logs_until_the_disk_is_full)
}
