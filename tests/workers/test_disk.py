import errno
from pathlib import Path

from workers.disk import Disk


def test_host_claims_nothing_for_a_while_after_a_fault_of_its_disk(tmp_path: Path) -> None:
    now_s = [0.0]
    disk = Disk(tmp_path / "runs", 0, clock=lambda: now_s[0])
    assert disk.read()["disk_problem"] is None
    disk.record_fault(errno.EIO)
    now_s[0] = 59.0
    assert disk.read()["disk_problem"] == "Input/output error: claims no runs for 60 s"
    now_s[0] = 60.0
    assert disk.read()["disk_problem"] is None
