"""The engine as a process of its own: how it ends, and what is left behind."""

import errno
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from backend.specs import machine_faults
from backend.specs.events import CheckpointSavedEvent, EndedEvent, ReportEvent, StartingEvent
from tests.support.engine_process import await_event, logged
from tests.support.waiting import PATIENCE_S
from tests.workers.engine.training.training_runs import cartpole, only

pytestmark = pytest.mark.service


def start_engine(run_dir: Path, *more: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "workers.engine", "train", str(run_dir), *more])


def at_work(run_dir: Path) -> tuple[subprocess.Popen[bytes], list[psutil.Process]]:
    """An engine that has kept a checkpoint, and its processes."""
    spec = cartpole({"wall_time_s": 200}, n_w=2, checkpoint_interval_s=1)
    (run_dir / "spec.json").write_text(spec.model_dump_json())
    engine = start_engine(run_dir)
    await_event(engine, run_dir, CheckpointSavedEvent)
    parts = psutil.Process(engine.pid).children(recursive=True)
    assert len(parts) == 4, "two workers, the fork server, Python's resource tracker"
    return engine, parts


@pytest.mark.long
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_engine_process_ends_by_signal_with_all_it_started(tmp_path: Path, how: signal.Signals) -> None:
    engine, parts = at_work(tmp_path)
    engine.send_signal(how)
    assert engine.wait(timeout=PATIENCE_S) == (0 if how == signal.SIGTERM else -signal.SIGKILL)
    said = logged(tmp_path, 1)
    assert isinstance(said[0], StartingEvent)
    assert said[0].phase == "importing packages"
    if how == signal.SIGTERM:
        assert said[-1] == said[-1].model_copy(update={"state": "stopped", "reason": "stopped by SIGTERM"})
    else:
        assert not only(EndedEvent, said)
    assert psutil.wait_procs(parts, timeout=PATIENCE_S)[1] == []


def test_bad_specification_exits_with_2(tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text(json.dumps({"algorithm": "paac", "environment": "os:system"}))
    assert start_engine(tmp_path).wait(timeout=PATIENCE_S) == 2
    assert not (tmp_path / "attempts").exists()


@pytest.mark.long
def test_full_disk_ends_the_engine_with_its_status_and_leaves_no_partial_file(tmp_path: Path) -> None:
    """It is the machine's doing: no final event, and a supervisor queues the run again."""
    # Its one checkpoint is the one that it keeps when it is stopped.
    spec = cartpole({"wall_time_s": 600}, n_w=1, checkpoint_interval_s=3_600)
    (tmp_path / "spec.json").write_text(spec.model_dump_json())
    engine = start_engine(tmp_path)
    await_event(engine, tmp_path, ReportEvent)
    # No file grows further than this: enough for the log, too little for a checkpoint.
    resource.prlimit(engine.pid, resource.RLIMIT_FSIZE, (100_000, 100_000))
    engine.send_signal(signal.SIGTERM)
    assert machine_faults.errno_of_exit_status(engine.wait(timeout=PATIENCE_S)) == errno.EFBIG
    assert not only(EndedEvent, logged(tmp_path, 1))
    assert os.listdir(tmp_path / "checkpoints") == []


@pytest.mark.long
def test_damaged_checkpoint_ends_the_engine_with_its_status_and_no_final_event(tmp_path: Path) -> None:
    """It was intact when the supervisor checked it: the run is queued again, and not failed."""
    (tmp_path / "spec.json").write_text(cartpole({"agent_steps": 1}).model_dump_json())
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "a1-s000000000001.pt").write_bytes(b"torn")
    engine = start_engine(tmp_path, "--attempt", "2", "--resume", "a1-s000000000001.pt")
    assert engine.wait(timeout=PATIENCE_S) == machine_faults.UNREADABLE_CHECKPOINT_STATUS
    assert not only(EndedEvent, logged(tmp_path, 2))


def test_full_disk_at_the_start_ends_the_engine_with_its_status(tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text(cartpole({"agent_steps": 1}).model_dump_json())
    (tmp_path / "attempts" / "1").mkdir(parents=True)
    (tmp_path / "attempts" / "1" / "events.log").symlink_to("/dev/full")
    status = start_engine(tmp_path).wait(timeout=PATIENCE_S)
    assert machine_faults.errno_of_exit_status(status) == errno.ENOSPC


@pytest.mark.long
def test_killed_rollout_worker_ends_the_engine_for_a_resume(tmp_path: Path) -> None:
    """A signal is the machine's doing: no last word, and a supervisor queues the run again."""
    engine, parts = at_work(tmp_path)
    parts[-1].kill()  # those that the fork server started come last
    assert engine.wait(timeout=PATIENCE_S) == -signal.SIGKILL
    assert not only(EndedEvent, logged(tmp_path, 1))
    assert psutil.wait_procs(parts, timeout=PATIENCE_S)[1] == []
