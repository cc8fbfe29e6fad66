"""Gorila's parts really killed while it trains."""

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from backend.specs.events import EndedEvent, StartedEvent
from tests.support.engine_process import await_stop, logged
from tests.support.waiting import PATIENCE_S, Patience
from tests.workers.engine.methods.gorila.gorila_runs import (
    Run,
    collect_processes,
    processes,
    running,
    spec_of,
)
from workers.engine.methods.gorila import cluster
from workers.engine.training.event_log import read_frames

pytestmark = [pytest.mark.long, pytest.mark.timeout(3_600)]  # of 41 s alone; 598 s with other tests

STARTS_S = 1_200.0
"""Deadline for Ray and the engine's processes, all of which may be started again."""
STARTS = 6
"""Of a machine, as of the engine's own Ray."""
RAYS_OWN_PATIENCE_S = 30
"""How long Ray's `_private/node.py` waits for its raylet."""


def kill(run: Run, kind: str, process: psutil.Process | None = None) -> None:
    """Kill a host, and train until another has taken its place."""
    running = processes(kind)
    before = len(run.warnings)
    (process or running[0]).kill()
    run.until(lambda: any("died and is restarted" in w for w in run.warnings[before:]))
    run.until(lambda: len(processes(kind)) == len(running))


def goes_on(run: Run, shard: str, since: int) -> bool:
    updates = run.series("gorila/shard_updates")[shard][since:]
    return len(updates) > 1 and updates[-1] > updates[0]


def command(process: psutil.Process) -> str:
    """Its command line; empty for one that has just ended."""
    with suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


def raylet_of(engine: subprocess.Popen[bytes]) -> psutil.Process:
    """Ray's server under this engine, as soon as it is there."""
    patience = Patience()
    while patience.lasts():
        for process in processes(under=engine.pid):
            with suppress(psutil.NoSuchProcess):
                if process.name() == "raylet":
                    return process
        assert engine.poll() is None
        time.sleep(0.01)


def test_run_continues_after_each_kind_of_process_is_killed() -> None:
    with running(
        replay="global",
        n_actors=2,
        n_learners=2,
        n_shards=2,
        n_replay_shards=2,
        parts_per_process=1,
        snapshot_interval_s=1.0,
    ) as run:
        run.more(200)
        for process in processes("WorkerProcess"):  # both actors, both learners
            kill(run, "WorkerProcess", process)
            run.more(50)
        assert sum("actor" in w for w in run.warnings) == sum("learner" in w for w in run.warnings) == 2
        kill(run, "ReplayShardProcess")
        run.more(100)
        kill(run, "ParameterShardProcess")
        run.more(100)
        run.until(lambda: run.score > 40)
        fills = run.series("gorila/replay_fill")
        assert all(fill[-1] > 0 for fill in fills.values())


def test_killed_parameter_shard_restores_its_snapshot_and_counts_lost_updates() -> None:
    interval_s = 2.0
    with running(n_shards=2, parts_per_process=1, snapshot_interval_s=interval_s) as run:
        run.more(600)
        assert run.last["gorila/lost_updates"] == 0
        for _ in range(10):
            reports = run.reported_at("gorila/shard_updates").values()
            before = len(run.results)
            kill(run, "ParameterShardProcess")
            begun = {shard: len(values) for shard, values in run.series("gorila/shard_updates").items()}
            for shard, since in begun.items():
                run.until(partial(goes_on, run, shard, since))
            if lost := run.last["gorila/lost_updates"]:
                break  # else its snapshot was as new as what anyone had seen
        assert lost > 0
        assert any("was restored from a snapshot" in w for w in run.warnings)
        # No more than were applied from the newest snapshot to the restore. A snapshot is requested after the
        # interval instead of the second next report.
        snapshots_at = min(at[-3] for at in reports) - interval_s
        restored_at = next(
            at for at, advance in run.results[before:] if any("was restored" in w for w in advance.warnings)
        )
        window = [advance.updates for at, advance in run.results if snapshots_at <= at <= restored_at + 1.0]
        assert lost <= sum(window)
        run.until(lambda: run.last["gorila/lost_pushes"] > 0)


