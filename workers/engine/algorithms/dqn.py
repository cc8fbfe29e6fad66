"""DQN (Mnih et al. 2015): Gorila with one actor, one replay shard, one learner and its own parameters.

They take turns in one process, so that a run is the same each time: the actor takes
`agent_steps_per_update` decisions by Q(s, .; theta), epsilon-greedily, into the replay memory D; then the
learner draws a minibatch from it uniformly and takes the gradient of

    (y - Q(s, a; theta))^2,   y = r + gamma max_a' Q(s', a'; theta_minus),   y = r where terminal

with the error y - Q clipped to ±1, which is applied by centred RMSProp; on a CPU, `learner_threads` threads
each compute it for a part of the minibatch, and then apply it to a part of theta. Every N updates
theta_minus <- theta. epsilon is annealed from 1 over `exploration_anneal_agent_steps`.

Differences from the paper:
- No update is made before `learning_starts_agent_steps` decisions are remembered, as there; the actor
  explores by its annealed epsilon till then, where the paper has a uniform policy.
- An episode that is cut off, by `max_frames` or a time limit, is not taken as terminal. A lost life is only
  where the world is so set; the paper's code ends episodes there while training.
- A replay of more than 256 MB is not stored with a checkpoint: after a resume it is filled again, by the
  present policy, before learning goes on.
- The pictures differ as told in `workers.engine.envs.atari`, and the weights begin as told in
  `workers.engine.networks`.
"""

from typing import Any

import numpy as np
import torch
from torch import nn

from backend.specs.algorithms import AlgorithmConfig
from backend.specs.algorithms.dqn import DqnConfig
from backend.specs.algorithms.replayed import CHECKPOINTED_REPLAY_BYTES, ReplayedQConfig
from backend.specs.run import RunSpec
from workers.engine.devices import describe, resolve_device
from workers.engine.envs import make_world
from workers.engine.envs.base import World
from workers.engine.gorila.actor import Actor
from workers.engine.gorila.learner import Learner
from workers.engine.gorila.parameters import LocalServer, ParameterShard, bounds, join, split
from workers.engine.gorila.replica import Replica
from workers.engine.learner import Advance, Policy
from workers.engine.networks import ActionValues, action_values
from workers.engine.optimizers import FlatParameters
from workers.engine.policies import EpsilonGreedyPolicy
from workers.engine.replay import ReplayShard
from workers.engine.schedules import annealed
from workers.engine.seeds import restore_rng, rng_state

EVALUATION_EPSILON = 0.05
REFILLED = "the replay was not kept with the checkpoint: it is filled again before learning goes on"
"""Said after a resume."""
_MINIBATCHES = 2**30 + 2**29
"""Stream of the random numbers minibatches are drawn with."""


def network(spec: RunSpec, world: World) -> ActionValues:
    """The network of a run."""
    assert isinstance(spec.config, ReplayedQConfig)
    return action_values(spec.config.network, world.observation_shape, len(world.action_names))


def policy(spec: RunSpec, network: nn.Module, device: torch.device, seed: int) -> Policy:
    """Epsilon-greedy, with randomness of its own."""
    assert isinstance(network, ActionValues)
    return EpsilonGreedyPolicy(network, device, seed, EVALUATION_EPSILON)


