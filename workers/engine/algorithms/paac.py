"""PAAC: parallel advantage actor-critic (Clemente, Castejón and Chandra 2017, Algorithm 1).

n_e environments are stepped together; actions for all of them come from one copy of theta, which after
t_max decisions of each environment is updated with

    d theta   = 1/(n_e t_max) sum_i sum_t (R_t,i - v_t,i) grad log pi(a_t,i | s_t,i) + beta grad H(pi(s_t,i))
    d theta_v = 1/(n_e t_max) sum_i sum_t grad (R_t,i - V(s_t,i))^2

by RMSProp with eps inside the root. Because acting and learning use the same parameters, the activations
of acting are kept and the backward pass goes through them: no second forward pass.

Differences from the paper:
- On a GPU, as in the paper, one master chooses all actions and n_w processes step the environments. On a
  CPU each worker also chooses the actions of its own environments and computes its share of the sum above,
  on one thread, from the one theta in shared memory; the shares are added in a fixed order and applied at
  once. The update is the same; no core waits for another between the t_max decisions. There is at most one
  worker a core.
- Policy and value share one network (the paper's section 5.1), so one gradient holds both terms; its value
  term has the weight `value_coefficient` (1: as printed).
- `gradient_scale` multiplies the averaged gradient (1: as printed; the authors' code multiplies by 5).
- Rewards are clipped to ±`reward_clip`, as in Mnih et al. 2016, whose procedure the paper follows.
- A return stops at every terminal step within the rollout; Algorithm 1, line 12, tests only the last state.
- The pictures differ as told in `workers.engine.envs.atari`; a run is one actor, not the best of three.
- An episode that is cut off, by `max_frames` or a time limit, is not taken as terminal: the value of its
  last state, discounted, is added to its last reward.
- The learning rate is constant, as printed, or annealed to 0 (Mnih et al. 2016) where so set.
"""

import os
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from backend.specs.algorithms import AlgorithmConfig
from backend.specs.algorithms.paac import PaacConfig
from backend.specs.run import RunSpec
from workers.engine.algorithms.paac_share import Share, ShareInProcess, ShareResult, Slice
from workers.engine.devices import resolve_device
from workers.engine.envs import make_world
from workers.engine.envs.base import World
from workers.engine.learner import Advance, Policy
from workers.engine.memory import SharedVectors
from workers.engine.networks import ActorCritic, actor_critic
from workers.engine.optimizers import FlatParameters, RMSProp, clip_grad_norm_
from workers.engine.policies import SampledPolicy
from workers.engine.schedules import linear
from workers.engine.seeds import episode_seed


def network(spec: RunSpec, world: World) -> ActorCritic:
    """The network of a run."""
    assert isinstance(spec.config, PaacConfig)
    return actor_critic(spec.config.network, world.observation_shape, len(world.action_names))


def policy(spec: RunSpec, network: nn.Module, device: torch.device, seed: int) -> Policy:
    """Samples from pi, with randomness of its own."""
    assert isinstance(network, ActorCritic)
    return SampledPolicy(network, device, seed)