def test_stale_gradients_are_discarded_and_counted() -> None:
    with running(
        n_actors=2, n_learners=2, parts_per_process=1, n_shards=1, max_gradient_staleness=20, pull_interval=4
    ) as run:
        run.more(200)
        before = run.last["gorila/stale_discards"]
        for part in 10 * processes("WorkerProcess"):
            # An actor has no gradients, and a learner that was about to pull theta has none that are stale.
            part.suspend()
            run.more(100)
            part.resume()
            run.more(100)
            if run.last["gorila/stale_discards"] > before:
                break
        assert run.last["gorila/stale_discards"] > before
        assert run.series("gorila/gradient_staleness_max")[""]
        assert max(run.series("gorila/gradient_staleness_max")[""]) > 20
        assert run.warnings == []


def add_machine(machines: Any, **options: Any) -> Any:
    """Start a machine, several times if Ray does not have it running within its own 30 s."""
    for tries_left in reversed(range(STARTS)):
        before = psutil.Process().children(recursive=True)
        try:
            machine = machines.add_node(wait=False, num_cpus=1, object_store_memory=100 * 2**20, **options)
        except Exception:
            if not tries_left:
                raise
            for process in set(psutil.Process().children(recursive=True)) - set(before):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
        else:
            machines.wait_for_nodes(PATIENCE_S)
            return machine
    raise AssertionError("unreachable")


def test_processes_of_a_lost_machine_move_to_another(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_DEDUP_LOGS_SKIP_REGEX": ".",
        # Ray reads them when it is first imported.
        "RAY_raylet_start_wait_time_s": f"{PATIENCE_S:.0f}",
        "RAY_gcs_server_port_wait_time_s": f"{PATIENCE_S:.0f}",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": os.environ.get("RAY_AUTH_TOKEN", secrets.token_hex(32)),
    }.items():
        monkeypatch.setenv(name, value)
    from ray.cluster_utils import Cluster

    machines = Cluster()
    try:
        add_machine(machines, include_dashboard=False)
        second = add_machine(machines)
        monkeypatch.setenv(cluster.ADDRESS, machines.address)
        run = Run(spec_of(n_shards=2, parts_per_process=1, snapshot_interval_s=1.0))
        try:
            run.more(300)
            machines.remove_node(second, allow_graceful=False)
            run.until(lambda: sum("died and is restarted" in w for w in run.warnings) >= 2)
            # A shard applies updates again once it has theta of its snapshot. None need be lost.
            for shard, values in run.series("gorila/shard_updates").items():
                run.until(partial(goes_on, run, shard, len(values)))
            run.more(300)
            run.until(lambda: run.score > 40)
            assert {source.split()[0] for source in run.series("gorila/version_seen")} == {"actor"}
        finally:
            run.learner.close()
        patience = Patience()
        while patience.lasts() and (processes("WorkerProcess") or processes("ParameterShardProcess")):
            time.sleep(0.1)
    finally:
        machines.shutdown()  # type: ignore[no-untyped-call]
        del machines
        collect_processes()


def await_started(engine: subprocess.Popen[bytes], run_dir: Path) -> None:
    patience = Patience(STARTS_S)
    while patience.lasts() and not any(isinstance(event, StartedEvent) for event in logged(run_dir, 1)):
        assert engine.poll() is None
        time.sleep(0.2)


