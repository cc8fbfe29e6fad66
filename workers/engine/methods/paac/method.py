"""An algorithm of PAAC's framework (Clemente et al. 2017, section 3), as the framework calls it.

The framework steps environments, counts frames, and updates theta by an algorithm's optimizer. A
`RolloutAlgorithm` chooses actions, bootstraps the state after the rollout, and computes gradients from the
rollout's `RolloutBatch`: one, from the activations of acting (`SinglePass`), or one after the other, from
observations that were kept.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from backend.specs.algorithms.synchronous import RmsPropConfig
from workers.engine.methods.base import (
    AlgorithmFactories,
    ConfigT,
    ConfigT_contra,
    MethodContext,
    NetworkT,
)
from workers.engine.nn.autograd import Unroll
from workers.engine.nn.optimizers import RMSProp
from workers.engine.nn.returns import n_step_returns


class Slice(NamedTuple):
    """Environments `first` to `last - 1` of the run's n_e."""

    first: int
    last: int


class BatchDecision(NamedTuple):
    """Actions of B environments and what they were chosen by: V or max Q, and pi or Q of every action."""

    action_B: Tensor
    value_B: Tensor
    policy_BA: Tensor
    """Means (B, D), if actions are continuous."""
    log_pi_B: Tensor | None = None
    """log pi(a|s) of the actions, for a method that learns from it."""


class RolloutBatch(NamedTuple):
    """What the B environments of a worker did in T decisions, N = T B of them, those of one time together."""

    features_NF: Tensor | None
    """Features of the states, a leaf whose gradient `Unroll.backward` takes; None with `observation_N`."""
    observation_N: Tensor | None
    """The states, (N, …), if the algorithm keeps observations."""
    action_N: Tensor
    log_pi_N: Tensor | None
    value_TB: Tensor
    """V(s_t) or max Q, as of acting."""
    reward_TB: Tensor
    """Clipped. Where an episode was truncated, the discounted value of its last state is added; where the
    environment crashed, it is the value of the state."""
    ended_TB: Tensor
    """Whether the return stops here: the episode was terminated, or truncated, or the environment crashed."""
    bootstrap_B: Tensor
    """The value of the state after the rollout."""
    kept_N: Tensor | None
    """Indices of the decisions to learn from, in which no environment crashed, at least one. None: all."""
    share: float
    """Fraction of the run's decisions that they are. The mean over all is the sum over the workers of `share`
    times the mean over their own."""


class RolloutAlgorithm(Protocol[ConfigT_contra]):
    """One algorithm of the framework in one rollout worker; it acts and learns by the one theta."""

    keeps_observations: bool
    """Whether batches have observations, for several gradients, instead of activations, for one."""

    def change(self, config: ConfigT_contra) -> None:
        """Continue with this config; only live fields differ."""

    def begin(self, frames: int, progress: float) -> NDArray[np.float64] | None:
        """Begin a rollout.

        Args:
            frames: emulator frames of the run so far.
            progress: as of `Learner.advance`.

        Returns:
            Each environment's epsilon (B,), if the method explores epsilon-greedily.
        """

    def choose(self, features_BF: Tensor, group: slice) -> BatchDecision:
        """Choose actions for a group of the worker's environments, given their current states' features."""

    def value(self, observation_B: Tensor) -> Tensor:
        """Values (B,) of states that are not in the rollout."""

    def advantages(
        self, reward_TB: Tensor, ended_TB: Tensor, value_TB: Tensor, bootstrap_B: Tensor
    ) -> Tensor | None:
        """What the policy's gradient is weighted by, (T, B); None without one. Arguments as of a batch."""

    def gradients(self, batch: RolloutBatch) -> Iterator[dict[str, Tensor]]:
        """Add the gradient of each update in turn to the parameters' `grad`, which is 0 before.

        Each is `batch.share` times that of a mean loss over decisions of the batch. theta is updated between
        two of them, after the gradients of all workers were added.

        Returns:
            For each of `RolloutFactories.updates` its metrics: name -> mean over the decisions.
        """


@dataclass(frozen=True)
class RolloutContext(MethodContext[ConfigT, NetworkT]):
    """What a method is created from, in a rollout worker."""

    unroll: Unroll
    """The network's body. The framework acts by it: by `step`, or by `peek` where observations are kept."""
    environments: Slice
    generator: torch.Generator
    """The worker's randomness, which is saved and restored."""


class SinglePass(ABC, Generic[ConfigT, NetworkT]):
    """Learns once from each rollout, by the activations of acting."""

    keeps_observations = False

    def __init__(self, context: RolloutContext[ConfigT, NetworkT]) -> None:
        self._config: Any = context.config
        self._network = context.network
        self._unroll = context.unroll
        self._generator = context.generator

    def returns(self, batch: RolloutBatch) -> Tensor:
        """R of each decision (T, B), by n-step returns."""
        return n_step_returns(batch.reward_TB, batch.ended_TB, batch.bootstrap_B, self._config.gamma)

    def advantages(
        self, reward_TB: Tensor, ended_TB: Tensor, value_TB: Tensor, bootstrap_B: Tensor
    ) -> Tensor | None:
        """R - V."""
        return n_step_returns(reward_TB, ended_TB, bootstrap_B, self._config.gamma) - value_TB

    @abstractmethod
    def loss(self, features_NF: Tensor, action_N: Tensor, R_N: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Mean loss of N decisions with returns R, and its metrics: name -> mean over the decisions."""

    def gradients(self, batch: RolloutBatch) -> Iterator[dict[str, Tensor]]:
        """See `RolloutAlgorithm`."""
        features_NF, kept = batch.features_NF, batch.kept_N
        assert features_NF is not None
        R_N = self.returns(batch).flatten()
        if kept is None:
            loss, metrics = self.loss(features_NF, batch.action_N, R_N)
        else:
            loss, metrics = self.loss(features_NF[kept], batch.action_N[kept], R_N[kept])
        (loss * batch.share).backward()  # type: ignore[no-untyped-call]
        assert features_NF.grad is not None
        self._unroll.backward(features_NF.grad)
        yield metrics

    def change(self, config: ConfigT) -> None:
        """Continue with this config."""
        self._config = config


class RolloutOptimizer(Protocol):
    """Updates theta in place by a gradient."""

    def step(self, dtheta: Tensor, learning_rate: float | Tensor) -> None:
        """One update; arguments as for `RMSProp.step`."""

    def statistics(self) -> dict[str, Tensor]:
        """Its running statistics by name; checkpoints store them."""


def papers_rmsprop(config: RmsPropConfig, theta: Tensor) -> RolloutOptimizer:
    """RMSProp with eps inside the root."""
    return RMSProp(
        theta, decay=config.rmsprop_decay, eps=config.rmsprop_eps, initial_g=config.rmsprop_initial_g
    )


def one_update(config: Any) -> int:
    """`RolloutFactories.updates` of a `SinglePass`."""
    return 1


@dataclass(frozen=True)
class RolloutFactories(AlgorithmFactories[Any, Any, Any, RolloutAlgorithm[Any]]):
    """What the framework creates one of its algorithms from."""

    optimizer: Callable[[Any, Tensor], RolloutOptimizer] = papers_rmsprop
    """Creates what updates theta, given the run's config and theta."""
    updates: Callable[[Any], int] = one_update
    """How many updates follow a rollout."""
