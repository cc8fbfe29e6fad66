"""A rollout worker for a GPU: few launches, few copies; some environments step while others get actions.

Read `workers.engine.methods.paac.rollout` first; this computes the same, faster:

- The environments are in groups that take turns: while one steps, the actions of another are computed. theta
  does not change within a rollout, so the order of the decisions changes nothing.
- An observation travels to the GPU once, as bytes, from the pinned memory that its environment wrote it to.
  The last observations of a rollout, which are bootstrapped from, are the first of the next.
- Acting in one group is one CUDA graph for each decision of a rollout: the observations' copy, the forward
  pass, the sampled actions, and the copy back. Learning is one graph: every gradient of the rollout, each
  with its update. See `workers.engine.nn.graphs.Graphs`.

On a CPU it computes the same without graphs, which is how it is tested there.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from backend.specs.algorithms.synchronous import SynchronousConfig
from backend.specs.run import RunSpec
from workers.engine.methods.base import Samples
from workers.engine.methods.paac.method import RolloutFactories, Slice
from workers.engine.methods.paac.rollout import Outcomes, RolloutResult, RolloutWorker, Timings
from workers.engine.nn.devices import Acceleration, create_stream, host_buffer, on_stream, pin, unpin
from workers.engine.nn.graphs import Graphs
from workers.engine.nn.optimizers import FlatParameters


class GpuRolloutWorker(RolloutWorker):
    """Steps all environments of a run, and updates theta by the gradients of each rollout."""

    def __init__(
        self,
        spec: RunSpec,
        factories: RolloutFactories,
        network: torch.nn.Module,
        flat: FlatParameters,
        theta_minus: Tensor,
        *,
        update: Callable[[Tensor], Tensor],
        acceleration: Acceleration,
        processes: int,
    ) -> None:
        """Build the environments.

        Args:
            spec: the run.
            factories: builds the method's network, algorithm and config.
            network: the network with the parameters of `flat`.
            flat: theta and its gradient.
            theta_minus: parameters of the target network, (P,).
            update: updates theta by `flat.dtheta` at a learning rate, a scalar, and returns the gradient's
                norm before clipping, a scalar.
            acceleration: how the GPU is used; environments that the groups do not divide, or too few for
                each process to have one of each group, are one group.
            processes: the number of processes that step the environments; 0 steps them in this process.
        """
        n_e = factories.config_of(spec).n_e
        groups = acceleration.groups
        if n_e % groups or n_e // groups < processes:
            groups = 1
        everywhere = Slice(0, n_e)
        super().__init__(
            spec, factories, everywhere, network, flat, theta_minus, processes=processes, groups=groups
        )
        self._update = update
        self._n_updates = factories.updates
        device, T = self._device, self._config.t_max
        is_recordable = acceleration.graphs and self._unroll.reuses_memory
        self.graphs = Graphs(device, self._generator, enabled=is_recordable)
        self._stream = create_stream(device)
        in_memory_B = self._env.shared.observation_SB[0]
        self._in_memory_B = pin(in_memory_B) if device.type == "cuda" else torch.from_numpy(in_memory_B)
        self._observation_B = torch.empty_like(self._in_memory_B, device=device)
        self._is_uploaded = False
        """Whether the observations that the next rollout begins with are on the GPU."""
        n_actions = len(self._env.action_names)
        action_B = self._env.shared.action_B  # integers, or (B, D) numbers
        dtype = torch.float32 if action_B.ndim > 1 else torch.int64
        self._action_TB = torch.zeros(T, *action_B.shape, dtype=dtype, device=device)
        self._log_pi_TB = torch.zeros(T, n_e, device=device)
        self._has_log_pi = False
        self._value_TB = torch.zeros(T, n_e, device=device)
        self._bootstrap_B = torch.zeros(n_e, device=device)
        self._chosen_B = host_buffer(*action_B.shape, dtype=dtype, device=device)
        self._value_B = host_buffer(n_e, dtype=torch.float32, device=device)
        self._policy_BA = host_buffer(n_e, n_actions, dtype=torch.float32, device=device)
        self._reward_TB = host_buffer(T, n_e, dtype=torch.float32, device=device)
        self._ended_TB = host_buffer(T, n_e, dtype=torch.bool, device=device)
        self._learning_rate = host_buffer(dtype=torch.float32, device=device)
        self._metrics: Tensor | None = None
        """The rollout's metrics, and the gradients' norm: means over its updates."""
        self._metric_names: list[str] = []

    def set_learning_rate(self, rate: float) -> None:
        """The learning rate of the next update."""
        self._learning_rate.fill_(rate)

    def change(self, config: SynchronousConfig) -> None:
        """Continue with this config."""
        super().change(config)
        self.graphs.forget("learn")

    def samples(self) -> Samples:
        """See `RolloutWorker`."""
        if self._latest is not None:  # not what a graph has recorded, but what it reads
            on_device = (part.to(self._device) for part in (self._reward_TB, self._ended_TB))
            self._latest = (self._action_TB.flatten(0, 1), self._value_TB, *on_device, self._bootstrap_B)
        return super().samples()

    def restore(self, state: dict[str, Any]) -> None:
        """See `RolloutWorker`."""
        super().restore(state)
        self._is_uploaded = False

    def finish(self) -> RolloutResult:
        """Lines 4 to 18 of Algorithm 1: a rollout, and the updates by its gradients."""
        with on_stream(self._stream):
            return self._finish()

    def close(self) -> None:
        """Close the environments, and let go of their memory."""
        super().close()
        if self._stream is not None:
            # After an error of CUDA, which is why the run ends, every call raises it again.
            with suppress(RuntimeError):
                self._stream.synchronize()
                unpin(self._in_memory_B)

    def _finish(self) -> RolloutResult:
        T, groups = self._config.t_max, list(enumerate(self._env.groups))
        result = self._new_result()
        crashed_TB = np.empty((T, self._B), np.bool_)
        outcomes = Outcomes(self._reward_TB.numpy(), self._ended_TB.numpy(), crashed_TB)
        environment_s = choosing_s = 0.0
        if not self._is_uploaded:
            for _, group in groups:
                self.upload(group)
            self._is_uploaded = True
        for t in range(T + 1):
            for g, group in groups:
                if t:
                    environment_s += self._await_group(t - 1, g, outcomes, result)
                started = time.perf_counter()
                if t < T:
                    self.graphs.run(("act", t, g), partial(self._act, t, g))
                    self._wait()
                    chosen = time.perf_counter()
                    self._env.begin_step(self._chosen_B[group].numpy(), 0, g)
                    environment_s += time.perf_counter() - chosen
                else:
                    self.graphs.run(("bootstrap", g), partial(self._bootstrap, group))
                    chosen = time.perf_counter()
                choosing_s += chosen - started
        started = time.perf_counter()
        self._learn_from(crashed_TB, result)
        result.info = self._env.take_info()
        result.spent = Timings(environment_s, choosing_s, time.perf_counter() - started)
        return result

    def _await_group(self, t: int, g: int, outcomes: Outcomes, result: RolloutResult) -> float:
        """Wait until a group has taken decision t, and return the seconds waited."""
        started = time.perf_counter()
        finished = self._env.finish_step(g)
        waited_s = time.perf_counter() - started
        group = self._env.groups[g]
        action_B = self._chosen_B[group].numpy()
        if self._records and g == 0:
            i = self._recorded
            self._record(action_B, float(self._value_B[i]), self._policy_BA[i].numpy().copy())
        self._receive(t, group, action_B, finished, outcomes, result)
        return waited_s

    @torch.no_grad()
    def _act(self, t: int, g: int) -> None:
        """Choose the actions of decision t in a group, and copy them to this computer's memory."""
        group = self._env.groups[g]
        if t == 0 and g == 0:
            self._unroll.begin()
        observation_B = self.upload(group) if t else self._observation_B[group]
        choice = self._algorithm.choose(self._features(observation_B, t, group), group)
        self._action_TB[t, group] = choice.action_B
        self._value_TB[t, group] = choice.value_B
        if choice.log_pi_B is not None:
            self._has_log_pi = True
            self._log_pi_TB[t, group] = choice.log_pi_B
        self._chosen_B[group].copy_(choice.action_B, non_blocking=True)
        self._value_B[group].copy_(choice.value_B, non_blocking=True)
        self._policy_BA[group].copy_(choice.policy_BA, non_blocking=True)

    @torch.no_grad()
    def _bootstrap(self, group: slice) -> None:
        """The value of the state after the rollout, in a group."""
        self._bootstrap_B[group] = self._algorithm.value(self.upload(group))

    def upload(self, group: slice) -> Tensor:
        """Copy a group's newest observations to the GPU, and return them."""
        return self._observation_B[group].copy_(self._in_memory_B[group], non_blocking=True)

    def _learn_from(self, crashed_TB: NDArray[np.bool_], result: RolloutResult) -> None:
        """Update theta, and add the rollout's metrics to the result."""
        if crashed_TB.any():
            names, means = self._learn(crashed_TB)
        else:
            self.graphs.run("learn", self._learn_from_all)
            self._wait()
            assert self._metrics is not None
            names, means = self._metric_names, self._metrics
        *metrics, result.grad_norm = means.tolist()
        result.metrics = dict(zip(names, metrics, strict=True))

    def _learn_from_all(self) -> None:
        """As `_learn`, for a rollout in which no environment crashed."""
        names, means = self._learn()
        if self._metrics is None:
            self._metric_names = names
            self._metrics = host_buffer(len(means), dtype=torch.float32, device=self._device)
        self._metrics.copy_(means, non_blocking=True)

    def _learn(self, crashed_TB: NDArray[np.bool_] | None = None) -> tuple[list[str], Tensor]:
        """Compute every gradient of the rollout, and update theta by each.

        Args:
            crashed_TB: the decisions to drop; None for none.

        Returns:
            Names of the metrics, and their means over the updates, with that of the gradients' norms behind.
        """
        device = self._device
        self._begin_learning(
            self._action_TB.flatten(0, 1),
            self._log_pi_TB.view(-1) if self._has_log_pi else None,
            self._value_TB,
            self._reward_TB.to(device, non_blocking=True),
            self._ended_TB.to(device, non_blocking=True),
            self._bootstrap_B,
            crashed_TB,
        )
        rate = self._learning_rate.to(device, non_blocking=True)
        by_update = []
        for _ in range(self._n_updates(self._config)):
            metrics = self._next_gradient()
            norm = self._update(rate)
            by_update.append(torch.stack([*metrics.values(), norm]).detach())
        means = torch.stack(by_update).mean(0)
        means[:-1] *= self._share
        return list(metrics), means

    def _wait(self) -> None:
        """Wait until the GPU has done all that was launched."""
        if self._stream is not None:
            self._stream.synchronize()
