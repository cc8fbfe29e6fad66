"""Gorila's parts really killed while it trains."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.workers.engine.gorila_runs import Run, processes, running, spec_of
from workers.engine.gorila import cluster

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


def kill(run: Run, kind: str, which: int = 0) -> None:
    """Kill a host, and train until another has taken its place."""
    before = len(run.warnings)
    processes(kind)[which].kill()
    run.until(lambda: any("died; another takes its place" in w for w in run.warnings[before:]))


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
        actors = {p.pid for p in processes("WorkHost")}
        for which in range(4):  # both actors, both learners
            kill(run, "WorkHost", which)
            run.more(50)
        run.until(lambda: len(processes("WorkHost")) == 4)
        assert actors.isdisjoint(p.pid for p in processes("WorkHost"))
        kill(run, "ReplayHost")
        run.more(100)
        kill(run, "ParameterHost")
        run.more(1_500)
        assert run.score > 40
        assert run.agent_steps > 4_000
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
        run.until(lambda: any("went back to a snapshot" in w for w in run.warnings) or run.updates > 10**5)
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
        for values in run.series("gorila/shard_updates").values():
            assert values[-1] > values[-20] or values[-1] > 600
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


def test_nothing_is_left_of_an_engine_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text(spec_of().model_dump_json())
    engine = subprocess.Popen([sys.executable, "-m", "workers.engine", "train", str(tmp_path)])
    parts: list[psutil.Process] = []
    latest = time.monotonic() + 240
    while len([p for p in parts if "ray::WorkHost" in " ".join(p.cmdline())]) < 1:
        assert time.monotonic() < latest
        assert engine.poll() is None
        time.sleep(0.2)
        parts = [p for p in psutil.Process(engine.pid).children(recursive=True) if p.is_running()]
    assert any("raylet" in p.name() for p in parts)
    os.kill(engine.pid, signal.SIGKILL)
    engine.wait()
    _, alive = psutil.wait_procs(parts, timeout=30)
    assert alive == []
    [left] = Path("/tmp").glob(f"callboard-ray-{engine.pid}-*")
    cluster._remove_folders_of_the_dead()
    assert not left.exists()
