"""The learner of PAAC's framework: the master of Clemente, Castejón and Chandra 2017 (section 3, Figure 1).

n_e environments are stepped together; actions for all of them come from one copy of theta, which after
t_max decisions of each environment is updated with the mean gradient of a `RolloutAlgorithm`'s loss over all
n_e t_max of them, by RMSProp with eps inside the root. Because acting and learning use the same parameters,
the activations of acting are kept for the backward pass: there is no second forward pass. An algorithm may
instead update theta several times from the same rollout, and by an optimizer of its own (`RolloutFactories`).

Differences from the paper:
- On a GPU, as in the paper, one master chooses all actions and n_w processes step the environments; while
  half of them step, the actions of the other half are computed, by the same theta. On a
  CPU each rollout worker also chooses the actions of its own environments and computes its part of the
  gradient, on one thread, from the one theta in shared memory; the parts are added in a fixed order and
  applied in one step. The update is the same; no core waits for another between the t_max decisions. There is
  at most one worker per core.
- `gradient_scale` multiplies the averaged gradient (1: as printed; the authors' code multiplies by 5).
- RMSProp's g starts at `rmsprop_initial_g`: 0 by default. The paper prints no value; in its authors' code,
  by TensorFlow, it is 1. With the printed eps of 0.1 the first steps are up to 3.3 times larger here.
- Rewards are clipped to ±`reward_clip`, as in Mnih et al. 2016, whose procedure the paper follows.
- A return stops at every terminal step within the rollout; Algorithm 1, line 12, tests only the last state.
- Observations differ as `workers.engine.envs.atari` describes; a run is one actor, not the best of three.
- A truncated episode (`max_frames` or a time limit) is not treated as terminated: the value of its last
  state, discounted, is added to its last reward.
- A decision in which the environment crashed is dropped; its state is bootstrapped from.
- With `centre`, off by default, observations are centred by the mean image of random play before training
  (`workers.engine.methods.random_play`). Its decisions are counted as frames, not as agent steps.
- The learning rate is constant, as printed, or annealed to 0 (Mnih et al. 2016), as configured. With
  `scale_learning_rate` it is multiplied by n_e/32: section 5.2 has 0.0007 n_e, which is 0.0224 for 32.
"""

import os
import time
from collections.abc import Sequence
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import Tensor

from backend.specs.algorithms.synchronous import SynchronousConfig
from backend.specs.run import RunSpec
from workers.engine.envs import make_env
from workers.engine.envs.info import Totals, add_totals
from workers.engine.methods.base import (
    Method,
    Policy,
    Samples,
    StepResult,
    check_network,
    gradient_norms,
)
from workers.engine.methods.paac.gpu_rollout import GpuRolloutWorker
from workers.engine.methods.paac.method import RolloutFactories, Slice
from workers.engine.methods.paac.remote import ParameterMemory, RemoteRolloutWorker
from workers.engine.methods.paac.rollout import RolloutResult, RolloutWorker, Timings
from workers.engine.methods.random_play import RandomPlay, centre
from workers.engine.nn.devices import Acceleration, acceleration_on, describe, resolve_device
from workers.engine.nn.optimizers import FlatParameters, clip_grad_norm_, load_kernels
from workers.engine.nn.schedules import learning_rate
from workers.engine.nn.seeds import episode_seed
from workers.engine.processes.child import preload
from workers.engine.processes.phases import COMPILING, enter_phase