def test_start_of_many_processes_is_stopped_by_a_signal(tmp_path: Path) -> None:
    """With the paper's numbers the start alone takes minutes on few cores."""
    spec = spec_of(n_actors=100, n_learners=100, n_shards=31, parts_per_process=1)
    (tmp_path / "spec.json").write_text(spec.model_dump_json())
    with subprocess.Popen([sys.executable, "-m", "workers.engine", "train", str(tmp_path)]) as engine:
        try:
            patience = Patience()
            while patience.lasts() and len(processes("", under=engine.pid)) < 8:
                assert engine.poll() is None
                time.sleep(0.1)
            parts = psutil.Process(engine.pid).children(recursive=True)
            engine.send_signal(signal.SIGTERM)
            assert await_stop(engine) == 0
        finally:
            engine.kill()
    ended = logged(tmp_path, 1)[-1]
    assert isinstance(ended, EndedEvent)
    assert (ended.state, ended.reason) == ("stopped", "stopped by SIGTERM while it was starting")
    _, alive = psutil.wait_procs(parts, timeout=PATIENCE_S)
    assert alive == []
    assert not list(Path("/tmp").glob(f"callboard-ray-{engine.pid}-*"))


def test_killed_engine_leaves_no_process(tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text(spec_of().model_dump_json())
    with subprocess.Popen([sys.executable, "-m", "workers.engine", "train", str(tmp_path)]) as engine:
        try:
            await_started(engine, tmp_path)
            parts = psutil.Process(engine.pid).children(recursive=True)
            assert any("raylet" in command(part) for part in parts)
            [folder] = Path("/tmp").glob(f"callboard-ray-{engine.pid}-*")
        finally:
            engine.kill()
    _, alive = psutil.wait_procs(parts, timeout=PATIENCE_S)
    assert alive == []
    assert not folder.exists()


@pytest.mark.parametrize("name", ["gcs_server", "raylet"])
def test_engine_without_a_server_of_ray_counts_as_killed(name: str, tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text(spec_of().model_dump_json())
    with subprocess.Popen([sys.executable, "-m", "workers.engine", "train", str(tmp_path)]) as engine:
        try:
            await_started(engine, tmp_path)
            parts = psutil.Process(engine.pid).children(recursive=True)
            [server] = [part for part in parts if part.name() == name]
            server.kill()
            assert engine.wait(timeout=PATIENCE_S) == -signal.SIGKILL
        finally:
            engine.kill()
    _, alive = psutil.wait_procs(parts, timeout=PATIENCE_S)
    assert alive == []


@contextmanager
def starting(run_dir: Path) -> Iterator[tuple[subprocess.Popen[bytes], psutil.Process]]:
    """An engine and its Ray's server, which has only just come; then that it trained to its end."""
    (run_dir / "spec.json").write_text(spec_of(agent_steps=1_000).model_dump_json())
    with subprocess.Popen([sys.executable, "-m", "workers.engine", "train", str(run_dir)]) as engine:
        try:
            yield engine, raylet_of(engine)
            engine.wait(timeout=STARTS_S)
        finally:
            engine.kill()
    frames = read_frames(run_dir / "attempts" / "1" / "events.log")
    [ended] = [event for frame, _ in frames for event in frame if isinstance(event, EndedEvent)]
    assert ended.state == "finished", ended.traceback


def until_work_begins(engine: subprocess.Popen[bytes]) -> None:
    patience = Patience(STARTS_S)
    while patience.lasts() and not processes("WorkerProcess", under=engine.pid):
        assert engine.poll() is None
        time.sleep(0.1)


def test_slow_ray_server_is_awaited(tmp_path: Path) -> None:
    with starting(tmp_path) as (engine, server):
        server.suspend()
        time.sleep(RAYS_OWN_PATIENCE_S + 5)
        server.resume()
        until_work_begins(engine)
        assert raylet_of(engine) == server


def test_ray_is_started_again_after_its_server_died_at_start(tmp_path: Path) -> None:
    with starting(tmp_path) as (engine, server):
        server.kill()
        until_work_begins(engine)
        rays = [line for line in map(command, processes(under=engine.pid)) if "/gcs_server " in line]
        assert len(rays) == 1, "what is left of the first is ended"
