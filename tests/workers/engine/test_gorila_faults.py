"""Gorila's parts really killed while it trains."""

import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import psutil
import pytest

from backend.specs.events import Ended
from tests.workers.engine.gorila_runs import Run, processes, running, spec_of
from workers.engine.event_log import read_frames
from workers.engine.gorila import cluster

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

RAYS_OWN_PATIENCE_S = 30
"""How long Ray's `_private/node.py` waits for its raylet."""


def kill(run: Run, kind: str, process: psutil.Process | None = None) -> None:
    """Kill a host, and train until another has taken its place."""
    there = processes(kind)
    before = len(run.warnings)
    (process or there[0]).kill()
    run.until(lambda: any("died; another takes its place" in w for w in run.warnings[before:]))
    run.until(lambda: len(processes(kind)) == len(there))


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
    while True:
        for process in processes(under=engine.pid):
            with suppress(psutil.NoSuchProcess):
                if process.name() == "raylet":
                    return process
        assert engine.poll() is None
        time.sleep(0.01)


def test_each_kind_of_part_is_killed_and_the_run_goes_on_and_learns() -> None:
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
        for process in processes("WorkHost"):  # both actors, both learners
            kill(run, "WorkHost", process)
            run.more(50)
        assert sum("actor" in w for w in run.warnings) == sum("learner" in w for w in run.warnings) == 2
        kill(run, "ReplayHost")
        run.more(100)
        kill(run, "ParameterHost")
        run.more(100)
        run.until(lambda: run.score > 40)
        fills = run.series("gorila/replay_fill")
        assert all(fill[-1] > 0 for fill in fills.values())


def test_a_parameter_shard_comes_back_from_its_snapshot_and_what_is_lost_is_counted_and_bounded() -> None:
    interval_s = 2.0
    with running(n_shards=2, parts_per_process=1, snapshot_interval_s=interval_s) as run:
        run.more(600)
        assert run.last["gorila/lost_updates"] == 0
        for _ in range(10):
            killed_at = time.monotonic()
            kill(run, "ParameterHost")
            begun = {shard: len(values) for shard, values in run.series("gorila/shard_updates").items()}
            for shard, since in begun.items():
                run.until(partial(goes_on, run, shard, since))
            if lost := run.last["gorila/lost_updates"]:
                break  # else its snapshot was as new as what anyone had seen
        assert lost > 0
        assert any("went back to a snapshot" in w for w in run.warnings)
        # No more than were applied in an interval, and in the half second that a snapshot may be late.
        window = [
            advance.updates
            for at, advance in run.told
            if killed_at - interval_s - 1.0 <= at <= killed_at + 1.0
        ]
        assert lost <= sum(window)
        assert run.last["gorila/lost_pushes"] > 0


def test_the_gradients_of_a_learner_that_falls_behind_are_discarded_and_counted() -> None:
    with running(
        n_actors=2, n_learners=2, parts_per_process=1, n_shards=1, max_gradient_staleness=20, pull_interval=4
    ) as run:
        run.more(200)
        before = run.last["gorila/stale_discards"]
        for part in 10 * processes("WorkHost"):
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


def test_a_machine_is_lost_and_what_was_on_it_goes_on_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_DEDUP_LOGS_SKIP_REGEX": ".",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": os.environ.get("RAY_AUTH_TOKEN", secrets.token_hex(32)),
    }.items():
        monkeypatch.setenv(name, value)
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "object_store_memory": 100 * 2**20, "include_dashboard": False}
    machines = Cluster(initialize_head=True, head_node_args=node)
    try:
        second = machines.add_node(num_cpus=1, object_store_memory=100 * 2**20)
        monkeypatch.setenv(cluster.ADDRESS, machines.address)
        run = Run(spec_of(n_shards=2, parts_per_process=1, snapshot_interval_s=1.0))
        try:
            run.more(300)
            machines.remove_node(second, allow_graceful=False)
            run.until(lambda: sum("died; another takes its place" in w for w in run.warnings) == 2)
            run.until(lambda: any("went back to a snapshot" in w for w in run.warnings))
            run.more(300)
            run.until(lambda: run.score > 40)
            assert {source.split()[0] for source in run.series("gorila/version_seen")} == {"actor"}
        finally:
            run.learner.close()
        latest = time.monotonic() + 60
        while processes("WorkHost") or processes("ParameterHost"):
            assert time.monotonic() < latest
            time.sleep(0.1)
    finally:
        machines.shutdown()


def test_nothing_is_left_of_an_engine_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text(spec_of().model_dump_json())
    with subprocess.Popen([sys.executable, "-m", "workers.engine", "train", str(tmp_path)]) as engine:
        try:
            latest = time.monotonic() + 240
            while not any(log.stat().st_size for log in tmp_path.glob("attempts/1/events.log")):
                assert time.monotonic() < latest
                assert engine.poll() is None
                time.sleep(0.2)
            parts = psutil.Process(engine.pid).children(recursive=True)
            assert any("raylet" in part.name() for part in parts)
            [folder] = Path("/tmp").glob(f"callboard-ray-{engine.pid}-*")
        finally:
            engine.kill()
    _, alive = psutil.wait_procs(parts, timeout=30)
    assert alive == []
    assert not folder.exists()


@contextmanager
def starting(run_dir: Path) -> Iterator[tuple[subprocess.Popen[bytes], psutil.Process]]:
    """An engine and its Ray's server, which has only just come; then that it trained to its end."""
    (run_dir / "spec.json").write_text(spec_of(agent_steps=1_000).model_dump_json())
    with subprocess.Popen([sys.executable, "-m", "workers.engine", "train", str(run_dir)]) as engine:
        try:
            yield engine, raylet_of(engine)
            engine.wait(timeout=400)
        finally:
            engine.kill()
    frames = read_frames(run_dir / "attempts" / "1" / "events.log")
    [ended] = [event for frame, _ in frames for event in frame if isinstance(event, Ended)]
    assert ended.state == "finished", ended.traceback


def until_work_begins(engine: subprocess.Popen[bytes]) -> None:
    while not processes("WorkHost", under=engine.pid):
        assert engine.poll() is None
        time.sleep(0.1)


def test_a_slow_server_of_rays_is_waited_for(tmp_path: Path) -> None:
    with starting(tmp_path) as (engine, server):
        server.suspend()
        time.sleep(RAYS_OWN_PATIENCE_S + 5)
        server.resume()
        until_work_begins(engine)
        assert raylet_of(engine) == server


def test_where_rays_server_dies_at_its_start_another_ray_is_begun(tmp_path: Path) -> None:
    with starting(tmp_path) as (engine, server):
        server.kill()
        until_work_begins(engine)
        rays = [line for line in map(command, processes(under=engine.pid)) if "/gcs_server " in line]
        assert len(rays) == 1, "what is left of the first is ended"
