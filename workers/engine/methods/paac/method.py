"""An algorithm of PAAC's framework (Clemente et al. 2017, section 3), as the framework calls it.

The framework steps environments, counts frames and applies gradients; a `RolloutAlgorithm` chooses actions,
bootstraps the state after the rollout, and computes the loss.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from workers.engine.methods.base import (
    AlgorithmFactories,
    ConfigT,
    ConfigT_contra,
    MethodContext,
    NetworkT,
)


class Slice(NamedTuple):
    """Environments `first` to `last - 1` of the run's n_e."""

    first: int
    last: int


class BatchDecision(NamedTuple):
    """Actions of B environments and what they were chosen by: V or max Q, and pi or Q of every action."""

    action_B: Tensor
    value_B: Tensor
    policy_BA: Tensor


class RolloutAlgorithm(Protocol[ConfigT_contra]):
    """One algorithm of the framework in one rollout worker; it acts and learns by the one theta."""

    def change(self, config: ConfigT_contra) -> None:
        """Continue with this config; only live fields differ."""

    def begin(self, frames: int) -> NDArray[np.float64] | None:
        """Begin a rollout.

        Args:
            frames: emulator frames of the run so far.

        Returns:
            Each environment's epsilon (B,), if the method explores epsilon-greedily.
        """

    def choose(self, features_BF: Tensor, group: slice) -> BatchDecision:
        """Choose actions for a group of the worker's environments, given their current states' features."""

    def value(self, observation_B: Tensor) -> Tensor:
        """Values (B,) of states that are not in the rollout."""

    def loss(self, features_NF: Tensor, action_N: Tensor, R_N: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Mean loss of N decisions with returns R, and its metrics: name -> mean over the decisions."""


@dataclass(frozen=True)
class RolloutContext(MethodContext[ConfigT, NetworkT]):
    """What a method is created from, in a rollout worker."""

    peek: Callable[[Tensor], Tensor]
    """The features (B, F) of states (B, …) that are not in the rollout."""
    environments: Slice
    generator: torch.Generator
    """The worker's randomness, which is saved and restored."""


RolloutFactories = AlgorithmFactories[Any, Any, Any, RolloutAlgorithm[Any]]
