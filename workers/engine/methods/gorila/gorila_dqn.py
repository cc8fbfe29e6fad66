"""Gorila DQN (Nair et al. 2015, Algorithm 1): actors, learners, replay and parameters in many processes.

Each actor acts epsilon-greedily by its replica theta of theta+ and stores its transitions. Each learner
samples a minibatch, computes DQN's gradient by theta and theta_minus (equation 2) and pushes it to the
parameter server, whose shards each apply their part by AdaGrad. theta <- theta+ before every
`pull_interval`-th decision or update, if theta+ has changed; theta_minus <- theta+ after every N updates of
the server. A shard discards gradients that are too stale, a learner those of outlying losses (section 4.2).
epsilon is annealed over the server's updates.

Ray starts the processes, spreads them over its machines and restarts those that die. This engine keeps the
newest snapshot of each parameter shard and restores a restarted shard from it; updates applied since are
lost, and counted. Meanwhile learners continue with the other shards and leave the missing part of theta as
it is.

Differences from the paper:
- Actors and learners in one process share theta and theta_minus, and take turns.
- theta_minus is copied when a learner first checks after N updates. A learner that replaces a dead one begins
  with theta_minus = theta+.
- The error is clipped to ±1 as in DQN, which section 4.1 refers to; Algorithm 1 prints no clip.
- A bundle (an actor, a learner and their own replay memory) learns once in `agent_steps_per_update`
  decisions, as DQN does; Algorithm 1 prints every decision. Actors and learners that are not bundled do not
  wait for each other.
- `replay_capacity` is the capacity of all replay shards together, by default that of one DQN. In the paper
  each actor's machine stores as much.
- Numbers that the paper does not print are settings: learning rate, bounds on staleness and outliers.
- Replay is not stored with checkpoints; after a resume it is refilled before learning continues.
- Observations differ as listed in `workers.engine.envs.atari`, initial weights as listed in
  `workers.engine.nn.networks`.
- With `centre`, off by default, observations are centred by the mean image of random play before training
  (`workers.engine.methods.random_play`). Its decisions are counted as frames, not as agent steps.
"""

import time
from typing import Any

import torch

from backend.specs.algorithms.gorila import GorilaConfig
from backend.specs.run import RunSpec
from workers.engine.envs import make_env
from workers.engine.methods.base import (
    ADVANCE_S,
    Method,
    Policy,
    Samples,
    StepResult,
    check_finite,
    config_of,
)
from workers.engine.methods.dqn import dqn
from workers.engine.methods.dqn.actor import take_samples
from workers.engine.methods.gorila.parameters import join_snapshots, shard_bounds, split_snapshot
from workers.engine.methods.gorila.process_group import ProcessGroup
from workers.engine.methods.gorila.stats import RunStats
from workers.engine.methods.gorila.worker import WorkRequest
from workers.engine.methods.random_play import RandomPlay, centre
from workers.engine.nn.optimizers import FlatParameters


class GorilaLearner:
    """The engine's side of a Gorila run; see `workers.engine.methods.base.Learner`.

    The processes work only between the beginning of `advance` and the next `settle`, `policy` or `state`.
    """

    device = "cpu"
    n_rollout_workers: int | None = None

    def __init__(self, spec: RunSpec, *, restored: bool = False) -> None:
        self._spec = spec
        self.config = config_of(spec, GorilaConfig)
        env = make_env(spec.environment, spec.environment_config)
        self.action_names = env.action_names
        torch.manual_seed(spec.seed)
        self.network = dqn.network(self.config, env)
        env.close()
        self._flat = FlatParameters(self.network)
        self._bounds = shard_bounds(len(self._flat.theta), self.config.n_shards)
        self._stats = RunStats()
        self._processes = ProcessGroup(spec, self._bounds, self._stats)
        try:
            self.random_play: RandomPlay = centre(self.network, spec, restored=restored)
            initial = {"theta": self._flat.theta, "statistics": {}, "updates": 0}
            self._processes.restore(split_snapshot(initial, self._bounds))
        except BaseException:
            self.close()
            raise

    def advance(self, progress: float, *, watched: bool) -> StepResult:
        """Let the processes work for `ADVANCE_S`; returns what they did."""
        bound = self._spec.stop.agent_steps
        began = time.monotonic()
        self._processes.work_until(
            began + ADVANCE_S,
            WorkRequest(
                self.config,
                seconds=ADVANCE_S,
                agent_steps=self._stats.left(bound),
                watched=watched,
                episodes_begun=self._stats.episodes_begun,
            ),
        )
        if self._stats.left(bound) == 0:
            self._processes.pause()
        return self._stats.take(time.monotonic() - began, self.config)

    def samples(self) -> Samples:
        """The latest actions of all actors, with max Q of their states."""
        return take_samples(self._stats.recent)

    def settle(self, progress: float) -> StepResult:
        """Wait until no process works, and return what they did since the last `advance`."""
        self._processes.pause_and_snapshot()  # counts updates that no worker has reported
        return self._stats.take_counts()

    def change(self, config: GorilaConfig) -> None:
        """Continue with this config."""
        self.config = config

    def policy(self, seed: int) -> Policy:
        """The policy of theta+ as it is now."""
        theta = torch.cat([snapshot["theta"] for snapshot in self._processes.pause_and_snapshot()])
        check_finite(theta)
        self._flat.theta.copy_(theta)
        return dqn.policy(self.network, torch.device("cpu"), seed)

    def state(self) -> dict[str, Any]:
        """theta+, the optimizer's statistics, and counts."""
        joined = join_snapshots(self._processes.pause_and_snapshot())
        check_finite(joined["theta"])
        return joined | {"counts": self._stats.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state`, with any number of processes; every actor begins a new episode.

        Raises:
            ValueError: the state is of another network.
        """
        snapshots = split_snapshot(state, self._bounds)
        self._stats.restore(state["counts"], state["updates"])
        self._stats.warn(dqn.REPLAY_NOT_RESTORED)
        self._processes.restore(snapshots)

    def close(self) -> None:
        """End every process."""
        self._processes.close()


METHOD = Method(GorilaLearner, dqn.network, dqn.policy)
