"""The parallel framework of Clemente, Castejón and Chandra 2017 (section 3, Figure 1): its master.

n_e environments are stepped together; actions for all of them come from one copy of theta, which after
t_max decisions of each environment is updated with the mean gradient of a `Method`'s loss over all n_e t_max
of them, by RMSProp with eps inside the root. Because acting and learning use the same parameters, the
activations of acting are kept and the backward pass goes through them: no second forward pass.

Differences from the paper:
- On a GPU, as in the paper, one master chooses all actions and n_w processes step the environments. On a
  CPU each worker also chooses the actions of its own environments and computes its share of the sum above,
  on one thread, from the one theta in shared memory; the shares are added in a fixed order and applied at
  once. The update is the same; no core waits for another between the t_max decisions. There is at most one
  worker a core.
- `gradient_scale` multiplies the averaged gradient (1: as printed; the authors' code multiplies by 5).
- Rewards are clipped to ±`reward_clip`, as in Mnih et al. 2016, whose procedure the paper follows.
- A return stops at every terminal step within the rollout; Algorithm 1, line 12, tests only the last state.
- The pictures differ as told in `workers.engine.envs.atari`; a run is one actor, not the best of three.
- An episode that is cut off, by `max_frames` or a time limit, is not taken as terminal: the value of its
  last state, discounted, is added to its last reward.
- The learning rate is constant, as printed, or annealed to 0 (Mnih et al. 2016) where so set. With
  `scale_learning_rate` it is multiplied by n_e/32: section 5.2 has 0.0007 n_e, which is 0.0224 for 32.
"""

import os
import time
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
import torch

from backend.specs.algorithms import AlgorithmConfig
from backend.specs.algorithms.synchronous import SynchronousConfig
from backend.specs.run import RunSpec
from workers.engine.algorithms.paac_method import MethodMaker, Slice
from workers.engine.algorithms.paac_share import Share, ShareInProcess, ShareResult, Spent
from workers.engine.devices import describe, resolve_device
from workers.engine.envs import make_world
from workers.engine.learner import Advance, Policy
from workers.engine.memory import SharedVectors
from workers.engine.optimizers import FlatParameters, RMSProp, clip_grad_norm_
from workers.engine.schedules import linear
from workers.engine.seeds import episode_seed

PRINTED_N_E = 32
"""Environments for which the paper prints its learning rate."""


