"""An actor's policy and value on top of its features, decision by decision, and back through them in one go.

Compiled, on a CPU, and without autograd: an actor's update is of a few decisions, whose softmax and loss are
some dozens of numbers, and as many calls of PyTorch's cost more than the convolutions of a state.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from workers.engine.networks import ActorCritic


class Heads:
    """pi(.|s; theta') and V(s; theta_v') of one update's decisions.

    A network's own heads on flat parameters (see `workers.engine.optimizers.FlatParameters`), which must not
    change between `begin` and `backward`.
    """

    def __init__(self, network: ActorCritic) -> None:
        # Numba takes 44 MB of a process: only of those that have heads.
        from workers.engine import kernels

        self._act = kernels.act
        layers = (network.logits, network.value)
        self._weights = [layer.weight.detach().numpy() for layer in layers]
        self._biases = [layer.bias.detach().numpy() for layer in layers]
        self._gradients = [(_gradient(layer.weight), _gradient(layer.bias)) for layer in layers]
        self.begin()

    def begin(self) -> None:
        """Forget the decisions of the last update, take the parameters as they are now."""
        # Both layers as one: a row an action, and V's.
        self._weight = np.concatenate(self._weights)
        self._bias = np.concatenate(self._biases)
        self._out: list[NDArray[Any]] = []

    def step(self, features_1F: Tensor) -> tuple[NDArray[Any], float]:
        """The policy (A,) and V of the next state; what is needed for the way back is kept."""
        out_K, pi_A = self._act(self._weight, self._bias, features_1F[0].numpy())
        self._out.append(out_K)
        return pi_A, float(out_K[-1])

    def value(self, features_1F: Tensor) -> float:
        """V of a state that is only looked at."""
        return float(self._act(self._weight, self._bias, features_1F[0].numpy())[0][-1])

    def outputs(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Logits (T, A) and V (T,) of all decisions so far."""
        out_TK = np.stack(self._out)
        return out_TK[:, :-1], out_TK[:, -1]

    def backward(self, features_TF: Tensor, d_logits_TA: NDArray[Any], d_value_T: NDArray[Any]) -> Tensor:
        """Gradient of the features (T, F) from that of the outputs; the parameters' is added to their `grad`.

        Args:
            features_TF: what `step` was given.
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
