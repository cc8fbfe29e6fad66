"""Gorila's learners on one replica, and their guard against outliers."""

import numpy as np
import torch

from backend.specs.algorithms.gorila import GorilaConfig
from backend.specs.run import parse_run_spec
from tests.workers.engine.methods.gorila.gorila_runs import LocalParameterServer
from workers.engine.methods.dqn.actor import DqnActor
from workers.engine.methods.dqn.dqn import DqnLearner
from workers.engine.methods.gorila.learner import MIN_LOSSES, GradientWorker, LossGuard, Replica
from workers.engine.methods.gorila.parameters import ParameterShard, shard_bounds
from workers.engine.nn.networks import action_values
from workers.engine.nn.optimizers import FlatParameters
from workers.engine.nn.replay import Batch, ReplayMemory
from workers.engine.nn.schedules import annealed
from workers.engine.nn.seeds import MINIBATCH_STREAM

CONFIG = GorilaConfig(
    network="mlp", gamma=0.9, learning_rate=0.01, optimizer="adagrad", target_update_updates=4
)


def batch(scale: float = 1.0) -> Batch:
    rng = np.random.default_rng(3)
    state_B, next_state_B = rng.normal(size=(2, 16, 4)).astype(np.float32)
    reward_B = (scale * rng.normal(size=16)).astype(np.float32)
    return Batch(state_B, rng.integers(3, size=16), reward_B, rng.random(16) < 0.3, next_state_B)


def replica(n_shards: int = 1) -> tuple[Replica, LocalParameterServer]:
    torch.manual_seed(0)
    theta = FlatParameters(action_values("mlp", (4,), 3)).theta
    server = LocalParameterServer(
        [ParameterShard(theta[i:j].clone(), CONFIG) for i, j in shard_bounds(len(theta), n_shards)]
    )
    return Replica(CONFIG, (4,), 3, server, torch.device("cpu")), server


def test_replica_follows_the_server_and_theta_minus_every_n_updates() -> None:
    mine, server = replica(n_shards=5)
    assert mine.ready
    assert torch.equal(mine.theta_minus, mine.theta)
    learner = GradientWorker(mine)
    synced = []
    for k in range(1, 10):
        learner.learn(batch(), 0.0)
        mine.pull()
        assert mine.updates == k
        if mine.sync_target(mine.updates):
            synced.append(k)
            assert torch.equal(mine.theta_minus, mine.theta)
    assert synced == [4, 8]
    torch.testing.assert_close(mine.theta, torch.cat([shard.theta for shard in server.shards]))


def test_one_actor_learner_and_shard_in_lock_step_equal_dqn() -> None:
    spec = parse_run_spec(
        {
            "algorithm": "dqn",
            "environment": "CartPole-v1",
            "seed": 3,
            "device": "cpu",
            "stop": {"agent_steps": 10_000},
            "config": {
                "learning_starts_agent_steps": 100,
                "exploration_anneal_agent_steps": 500,
                "target_update_updates": 20,
                "learner_threads": 1,
            },
        }
    )
    dqn = DqnLearner(spec)
    metrics = [dqn.advance(0.0, watched=False).metrics for _ in range(100)]
    c = dqn.config
    torch.manual_seed(spec.seed)
    theta = FlatParameters(action_values("mlp", (4,), 2)).theta
    replica = Replica(c, (4,), 2, LocalParameterServer([ParameterShard(theta, c)]), torch.device("cpu"))
    learner, actor = GradientWorker(replica), DqnActor(spec, 0, replica.network)
    memory = ReplayMemory(actor.shape, c.replay_capacity)
    rng = np.random.default_rng(np.random.SeedSequence((spec.seed, MINIBATCH_STREAM)))
    for k in range(100):
        for agent_steps in range(4 * k, 4 * k + 4):
            replica.pull()
            actor.act(annealed(1.0, c.exploration_eps, agent_steps, c.exploration_anneal_agent_steps))
        memory.add(actor.trajectory.take_chunk())
        if memory.holds(c.learning_starts_agent_steps):
            replica.sync_target(replica.updates)
            minibatch = memory.sample(c.batch_size, rng)
            assert minibatch is not None
            assert learner.learn(minibatch, 0.0).items() <= metrics[k].items()
    replica.pull()
    assert replica.updates == dqn.updates > 50
    assert torch.equal(replica.theta, dqn.theta)
    assert torch.equal(replica.theta_minus, dqn.theta_minus)


def test_learner_counts_an_outliers_gradient_and_does_not_push_it() -> None:
    mine, server = replica()
    learner = GradientWorker(mine)
    for _ in range(MIN_LOSSES):
        learner.learn(batch(), 4.0)
    assert learner.outliers == 0
    before = server.shards[0].version
    assert set(learner.learn(batch(scale=1_000.0), 4.0)) == {"loss/td"}
    assert learner.outliers == 1
    assert server.shards[0].version == before
    mine.pull()
    assert set(learner.learn(batch(), 4.0)) > {"loss/td", "value/max_q"}
    assert learner.outliers == 1
    assert server.shards[0].version.updates == before.updates + 1


def test_guard_finds_outliers_by_mean_and_standard_deviation() -> None:
    rng = np.random.default_rng(0)
    guard = LossGuard()
    outliers = [guard.add(float(loss), 4.0) for loss in rng.normal(5.0, 0.5, 5_000)]
    assert abs(guard.mean - 5.0) < 0.2
    assert sum(outliers) < 10
    assert guard.add(8.0, 4.0)
    assert not guard.add(8.0, 0.0)
    # A lasting rise is accepted.
    assert not all(guard.add(8.0, 4.0) for _ in range(100))