class Master:
    """A method of the framework at work; see `workers.engine.learner.Learner`."""

    def __init__(self, spec: RunSpec, maker: MethodMaker) -> None:
        assert isinstance(spec.config, SynchronousConfig)
        self.config = c = spec.config
        self._spec = spec
        self._maker = maker
        self._device = resolve_device(spec.device)
        self.device = describe(self._device)
        world = make_world(spec.environment, spec.environment_config)
        self.action_names = world.action_names
        torch.manual_seed(spec.seed)
        self.network = maker.network(spec, world)
        self.network.to(self._device)
        world.close()
        workers = min(c.n_w, c.n_e, len(os.sched_getaffinity(0)))
        self._shares: Sequence[Share | ShareInProcess]
        if self._device.type == "cuda" or workers == 1:
            self._flat = FlatParameters(self.network)
            self._theta_minus = self._flat.theta.clone()
            processes = workers if self._device.type == "cuda" else 0
            whole = Slice(0, c.n_e)
            self._shares = [
                Share(spec, maker, whole, self.network, self._flat, self._theta_minus, processes=processes)
            ]
        else:
            n_parameters = sum(p.numel() for p in self.network.parameters())
            self._memory = SharedVectors(2 + workers, n_parameters)
            theta, self._theta_minus, *dthetas = self._memory.vectors()
            theta.copy_(FlatParameters(self.network).theta)
            self._theta_minus.copy_(theta)
            self._flat = FlatParameters(self.network, theta=theta)
            bounds = [round(k * c.n_e / workers) for k in range(workers + 1)]
            self._shares = [
                ShareInProcess(spec, maker, Slice(bounds[k], bounds[k + 1]), self._memory, dthetas[k], k)
                for k in range(workers)
            ]
            self._memory.close()  # every share has it now
        self._frames = 0
        self._optimizer = RMSProp(self._flat.theta, decay=c.rmsprop_decay, eps=c.rmsprop_eps)
        for share in self._shares:
            share.wait_ready()

    def advance(self, progress: float, *, watched: bool) -> Advance:
        """One pass of Algorithm 1's outer loop: a rollout and an update."""
        c = self.config
        began = time.perf_counter()
        for share in self._shares:
            share.begin(self._frames, watched=watched)
        results = [share.finish() for share in self._shares]
        gathered = time.perf_counter()
        if len(results) > 1:
            self._flat.dtheta.copy_(results[0].dtheta)
            for result in results[1:]:
                self._flat.dtheta.add_(result.dtheta)
        norm = clip_grad_norm_(self._flat.dtheta.mul_(c.gradient_scale), c.max_grad_norm)
        learning_rate = c.learning_rate * (c.n_e / PRINTED_N_E if c.scale_learning_rate else 1)
        if c.learning_rate_schedule == "linear":
            learning_rate = linear(learning_rate, progress)
        self._optimizer.step(self._flat.dtheta, learning_rate)
        frames = sum(result.frames for result in results)
        self._count(frames)
        told = {metric: sum(result.told[metric] for result in results) for metric in results[0].told}
        told |= {"optim/grad_norm": norm.item(), "optim/learning_rate": learning_rate}
        now = time.perf_counter()
        usage = time_usage([result.spent for result in results], update_s=now - gathered, total_s=now - began)
        return Advance(
            agent_steps=c.n_e * c.t_max,
            frames=frames,
            updates=1,
            episodes=[episode for result in results for episode in result.episodes],
            internals=told | usage,
            of_sources=_exploration(results),
            pictures=[picture for result in results for picture in result.pictures],
        )

    def change(self, config: AlgorithmConfig) -> None:
        """Go on with other settings."""
        assert isinstance(config, SynchronousConfig)
        self.config = config
        for share in self._shares:
            share.change(config)

    def policy(self, seed: int) -> Policy:
        """The present policy."""
        return self._maker.policy(self._spec, self.network, self._device, seed)

    def state(self) -> dict[str, Any]:
        """Parameters, accumulator, target, random states and episode counts of the shares."""
        state = {
            "theta": self._flat.theta.clone(),  # its own storage, not the shares' gradients beside it
            "g": self._optimizer.g,
            "shares": [share.state() for share in self._shares],
        }
        if self._maker.target_frames(self.config):
            state |= {"theta_minus": self._theta_minus.clone(), "frames": self._frames}
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`: where a world is soon replayed in the same episodes, elsewhere in new ones.

        Raises:
            ValueError: the state is of another network.
        """
        if state["theta"].shape != self._flat.theta.shape:
            raise ValueError("the checkpoint is of another network")
        self._flat.theta.copy_(state["theta"])
        self._optimizer.g.copy_(state["g"])
        if self._maker.target_frames(self.config):
            self._theta_minus.copy_(state["theta_minus"])
            self._frames = state["frames"]
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

    def _count(self, frames: int) -> None:
        """Copy theta_minus <- theta whenever the frames pass a multiple of the target's period."""
        every = self._maker.target_frames(self.config)
        before, self._frames = self._frames, self._frames + frames
        if every and self._frames // every > before // every:
            self._theta_minus.copy_(self._flat.theta)

    def _generator(self, share: int, begun: int) -> torch.Generator:
        seed = episode_seed(self._spec.seed, self.config.n_e + share, begun)
        return torch.Generator(self._device).manual_seed(seed)


def time_usage(spent: list[Spent], *, update_s: float, total_s: float) -> dict[str, float]:
    """Shares of the time of a rollout and its update, as Figure 2 has them; means over the workers.

    Args:
        spent: what each worker did.
        update_s: time in which the master applied their gradients, which is learning too.
        total_s: time of all; what no worker accounts for is the rest (waiting for each other, messages).
    """
    environment_s, choosing_s, learning_s = np.mean(spent, axis=0).tolist()
    known = {"environment": environment_s, "choosing": choosing_s, "learning": learning_s + update_s}
    known["rest"] = max(0.0, total_s - sum(known.values()))
    return {f"paac/time_{part}": part_s / total_s for part, part_s in known.items()}


def _exploration(results: list[ShareResult]) -> dict[str, dict[str, float]]:
    """Share of random actions, for each run of environments that have the same."""
    known = [result.epsilon_B for result in results if result.epsilon_B is not None]
    if not known:
        return {}
    told, first = {}, 0
    for epsilon, same in groupby(np.concatenate(known).tolist()):
        last = first + len(list(same)) - 1
        source = f"environments {first}-{last}" if last > first else f"environment {first}"
        told[source] = {"exploration/epsilon": epsilon}
        first = last + 1
    return told


def _shape(share: dict[str, Any]) -> tuple[int, int]:
    return len(share["episodes_begun"]), len(share["generator"])