class PaacLearner:
    """Trains a run by a method of the framework; see `workers.engine.methods.base.Learner`."""

    def __init__(
        self,
        spec: RunSpec,
        factories: RolloutFactories,
        *,
        acceleration: Acceleration | None = None,
        restored: bool = False,
    ) -> None:
        """Start what the run needs.

        Args:
            spec: the run.
            factories: builds the method's network, algorithm and config.
            acceleration: how a GPU is used; on a CPU, None for rollout workers of its own kind.
            restored: whether `restore` follows.
        """
        c: SynchronousConfig = factories.config_of(spec)
        self.config = c
        self._spec = spec
        self._factories = factories
        self._device = resolve_device(spec.device)
        self.device = describe(self._device)
        env = make_env(spec.environment, spec.environment_config)
        self.action_names = env.action_names
        torch.manual_seed(spec.seed)
        self.network = factories.network(c, env)
        self.network.to(self._device)
        env.close()
        workers = min(c.n_w, c.n_e, len(os.sched_getaffinity(0)))
        self.rollout_workers: Sequence[RolloutWorker | RemoteRolloutWorker]
        acceleration = acceleration_on(self._device, acceleration)
        if acceleration is not None or workers == 1:
            self.flat = FlatParameters(self.network)
            self.theta_minus = self.flat.theta.clone()
            parts = (self.network, self.flat, self.theta_minus)
        if acceleration is not None:
            self.rollout_workers = [
                GpuRolloutWorker(
                    spec,
                    factories,
                    *parts,
                    update=self._update,
                    acceleration=acceleration,
                    processes=workers if workers > 1 else 0,
                )
            ]
        elif workers == 1:
            self.rollout_workers = [RolloutWorker(spec, factories, Slice(0, c.n_e), *parts, processes=0)]
        else:
            n_parameters = sum(p.numel() for p in self.network.parameters())
            self.memory = ParameterMemory(workers, n_parameters)
            theta, self.theta_minus, self._dthetas = self.memory.views()
            theta.copy_(FlatParameters(self.network).theta)
            self.theta_minus.copy_(theta)
            self.flat = FlatParameters(self.network, theta=theta)
            bounds = [round(k * c.n_e / workers) for k in range(workers + 1)]
            preload("workers.engine.methods.registry", *(["workers.engine.nn.kernels"] if c.centre else []))
            self.rollout_workers = [
                RemoteRolloutWorker(spec, factories, Slice(bounds[k], bounds[k + 1]), self.memory, k)
                for k in range(workers)
            ]
            self.memory.close()  # every worker has it now
        self.n_rollout_workers: int | None = len(self.rollout_workers)
        self._frames = 0
        self._optimizer = factories.optimizer(c, self.flat.theta)
        enter_phase(COMPILING)
        load_kernels(self.flat.theta)
        for k, worker in enumerate(self.rollout_workers):
            enter_phase(f"starting {k + 1} of {len(self.rollout_workers)} rollout workers")
            worker.wait_ready()
        self.random_play: RandomPlay = centre(self.network, spec, restored=restored)
        self.theta_minus.copy_(self.flat.theta)

    def advance(self, progress: float, *, watched: bool) -> StepResult:
        """One pass of Algorithm 1's outer loop: a rollout and its updates."""
        c = self.config
        started = time.perf_counter()
        has_begun = self._frames > 0
        rate = learning_rate(c.step_size, c.learning_rate_schedule, progress)
        for worker in self.rollout_workers:
            worker.begin(self._frames, progress, watched=watched)
            if isinstance(worker, GpuRolloutWorker):
                worker.set_learning_rate(rate)
        results = [worker.finish() for worker in self.rollout_workers]
        gathered = time.perf_counter()
        n_updates = self._factories.updates(c)
        norm = results[0].grad_norm
        metrics = _sums([result.metrics for result in results])
        if norm is None:
            norm, metrics = self._update_theta(n_updates, rate, metrics)
        frames = sum(result.frames for result in results)
        self._count(frames)
        metrics |= {"optim/grad_norm": norm, "optim/learning_rate": rate}
        now = time.perf_counter()
        info: Totals = {}
        for result in results:
            add_totals(info, result.info)
        usage = time_usage(
            [result.spent for result in results], update_s=now - gathered, total_s=now - started
        )
        return StepResult(
            agent_steps=c.n_e * c.t_max,
            frames=frames,
            updates=n_updates,
            episodes=[episode for result in results for episode in result.episodes],
            metrics=metrics | usage,
            # In the first rollout all environments have the epsilon 1, whatever theirs is later.
            metrics_by_source=_exploration(results) if has_begun else {},
            info=info,
            live_frames=[frame for result in results for frame in result.live_frames],
        )

    def samples(self) -> Samples:
        """Actions, values and advantages of the latest rollout, and gradients of its last update."""
        parts = [worker.samples() for worker in self.rollout_workers]
        joined = {name: np.concatenate([np.ravel(part[name]) for part in parts]) for name in parts[0]}
        return joined | gradient_norms(self.network)

    def settle(self, progress: float) -> StepResult:
        """Nothing: no environment or worker runs between two calls of `advance`."""
        return StepResult(0, 0, 0)

    def _update_theta(
        self, n_updates: int, rate: float, metrics: dict[str, float]
    ) -> tuple[float, dict[str, float]]:
        """Update theta by each gradient of a rollout.

        Args:
            n_updates: how many there are.
            rate: the learning rate.
            metrics: of the first gradient, which the workers have computed.

        Returns:
            The mean norm of the gradients before clipping, and the means of their metrics.
        """
        norms, by_update = [], [metrics]
        for k in range(n_updates):
            if k:
                for worker in self.rollout_workers:
                    worker.begin_gradient()
                by_update.append(_sums([worker.finish_gradient() for worker in self.rollout_workers]))
            self._add_gradients()
            norms.append(self._update(rate).item())
        totals = _sums(by_update)
        return sum(norms) / n_updates, {name: total / n_updates for name, total in totals.items()}

    def _add_gradients(self) -> None:
        """Add the gradients of several workers, in a fixed order."""
        if len(self.rollout_workers) > 1:
            self.flat.dtheta.copy_(self._dthetas[0])
            for dtheta in self._dthetas[1:]:
                self.flat.dtheta.add_(dtheta)

    def _update(self, rate: float | Tensor) -> Tensor:
        """Line 18 of Algorithm 1: update theta by dtheta; returns its norm before clipping, a scalar."""
        c, dtheta = self.config, self.flat.dtheta
        norm = clip_grad_norm_(dtheta.mul_(c.gradient_factor), c.max_grad_norm)
        self._optimizer.step(dtheta, rate)
        return norm

    def change(self, config: SynchronousConfig) -> None:
        """Continue with this config."""
        self.config = config
        for worker in self.rollout_workers:
            worker.change(config)

    def policy(self, seed: int) -> Policy:
        """The current policy."""
        return self._factories.policy(self.network, self._device, seed)

    def state(self) -> dict[str, Any]:
        """Parameters, the optimizer's statistics, target network, and the state of each rollout worker."""
        state = {
            "theta": self.flat.theta.cpu().clone(),  # its own storage, without the workers' gradients
            **{name: value.cpu() for name, value in self._optimizer.statistics().items()},
            "shares": [worker.state() for worker in self.rollout_workers],
        }
        if self._factories.target_frames(self.config):
            state |= {"theta_minus": self.theta_minus.cpu().clone(), "frames": self._frames}
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state`: the same episodes where the environment replays quickly, else new ones.

        Raises:
            ValueError: the state is of another network.
        """
        check_network(len(state["theta"]), len(self.flat.theta))
        self.flat.theta.copy_(state["theta"])
        for name, value in self._optimizer.statistics().items():
            value.copy_(state[name])
        if self._factories.target_frames(self.config):
            self.theta_minus.copy_(state["theta_minus"])
            self._frames = state["frames"]
        own = [worker.state() for worker in self.rollout_workers]
        kept = state["shares"]
        if [_shape(worker) for worker in kept] != [_shape(worker) for worker in own]:
            # Other workers, environments or device (another host, a fork): seeds that were not used yet.
            begun = max(k for worker in kept for k in worker["episodes_begun"])
            kept = [
                {
                    "generator": self._generator(k, begun).get_state(),
                    "episodes_begun": [begun] * len(worker["episodes_begun"]),
                }
                for k, worker in enumerate(own)
            ]
        for worker, its_state in zip(self.rollout_workers, kept, strict=True):
            worker.restore(its_state)

    def close(self) -> None:
        """Stop every process it started."""
        for worker in self.rollout_workers:
            worker.close()

    def _count(self, frames: int) -> None:
        """Copy theta_minus <- theta whenever the frames pass a multiple of the target's period."""
        interval = self._factories.target_frames(self.config)
        before, self._frames = self._frames, self._frames + frames
        if interval and self._frames // interval > before // interval:
            self.theta_minus.copy_(self.flat.theta)

    def _generator(self, worker: int, begun: int) -> torch.Generator:
        seed = episode_seed(self._spec.seed, self.config.n_e + worker, begun)
        return torch.Generator(self._device).manual_seed(seed)


def time_usage(spent: list[Timings], *, update_s: float, total_s: float) -> dict[str, float]:
    """Fractions of the time of a rollout and its update, as in Figure 2; means over the workers.

    Args:
        spent: the timings of each worker.
        update_s: time in which the learner applied their gradients, which counts as learning.
        total_s: seconds of all parts; the rest is what no worker accounts for (waiting for each other,
            messages).
    """
    environment_s, choosing_s, learning_s = np.mean(spent, axis=0).tolist()
    known = {"environment": environment_s, "choosing": choosing_s, "learning": learning_s + update_s}
    known["rest"] = max(0.0, total_s - sum(known.values()))
    return {f"paac/time_{part}": part_s / total_s for part, part_s in known.items()}


def _sums(parts: list[dict[str, float]]) -> dict[str, float]:
    """The sums of equally named metrics; a worker has none of a rollout of crashes alone."""
    names = {name: None for part in parts for name in part}
    return {name: sum(part.get(name, 0.0) for part in parts) for name in names}


def _exploration(results: list[RolloutResult]) -> dict[str, dict[str, float]]:
    """Epsilon of each range of environments that have the same."""
    known = [result.epsilon_B for result in results if result.epsilon_B is not None]
    if not known:
        return {}
    metrics_by_source, first = {}, 0
    for epsilon, same in groupby(np.concatenate(known).tolist()):
        last = first + len(list(same)) - 1
        source = f"environments {first}-{last}" if last > first else f"environment {first}"
        metrics_by_source[source] = {"exploration/epsilon": epsilon}
        first = last + 1
    return metrics_by_source


def _shape(worker: dict[str, Any]) -> tuple[int, int]:
    return len(worker["episodes_begun"]), len(worker["generator"])


def synchronous_method(factories: RolloutFactories) -> Method:
    """The `METHOD` of an algorithm of PAAC's framework."""
    return Method(partial(PaacLearner, factories=factories), factories.network, factories.policy, factories)
