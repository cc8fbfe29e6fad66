"""Gorila through Ray: the main path, and each way of sharing replay."""

from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from backend.specs.events import CheckpointSavedEvent, PointsEvent
from backend.specs.problems import InvalidSpec
from tests.support.waiting import Patience
from tests.workers.engine.methods.gorila.gorila_runs import processes, running, spec_of
from workers.engine.methods.gorila.gorila_dqn import GorilaLearner
from workers.engine.training import checkpoint
from workers.engine.training.event_log import read_frames
from workers.engine.training.loop import Training

pytestmark = pytest.mark.timeout(3_600)  # minutes alone


@pytest.mark.learning
@pytest.mark.long
def test_gorila_learns_cartpole_and_leaves_no_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # How much is learned from a decision depends on how the processes share the machine.
    spec = spec_of(agent_steps=60_000, score=60.0)
    ended = Training(spec, tmp_path).run()
    assert ended.state == "finished", ended.traceback
    assert processes() == []
    log = tmp_path / "attempts" / "1" / "events.log"
    events = [event for frame, _ in read_frames(log) for event in frame]
    points: dict[str, list[PointsEvent]] = {}
    for event in events:
        if isinstance(event, PointsEvent):
            points.setdefault(event.metric, []).append(event)
    returns = [
        value for event in points["rollout/episode_return"] if not event.source for value in event.value
    ]
    first, last = np.mean(returns[:50]), np.mean(returns[-50:])
    with capsys.disabled():
        print(f"\nGorila on CartPole-v1: {last:.1f}; while it explored {first:.1f}")  # noqa: T201
    assert first < 30
    assert last > 40
    sources = {metric: {event.source for event in events} for metric, events in points.items()}
    assert sources["gorila/shard_updates"] == {"shard 0", "shard 1"}
    assert sources["gorila/version_seen"] == sources["gorila/episodes"] == {"actor 0", "actor 1"}
    assert sources["gorila/replay_fill"] == {"replay 0", "replay 1"}
    assert {"0", "1", "2-3"} <= sources["gorila/gradient_staleness_share"]
    for name in ("pushes", "pulls", "push_bytes", "pull_bytes"):
        assert max(v for point in points[f"gorila/{name}_per_s"] for v in point.value) > 0
    [saved] = [event for event in events if isinstance(event, CheckpointSavedEvent)][-1:]
    assert saved.agent_steps == max(event.agent_steps[-1] for event in points["speed/agent_steps_per_s"])
    state = checkpoint.load(tmp_path / "checkpoints" / saved.file)["learner"]
    assert state["updates"] > 1_000
    assert set(state["statistics"]) == {"g"}


def test_bundled_mode_has_as_many_learners_as_actors() -> None:
    with pytest.raises(InvalidSpec, match=r"config\.n_learners: .*must equal n_actors \(3\)"):
        spec_of(n_actors=3, n_learners=2)
    spec_of(n_actors=3, n_learners=2, replay="global")


@pytest.mark.long
@pytest.mark.parametrize("replay", ["local", "global"])
def test_gorila_learns_with_any_number_of_actors_and_learners(replay: str) -> None:
    with running(
        replay=replay, n_actors=3, n_learners=2, n_shards=5, n_replay_shards=2, parts_per_process=3
    ) as run:
        run.more(1_500)
        run.until(lambda: run.score > 40)
        fills = run.series("gorila/replay_fill")
        assert set(fills) == {f"replay {k}" for k in range(3 if replay == "local" else 2)}
        assert all(fill[-1] > 0 for fill in fills.values())
        assert set(run.series("gorila/shard_updates")) == {f"shard {k}" for k in range(5)}
        kinds = {"WorkerProcess": 2, "ReplayShardProcess": 1, "ParameterShardProcess": 2}
        assert {kind: len(processes(kind)) for kind in kinds} == kinds


@pytest.mark.long
def test_checkpoint_resumes_with_other_numbers_of_processes(tmp_path: Path) -> None:
    with running() as run:
        run.more(300)
        state: dict[str, Any] = run.learner.state()
        checkpoint.save(tmp_path / "kept.pt", {"learner": state})
    again = GorilaLearner(spec_of(n_actors=1, n_learners=1, n_shards=3))
    try:
        again.restore(checkpoint.load(tmp_path / "kept.pt")["learner"])
        kept = again.state()
        assert np.array_equal(kept["theta"], state["theta"])
        assert np.array_equal(kept["statistics"]["g"], state["statistics"]["g"])
        assert kept["updates"] == state["updates"]
        advance = again.advance(0.0, watched=True)
        assert any("refilled before learning continues" in warning for warning in advance.warnings)
        patience = Patience()
        while patience.lasts() and not advance.updates:
            advance = again.advance(0.0, watched=True)
        assert again.state()["updates"] > state["updates"]
    finally:
        again.close()


@pytest.mark.long
def test_papers_numbers_run_on_one_machine_in_sixteen_processes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    here = psutil.Process()
    others = set(here.children(recursive=True))  # of the tests before
    with running(
        n_actors=100,
        n_learners=100,
        n_shards=31,
        parts_per_process=25,
        replay_capacity=100_000,
        learning_starts_agent_steps=5_000,
    ) as run:
        run.until(lambda: run.updates >= 300 and len(run.series("gorila/version_seen")) == 100)
        hosts = processes("WorkerProcess") + processes("ParameterShardProcess")
        everything = [here, *(child for child in here.children(recursive=True) if child not in others)]
        # Shared pages once: of the object store, and of what all have loaded.
        memory = sum(process.memory_full_info().pss for process in everything)
        with capsys.disabled():
            print(f"\nGorila's 100, 100, 31: {len(everything)} processes, {memory / 2**30:.2f} GiB")  # noqa: T201
        assert len(hosts) == 6
        assert len(everything) <= 16
        assert memory < 3 * 2**30
        assert len(run.series("gorila/shard_updates")) == 31
        assert run.last["gorila/lost_pushes"] == 0
