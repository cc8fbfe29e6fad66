"""An actor-critic's heads for single decisions, with a hand-written backward pass for all of an update.

Read `workers.engine.nn.policies` and `losses.actor_critic_loss` first; this computes the same, faster.

Compiled, on a CPU, without autograd: an actor's update has few decisions, whose softmax and loss are some
dozens of numbers. That many calls of PyTorch cost more than the convolutions of a state.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from workers.engine.nn.networks import ActorCritic


class Heads:
    """pi(.|s; theta') and V(s; theta_v') of one update's decisions.

    The network has flat parameters, see `workers.engine.nn.optimizers.FlatParameters`. They must not change
    between `begin` and `backward`.
    """

    def __init__(self, network: ActorCritic) -> None:
        # Numba takes 44 MB: it is imported only in processes that need it.
        from workers.engine.nn import kernels

        self._act = kernels.act
        layers = (network.logits, network.value)
        self._weights = [layer.weight.detach().numpy() for layer in layers]
        self._biases = [layer.bias.detach().numpy() for layer in layers]
        self._gradients = [(_gradient(layer.weight), _gradient(layer.bias)) for layer in layers]
        self.begin()

    def begin(self) -> None:
        """Begin an update: drop the decisions of the last one and read the parameters."""
        # Both layers as one: a row for each action, and one for V.
        self._weight = np.concatenate(self._weights)
        self._bias = np.concatenate(self._biases)
        self._out: list[NDArray[Any]] = []

    def step(self, features_1F: Tensor) -> tuple[NDArray[Any], float]:
        """The policy pi (A,) and V of the next decision's state; kept for `backward`."""
        out_K, pi_A = self._act(self._weight, self._bias, features_1F[0].numpy())
        self._out.append(out_K)
        return pi_A, float(out_K[-1])

    def drop_last(self) -> None:
        """Drop the last decision as if it had not been taken."""
        self._out.pop()

    def value(self, features_1F: Tensor) -> float:
        """V of a state on which no decision is taken."""
        return float(self._act(self._weight, self._bias, features_1F[0].numpy())[0][-1])

    def outputs(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Logits (T, A) and V (T,) of all decisions of the update."""
        out_TK = np.stack(self._out)
        return out_TK[:, :-1], out_TK[:, -1]

    def backward(self, features_TF: Tensor, d_logits_TA: NDArray[Any], d_value_T: NDArray[Any]) -> Tensor:
        """Gradient of the features (T, F) from that of the outputs; the parameters' is added to `grad`.

        Args:
            features_TF: the arguments of `step`.
            d_logits_TA: gradient of the logits.
            d_value_T: gradient of V.
        """
        d_TK = np.column_stack([d_logits_TA, d_value_T]).astype(self._weight.dtype, copy=False)
        d_weight, d_bias = d_TK.T @ features_TF.detach().numpy(), d_TK.sum(0)
        for (weight, bias), rows in zip(self._gradients, (slice(-1), slice(-1, None)), strict=True):
            weight += d_weight[rows]
            bias += d_bias[rows]
        return torch.from_numpy(d_TK @ self._weight)


def _gradient(parameter: Tensor) -> NDArray[Any]:
    assert parameter.grad is not None
    return parameter.grad.numpy()
