"""What makes one algorithm of PAAC's framework itself (Clemente et al. 2017, section 3).

The framework steps environments, counts, and applies gradients; a `Method` says which actions are taken, what
a state beyond the rollout is worth, and what loss the decisions have.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from backend.specs.algorithms.synchronous import SynchronousConfig
from backend.specs.run import RunSpec
from workers.engine.envs.base import World
from workers.engine.learner import Policy


class Slice(NamedTuple):
    """Environments `first` to `last - 1` of the run's n_e."""

    first: int
    last: int


class Choice(NamedTuple):
    """Actions of B environments and what made them: V or max Q, and pi or Q of every action."""

    action_B: Tensor
    value_B: Tensor
    policy_BA: Tensor


class Method(Protocol):
    """One algorithm in one share of the batch; it acts and learns by the one theta."""

    def begin(self, frames: int) -> NDArray[np.float64] | None:
        """Begin a rollout.

        Args:
            frames: emulator frames of the run so far.

        Returns:
            Each environment's share of random actions (B,), where the method has such.
        """

    def choose(self, features_BF: Tensor) -> Choice:
        """Choose actions, given what the network's body made of the present states."""

    def value(self, observation_B: Tensor) -> Tensor:
        """What states are worth (B,) whose decisions are not in the rollout."""

    def loss(self, features_NF: Tensor, action_N: Tensor, R_N: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Mean loss of N decisions with returns R, and what to tell of it: metric -> mean over them."""

    def change(self, config: SynchronousConfig) -> None:
        """Go on with other settings."""


@dataclass(frozen=True)
class Tools:
    """What a method is built from, wherever its share is computed."""

    config: Any
    network: Any
    """Its parameters are theta."""
    peek: Callable[[Tensor], Tensor]
    """What the network's body makes of states (B, …) that are not in the rollout."""
    theta_minus: Tensor
    environments: Slice
    generator: torch.Generator
    """The share's randomness, which is saved and restored."""


def _no_target_network(config: Any) -> int:
    return 0


@dataclass(frozen=True)
class MethodMaker:
    """One algorithm's parts; functions of modules, so that they can be named to other processes."""

    network: Callable[[RunSpec, World], nn.Module]
    """Builds the network of a run: a `body` and heads."""
    policy: Callable[[RunSpec, Any, torch.device, int], Policy]
    """How such a network acts when it is evaluated, given a seed."""
    method: Callable[[Tools], Method]
    """The method in a share."""
    target_frames: Callable[[Any], int] = _no_target_network
    """Emulator frames between two copies of theta to theta_minus, given the settings; 0 without a target."""
