"""What an attempt is trained with, as its first event reports it."""

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from backend.specs.events import ProvenanceEvent, StartedEvent
from backend.specs.run import parse_run_spec
from tests.support import nvml
from tests.support.nvml import FakeGpu, FakeNvml
from tests.workers.engine.training.training_runs import cartpole, only, train
from workers.engine.training import provenance

ROOT = Path(__file__).resolve().parents[4]


def _git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_commit_is_that_of_the_checkout_and_dirty_with_changed_tracked_files(tmp_path: Path) -> None:
    (tmp_path / "tracked").write_text("as committed")
    _git(tmp_path, "init")
    _git(tmp_path, "add", "tracked")
    _git(tmp_path, "commit", "--message", "a")
    head = _git(tmp_path, "rev-parse", "HEAD")
    assert provenance.commit_of(tmp_path) == (head, False)
    (tmp_path / "untracked").write_text("notes")
    assert provenance.commit_of(tmp_path) == (head, False)
    (tmp_path / "tracked").write_text("changed")
    assert provenance.commit_of(tmp_path) == (head, True)
    installed = tmp_path / "venv"
    installed.mkdir()
    assert provenance.commit_of(installed) == (None, None), "an installed package is of no checkout"


def test_checkout_that_git_cannot_read_has_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert provenance.commit_of(tmp_path) == (None, None)


def test_first_event_is_the_provenance_of_this_process(tmp_path: Path) -> None:
    logged = train(cartpole({"agent_steps": 40}, n_w=1), tmp_path)
    first = logged[0]
    [started] = only(StartedEvent, logged)
    assert isinstance(first, ProvenanceEvent)
    provenance = first.provenance
    assert provenance.commit == (_git(ROOT, "rev-parse", "HEAD") if (ROOT / ".git").exists() else None)
    assert (provenance.dirty is None) == (provenance.commit is None)
    assert provenance.version == metadata.version("callboard")
    assert provenance.packages["torch"] == metadata.version("torch")
    assert provenance.packages["python"] == ".".join(map(str, sys.version_info[:3]))
    assert provenance.command == sys.orig_argv
    assert provenance.cpu_count == len(os.sched_getaffinity(0))
    assert (
        provenance.processor in Path("/proc/cpuinfo").read_text()
        or provenance.processor == os.uname().machine
    )
    assert (provenance.device, provenance.rollout_workers) == (None, None)
    assert (started.device, started.rollout_workers, started.versions) == ("cpu", 1, provenance.packages)


@pytest.mark.service
def test_rollout_workers_are_those_that_the_cores_allow(tmp_path: Path) -> None:
    [started] = only(StartedEvent, train(cartpole({"agent_steps": 40}, n_w=4), tmp_path))
    assert started.rollout_workers == min(4, len(os.sched_getaffinity(0)))


def test_method_without_rollout_workers_reports_none(tmp_path: Path) -> None:
    request = {"algorithm": "dqn", "environment": "CartPole-v1", "config": {"evaluation_episodes": 0}}
    spec = parse_run_spec(request | {"stop": {"agent_steps": 8}})
    [started] = only(StartedEvent, train(spec, tmp_path))
    assert started.rollout_workers is None


def test_gpus_are_the_models_that_nvml_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    two = nvml.install(monkeypatch, FakeGpu("NVIDIA H200"), FakeGpu("NVIDIA A100-SXM4-40GB", "GPU-1"))
    assert provenance.provenance().gpus == ["NVIDIA H200", "NVIDIA A100-SXM4-40GB"]
    assert two.calls == ["init", "shutdown"]
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(None))
    assert provenance.gpus() == []
    monkeypatch.setitem(sys.modules, "pynvml", None)  # not installed
    assert provenance.gpus() == []