class Paac:
    """The algorithm at work; see `workers.engine.learner.Learner`."""

    def __init__(self, spec: RunSpec) -> None:
        assert isinstance(spec.config, PaacConfig)
        self.config = c = spec.config
        self._spec = spec
        self._seed = spec.seed
        self._device = resolve_device(spec.device)
        self.device = str(self._device)
        world = make_world(spec.environment, spec.environment_config)
        self.action_names = world.action_names
        torch.manual_seed(spec.seed)
        self.network = network(spec, world)
        self.network.to(self._device)
        world.close()
        workers = min(c.n_w, c.n_e, len(os.sched_getaffinity(0)))
        self._shares: Sequence[Share | ShareInProcess]
        if self._device.type == "cuda" or workers == 1:
            self._flat = FlatParameters(self.network)
            processes = workers if self._device.type == "cuda" else 0
            self._shares = [
                Share(spec, Slice(0, c.n_e), self.network, self._flat, self._device, processes=processes)
            ]
        else:
            n_parameters = sum(p.numel() for p in self.network.parameters())
            self._memory = SharedVectors(1 + workers, n_parameters)
            theta, *dthetas = self._memory.vectors()
            theta.copy_(FlatParameters(self.network).theta)
            self._flat = FlatParameters(self.network, theta=theta)
            bounds = [round(k * c.n_e / workers) for k in range(workers + 1)]
            self._shares = [
                ShareInProcess(spec, Slice(bounds[k], bounds[k + 1]), self._memory, theta, dthetas[k], k)
                for k in range(workers)
            ]
            self._memory.close()  # every share has it now
        self._optimizer = RMSProp(self._flat.theta, decay=c.rmsprop_decay, eps=c.rmsprop_eps)
        for share in self._shares:
            share.wait_ready()

    def advance(self, progress: float, *, watched: bool) -> Advance:
        """One pass of Algorithm 1's outer loop: a rollout and an update."""
        c = self.config
        for share in self._shares:
            share.begin(watched=watched)
        results = [share.finish() for share in self._shares]
        if len(results) > 1:
            self._flat.dtheta.copy_(results[0].dtheta)
            for result in results[1:]:
                self._flat.dtheta.add_(result.dtheta)
        norm = clip_grad_norm_(self._flat.dtheta.mul_(c.gradient_scale), c.max_grad_norm)
        learning_rate = c.learning_rate
        if c.learning_rate_schedule == "linear":
            learning_rate = linear(c.learning_rate, progress)
        self._optimizer.step(self._flat.dtheta, learning_rate)
        return Advance(
            agent_steps=c.n_e * c.t_max,
            frames=sum(result.frames for result in results),
            updates=1,
            episodes=[episode for result in results for episode in result.episodes],
            internals=self._internals(results, norm.item(), learning_rate),
            pictures=[picture for result in results for picture in result.pictures],
        )

    def change(self, config: AlgorithmConfig) -> None:
        """Go on with other settings."""
        assert isinstance(config, PaacConfig)
        self.config = config
        for share in self._shares:
            share.change(config)

    def policy(self, seed: int) -> Policy:
        """The present policy."""
        return policy(self._spec, self.network, self._device, seed)

    def state(self) -> dict[str, Any]:
        """Parameters, accumulator, random states and episode counts of the shares."""
        return {
            "theta": self._flat.theta.clone(),  # its own storage, not the shares' gradients beside it
            "g": self._optimizer.g,
            "shares": [share.state() for share in self._shares],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`; every environment begins a new episode.

        Raises:
            ValueError: the state is of another network.
        """
        if state["theta"].shape != self._flat.theta.shape:
            raise ValueError("the checkpoint is of another network")
        self._flat.theta.copy_(state["theta"])
        self._optimizer.g.copy_(state["g"])
        own = [share.state() for share in self._shares]
        kept = state["shares"]
        if [_shape(share) for share in kept] != [_shape(share) for share in own]:
            # Other workers, environments or device (another machine, a fork): randomness not yet used.
            begun = max(k for share in kept for k in share["episodes_begun"])
            kept = [
                {
                    "generator": self._generator(k, begun).get_state(),
                    "episodes_begun": [begun] * len(share["episodes_begun"]),
                }
                for k, share in enumerate(own)
            ]
        for share, its in zip(self._shares, kept, strict=True):
            share.restore(its)

    def close(self) -> None:
        """End every process it started."""
        for share in self._shares:
            share.close()

    def _generator(self, share: int, begun: int) -> torch.Generator:
        seed = episode_seed(self._seed, self.config.n_e + share, begun)
        return torch.Generator(self._device).manual_seed(seed)

    def _internals(self, results: list[ShareResult], norm: float, learning_rate: float) -> dict[str, float]:
        losses = {
            name: sum(result.losses[name] for result in results)
            for name in ("loss/policy", "loss/value", "loss/entropy")
        }
        return losses | {"optim/grad_norm": norm, "optim/learning_rate": learning_rate}


def _shape(share: dict[str, Any]) -> tuple[int, int]:
    return len(share["episodes_begun"]), len(share["generator"])