class Dqn:
    """The algorithm at work; see `workers.engine.learner.Learner`."""

    def __init__(self, spec: RunSpec) -> None:
        assert isinstance(spec.config, DqnConfig)
        self._spec = spec
        self.config = spec.config
        device = resolve_device(spec.device)
        self.device = describe(device)
        world = make_world(spec.environment, spec.environment_config)
        self.action_names = world.action_names
        torch.manual_seed(spec.seed)
        initial = FlatParameters(network(spec, world)).theta.to(device)
        world.close()
        threads = spec.config.learner_threads if device.type == "cpu" else 1
        self._server = LocalServer(
            [
                ParameterShard(initial[first:last].clone(), spec.config)
                for first, last in bounds(len(initial), threads)
            ]
        )
        self._replica = Replica(
            spec.config.network,
            world.observation_shape,
            len(world.action_names),
            self._server,
            device,
        )
        self._actor = Actor(spec, 0, self._replica, whole=False)
        self._replay = ReplayShard(self._actor.shape, spec.config.replay_capacity)
        self._learner = Learner(self._replica, spec.config, threads=threads)
        self._rng = np.random.default_rng(np.random.SeedSequence((spec.seed, _MINIBATCHES)))
        self._agent_steps = 0
        self._told_of_refill = False
        self._refills = False
        """Whether it goes on without the replay it had, and that is still to be told."""

    def advance(self, progress: float, *, watched: bool) -> Advance:
        """`agent_steps_per_update` decisions and, once enough is remembered, an update."""
        c, actor = self.config, self._actor
        actor.play.watch(watched)
        told = Advance(agent_steps=c.agent_steps_per_update, frames=0, updates=0)
        epsilon = 1.0
        for _ in range(c.agent_steps_per_update):
            epsilon = annealed(1.0, c.exploration_eps, self._agent_steps, c.exploration_anneal_agent_steps)
            self._replica.pull()
            finished = actor.act(epsilon)
            self._agent_steps += 1
            told.frames += actor.frames
            if finished is not None:
                told.episodes.append(finished)
        if (picture := actor.play.take_picture()) is not None:
            told.pictures.append(picture)
        self._replay.add(actor.trajectory.take())
        told.internals = {"exploration/epsilon": epsilon, "replay/fill": self._replay.fill}
        if self._replay.holds(c.learning_starts_agent_steps):
            self._replica.sync_target(c.target_update_updates)
            batch = self._replay.sample(c.batch_size, self._rng)
            if batch is not None:
                told.internals |= self._learner.learn(batch)
                told.internals["optim/learning_rate"] = c.learning_rate
                told.updates = 1
        if self._refills:
            self._refills = False
            told.warnings.append(REFILLED)
        if not self._told_of_refill and self._replay.bytes_filled > CHECKPOINTED_REPLAY_BYTES:
            self._told_of_refill = True
            told.warnings.append(
                "the replay is larger than 256 MB and no longer kept with checkpoints: "
                "after a resume it is filled again before learning goes on"
            )
        return told

    def change(self, config: AlgorithmConfig) -> None:
        """Go on with other settings."""
        assert isinstance(config, DqnConfig)
        self.config = self._learner.config = config
        for shard in self._server.shards:
            shard.learning_rate = config.learning_rate

    def policy(self, seed: int) -> Policy:
        """The present policy."""
        self._replica.pull()
        return policy(self._spec, self._replica.network, self._replica.device, seed)

    def state(self) -> dict[str, Any]:
        """Parameters, target, accumulators, the actor's place in its episode, random states, the replay."""
        snapshot = join([shard.snapshot() for shard in self._server.shards])
        kept = self._replay.bytes_filled <= CHECKPOINTED_REPLAY_BYTES
        return {
            "theta": snapshot["theta"].cpu(),
            "shard": snapshot,
            "target": self._replica.target_state(),
            "actor": self._actor.state(),
            "learner": self._learner.state(),
            "rng": rng_state(self._rng, self._spec.seed),
            "agent_steps": self._agent_steps,
            "replay": {name: torch.from_numpy(array) for name, array in self._replay.state().items()}
            if kept
            else None,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`.

        Raises:
            ValueError: the state is of another network.
        """
        snapshots = split(state["shard"], self._server.bounds)
        for shard, its in zip(self._server.shards, snapshots, strict=True):
            shard.restore(its, life=shard.version.life + 1)
        self._replica.restore_target(state["target"])
        self._actor.restore(state["actor"])
        self._learner.restore(state["learner"])
        restore_rng(self._rng, state["rng"], self._spec.seed)
        self._agent_steps = state["agent_steps"]
        if state["replay"] is not None:
            self._replay.restore({name: tensor.numpy() for name, tensor in state["replay"].items()})
        self._refills = state["replay"] is None

    def close(self) -> None:
        """Close the world."""
        self._actor.close()
