"""Files that a job reads."""

from pathlib import Path

import pytest

from backend.coordination.context import Context
from backend.db.base import new_id
from workers import resume
from workers.engine.files import file_sha256

pytestmark = pytest.mark.service


def test_file_that_the_store_has_lost_is_that_of_this_host_if_it_is_intact(context: Context) -> None:
    owner = new_id()
    kept = context.run_dir(owner) / "replays" / "e.npz"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"replay")
    for name, sha256, is_intact in (("job", file_sha256(kept), True), ("other", "0" * 64, False)):
        folder: Path = context.run_dir(owner) / "jobs" / name
        folder.mkdir(parents=True)
        assert resume.fetch_into(context, owner, "replays", "e.npz", sha256, folder) is is_intact
        assert (folder / "e.npz").exists() is is_intact
