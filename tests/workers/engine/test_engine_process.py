"""The engine as a process of its own: how it ends, and what is left behind."""

import json
import os
import resource
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from backend.specs.events import (
    AnyEvent,
    CheckpointSaved,
    Ended,
    Report,
)
from tests.workers.engine.training_runs import cartpole, events, only


def start_engine(run_dir: Path, *more: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "workers.engine", "train", str(run_dir), *more])


def wait_for(kind: type[AnyEvent], engine: subprocess.Popen[bytes], run_dir: Path) -> None:
    while not only(kind, events(run_dir, 1)):
        with suppress(subprocess.TimeoutExpired):
            engine.wait(0.1)
        assert engine.returncode is None


def at_work(run_dir: Path) -> tuple[subprocess.Popen[bytes], list[psutil.Process]]:
    """An engine that has kept a checkpoint, and its two workers."""
    spec = cartpole({"wall_time_s": 200}, n_w=2, checkpoint_interval_s=1)
    (run_dir / "spec.json").write_text(spec.model_dump_json())
    engine = start_engine(run_dir)
    wait_for(CheckpointSaved, engine, run_dir)
    parts = psutil.Process(engine.pid).children(recursive=True)
    assert len(parts) == 2
    return engine, parts


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_engine_process_ends_by_signal_with_all_it_started(tmp_path: Path, how: signal.Signals) -> None:
    engine, parts = at_work(tmp_path)
    engine.send_signal(how)
    assert engine.wait(timeout=30) == (0 if how == signal.SIGTERM else -signal.SIGKILL)
    said = events(tmp_path, 1)
    if how == signal.SIGTERM:
        assert said[-1] == said[-1].model_copy(update={"state": "stopped", "reason": "stopped by SIGTERM"})
    else:
        assert not only(Ended, said)
    assert psutil.wait_procs(parts, timeout=10)[1] == []


def test_bad_specification_exits_with_2(tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text(json.dumps({"algorithm": "paac", "environment": "os:system"}))
    assert start_engine(tmp_path).wait(timeout=30) == 2
    assert not (tmp_path / "attempts").exists()


def test_a_disk_that_takes_no_more_fails_the_run_and_leaves_no_half_file(tmp_path: Path) -> None:
    spec = cartpole({"wall_time_s": 200}, n_w=1, checkpoint_interval_s=3)
    (tmp_path / "spec.json").write_text(spec.model_dump_json())
    engine = start_engine(tmp_path)
    wait_for(Report, engine, tmp_path)
    # No file grows further than this: enough for the log, too little for a checkpoint.
    resource.prlimit(engine.pid, resource.RLIMIT_FSIZE, (100_000, 100_000))
    assert engine.wait(timeout=60) == 1
    ended = only(Ended, events(tmp_path, 1))[-1]
    assert (ended.state, ended.reason) == ("failed", "OSError: [Errno 27] File too large")
    assert os.listdir(tmp_path / "checkpoints") == []


def test_a_killed_part_kills_the_engine_so_that_the_run_goes_on(tmp_path: Path) -> None:
    """A signal is the machine's doing: no last word, and a supervisor queues the run again."""
    engine, parts = at_work(tmp_path)
    parts[1].kill()
    assert engine.wait(timeout=30) == -signal.SIGKILL
    assert not only(Ended, events(tmp_path, 1))
    assert psutil.wait_procs(parts, timeout=10)[1] == []
