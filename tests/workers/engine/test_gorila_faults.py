"""Gorila's parts really killed while it trains."""

import os
import secrets
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.workers.engine.gorila_runs import Run, processes, running, spec_of
from workers.engine.gorila import cluster

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


def kill(run: Run, kind: str, process: psutil.Process | None = None) -> None:
    """Kill a host, and train until another has taken its place."""
    there = processes(kind)
    before = len(run.warnings)
    (process or there[0]).kill()
    run.until(lambda: any("died; another takes its place" in w for w in run.warnings[before:]))
    run.until(lambda: len(processes(kind)) == len(there))


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
        lost = run.last["gorila/lost_updates"]
        assert lost == 0
        killed_at = time.monotonic()
        kill(run, "ParameterHost")
        run.until(lambda: any("went back to a snapshot" in w for w in run.warnings))
        back = {shard: len(values) for shard, values in run.series("gorila/shard_updates").items()}
        run.more(200)
        lost = run.last["gorila/lost_updates"]
        assert lost > 0
        # No more than were applied in an interval, and in the half second that a snapshot may be late.
        window = [
            advance.updates
            for at, advance in run.told
            if killed_at - interval_s - 1.0 <= at <= killed_at + 1.0
        ]
        assert lost <= sum(window)
        # Both shards' updates go on.
        for shard, values in run.series("gorila/shard_updates").items():
            assert len(values) > back[shard]
            assert values[-1] > values[back[shard]]
        assert run.last["gorila/lost_pushes"] > 0


def test_the_gradients_of_a_learner_that_falls_behind_are_discarded_and_counted() -> None:
    with running(
        n_actors=2, n_learners=2, parts_per_process=1, n_shards=1, max_gradient_staleness=20, pull_interval=4
    ) as run:
        run.more(200)
        before = run.last["gorila/stale_discards"]
        slow = processes("WorkHost")[0]
        slow.suspend()
        run.more(100)
        slow.resume()
        run.more(100)
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
