"""Every random number of a Gorila run depends on the run's seed; its processes are called here by hand."""

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from backend.specs.algorithms.gorila import GorilaConfig
from backend.specs.run import parse_run_spec
from tests.workers.engine.methods.gorila.gorila_runs import LocalParameterServer, spec_of
from workers.engine.envs import make_env
from workers.engine.methods.dqn import dqn
from workers.engine.methods.gorila import process_group
from workers.engine.methods.gorila import shards as shard_processes
from workers.engine.methods.gorila import worker as worker_processes
from workers.engine.methods.gorila.parameters import ParameterShard
from workers.engine.methods.gorila.shards import ReplayShardProcess
from workers.engine.methods.gorila.stats import RunStats
from workers.engine.methods.gorila.worker import WorkerAssignment, WorkerProcess, WorkRequest
from workers.engine.nn.optimizers import FlatParameters
from workers.engine.nn.replay import FrameShape, ReplayChunk, Trajectory


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (shard_processes, worker_processes):
        monkeypatch.setattr(module, "prepare_process", lambda: None)


def _theta(seed: int) -> torch.Tensor:
    """theta+ after 200 decisions of one bundle with this seed, from the same initial theta."""
    run = spec_of(n_actors=1, n_learners=1).model_dump(mode="json")
    spec = parse_run_spec(run | {"seed": seed})
    assert isinstance(spec.config, GorilaConfig)
    env = make_env(spec.environment, spec.environment_config)
    torch.manual_seed(0)
    server = LocalParameterServer(
        [ParameterShard(FlatParameters(dqn.network(spec.config, env)).theta.clone(), spec.config)]
    )
    env.close()
    process = WorkerProcess(spec)
    request = WorkRequest(spec.config, seconds=600.0, agent_steps=200, watched=False, episodes_begun={})
    report = process.work(request, WorkerAssignment(server, {0: None}, {0: None}, 1_000, 50))
    assert report.agent_steps == 200
    assert report.gradients > 30
    return server.shards[0].theta


def test_bundle_repeats_its_updates_with_the_same_seed_only() -> None:
    once, again, other = _theta(3), _theta(3), _theta(4)
    assert torch.equal(once, again)
    assert not torch.equal(once, other)


def _chunk() -> ReplayChunk:
    trajectory = Trajectory(FrameShape((4,), "float32", 1), independent_chunks=True)
    trajectory.begin_episode()
    for k in range(50):
        trajectory.add_observation(np.full(4, k, np.float32))
        trajectory.add_transition(k % 2, float(k), terminal=False)
    return trajectory.take_chunk()


def _rewards(run_seed: int) -> list[float]:
    """Rewards of a minibatch of a replay shard; each is of another transition."""
    process = ReplayShardProcess(FrameShape((4,), "float32", 1), {2: 100, 3: 100}, run_seed)
    process.add(2, _chunk())
    batch = process.sample(2, 16, 10)
    assert batch is not None
    return [float(reward) for reward in batch.reward_B]


def test_replay_shards_draw_by_the_seed_of_the_run() -> None:
    assert _rewards(3) == _rewards(3) != _rewards(4)


def test_learner_samples_shards_by_its_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    from workers.engine.methods.gorila.remote import RemoteReplay

    monkeypatch.setattr(ray, "get", lambda ref, timeout: ref)  # answered at once

    def asked(seed: int) -> list[int]:
        numbers: list[int] = []

        def sample(number: int, B: int, min_transitions: int) -> str:
            numbers.append(number)
            return "a batch"

        shards = [(SimpleNamespace(sample=SimpleNamespace(remote=sample)), k) for k in range(8)]
        replay = RemoteReplay(shards, home=None, rng=np.random.default_rng(seed))
        for _ in range(20):
            replay.sample(4, 10)
        return numbers

    assert asked(1) == asked(1) != asked(2)


class _Drawn(NamedTuple):
    """The random numbers of a process group, by what it starts its processes with."""

    shards: list[tuple[Any, ...]]
    """Arguments of each process of replay shards."""
    numbers: list[int]
    """The next number of each actor's and learner's generator; actor k has that of learner k."""


def _drawn(seed: int, monkeypatch: pytest.MonkeyPatch) -> _Drawn:
    """Of two actors, two learners and two replay shards, each in a process of its own."""
    drawn = _Drawn([], [])

    class Cluster:
        """Stands in for `RayCluster`."""

        def __init__(self, store_bytes: int) -> None: ...
        def close(self) -> None: ...

        def start(self, place: int, process: type, *arguments: Any) -> Any:
            if process is ReplayShardProcess:
                drawn.shards.append(arguments)
            return SimpleNamespace(__ray_ready__=SimpleNamespace(remote=object))

    def replay(shards: list[Any], *, home: int | None, rng: np.random.Generator) -> None:
        drawn.numbers.append(int(rng.integers(2**62)))

    monkeypatch.setattr(process_group, "RayCluster", Cluster)
    monkeypatch.setattr("ray.wait", lambda replies, num_returns: (replies[:1], replies[1:]))
    monkeypatch.setattr("workers.engine.methods.gorila.remote.RemoteReplay", replay)
    sizes: dict[str, Any] = {
        "n_actors": 2,
        "n_learners": 2,
        "n_shards": 1,
        "n_replay_shards": 2,
        "parts_per_process": 1,
    }
    run = spec_of(replay="global", **sizes).model_dump(mode="json")
    process_group.ProcessGroup(parse_run_spec(run | {"seed": seed}), [(0, 10)], RunStats()).close()
    return drawn


def test_processes_are_started_with_generators_of_the_run_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    once, again, other = (_drawn(seed, monkeypatch) for seed in (3, 3, 4))
    assert once == again
    assert len(set(once.numbers + other.numbers)) == 2 * 2, "no two learners draw the same"
    assert len(once.shards) == 2
    assert all(of_once != of_other for of_once, of_other in zip(once.shards, other.shards, strict=True))
