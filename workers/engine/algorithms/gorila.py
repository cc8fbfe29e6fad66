"""Gorila DQN (Nair et al. 2015, Algorithm 1): actors, learners, replay and parameters in many processes.

Each actor plays epsilon-greedily by its copy theta of theta+ and stores what it sees; each learner draws a
minibatch, computes DQN's gradient by theta and its target network theta_minus (equation 2), and sends it to
the parameter server, whose shards each apply their part by AdaGrad. theta <- theta+ before every
`pull_interval`-th decision or update, if theta+ has changed; theta_minus <- theta+ after every N updates of
the server. A shard discards gradients by parameters that are too old, a learner those of outlying losses
(section 4.2). epsilon is annealed over the server's updates.

The parts are plain classes (`workers.engine.gorila`), in processes that Ray starts, spreads over its
machines, and starts again when they die. This engine hears them, keeps each shard's newest snapshot, and
gives it back to a shard that has died; what was applied since is lost, and counted. Learners go on meanwhile
with the other shards, and leave the missing part of theta as it is.

Differences from the paper:
- Actors and learners in one process share their copies of theta and theta_minus, and take turns.
- theta_minus is copied when a learner first looks after N updates; one that takes a dead learner's place
  begins with theta+.
- The error is clipped to ±1, as DQN's is, to which section 4.1 refers; Algorithm 1 prints no clip.
- A bundle learns once in `agent_steps_per_update` decisions, as DQN; Algorithm 1 prints every decision.
  Actors and learners that are not bundled do not wait for each other.
- `replay_capacity` is for all replay shards together.
- What the paper does not print is a setting: learning rate, the bounds of staleness and of outliers.
- Replay is not kept with checkpoints, but filled again after a resume before learning goes on.
- The pictures differ as told in `workers.engine.envs.atari`, and the weights begin as told in
  `workers.engine.networks`.
"""

import time
from typing import Any

import torch

from backend.specs.algorithms import AlgorithmConfig
from backend.specs.algorithms.gorila import GorilaConfig
from backend.specs.run import RunSpec
from workers.engine.algorithms import dqn
from workers.engine.envs import make_world
from workers.engine.gorila.books import Books
from workers.engine.gorila.fleet import Fleet
from workers.engine.gorila.hosts import Order
from workers.engine.gorila.parameters import bounds, join, split
from workers.engine.learner import Advance, Policy
from workers.engine.optimizers import FlatParameters

ADVANCE_S = 0.25
"""How long the training loop leaves the parts to themselves before it looks for stops and changes."""


class Gorila:
    """The algorithm at work; see `workers.engine.learner.Learner`.

    Parts work only between the beginning of `advance` and the next `policy` or `state`.
    """

    device = "cpu"

    def __init__(self, spec: RunSpec) -> None:
        assert isinstance(spec.config, GorilaConfig)
        self._spec = spec
        self.config = spec.config
        world = make_world(spec.environment, spec.environment_config)
        self.action_names = world.action_names
        torch.manual_seed(spec.seed)
        self.network = dqn.network(spec, world)
        world.close()
        self._flat = FlatParameters(self.network)
        self._bounds = bounds(len(self._flat.theta), self.config.n_shards)
        self._books = Books()
        self._fleet = Fleet(spec, self._bounds, self._books)
        try:
            initial = {"theta": self._flat.theta, "statistics": {}, "updates": 0}
            self._fleet.fill(split(initial, self._bounds))
        except BaseException:
            self.close()
            raise

    def advance(self, progress: float, *, watched: bool) -> Advance:
        """Let the parts work for a moment; tell what they did."""
        bound = self._spec.stop.agent_steps
        began = time.monotonic()
        self._fleet.work_until(
            began + ADVANCE_S,
            Order(
                self.config,
                seconds=ADVANCE_S,
                agent_steps=self._books.left(bound),
                watched=watched,
                episodes_begun=self._books.episodes_begun,
            ),
        )
        if self._books.left(bound) == 0:
            self._fleet.rest()
        return self._books.take(time.monotonic() - began, self.config)

    def change(self, config: AlgorithmConfig) -> None:
        """Go on with other settings."""
        assert isinstance(config, GorilaConfig)
        self.config = config

    def policy(self, seed: int) -> Policy:
        """The present policy, from what the shards have now."""
        theta = torch.cat([its["theta"] for its in self._fleet.rested_snapshots()])
        self._flat.theta.copy_(theta)
        return dqn.policy(self._spec, self.network, torch.device("cpu"), seed)

    def state(self) -> dict[str, Any]:
        """Parameters, the optimizer's memory, counts."""
        return join(self._fleet.rested_snapshots()) | {"counts": self._books.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`, with however many parts there are now; every actor begins a new episode.

        Raises:
            ValueError: the state is of another network.
        """
        snapshots = split(state, self._bounds)
        self._books.restore(state["counts"], state["updates"])
        self._books.warn(dqn.REFILLED)
        self._fleet.fill(snapshots)

    def close(self) -> None:
        """End every process."""
        self._fleet.close()
