"""An LSTM over the decisions of one update, with a hand-written backward pass through time.

Read `workers.engine.nn.networks.Lstm` first; this computes the same, faster.

In NumPy, on a CPU: for one state at a time its calls cost a third of PyTorch's.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from workers.engine.nn.linear import add_gradient_, add_product_
from workers.engine.nn.networks import Lstm


class FusedLstm:
    """An `Lstm` for one state at a time; its activations are kept for `backward`."""

    def __init__(self, lstm: Lstm) -> None:
        self._lstm = lstm
        self.begin()

    def begin(self) -> None:
        """Begin an update: drop the activations and read the parameters."""
        self._weight = self._lstm.weight.detach().numpy()
        self._bias = self._lstm.bias.detach().numpy()
        self._xh: list[NDArray[Any]] = []
        self._c: list[NDArray[Any]] = []
        self._gates: list[NDArray[Any]] = []
        self._tanh_c: list[NDArray[Any]] = []

    def zero_state(self) -> tuple[Tensor, Tensor]:
        """The states h and c, each (1, H), at the beginning of an episode."""
        zero = self._lstm.weight.new_zeros(1, self._lstm.cells)
        return zero, zero

    def step(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """New h (1, H), and the new state, of x (1, I); the activations are kept."""
        xh, c, gates, new_c, tanh_c, new_h = self._forward(x, state)
        self._xh.append(xh)
        self._c.append(c)
        self._gates.append(gates)
        self._tanh_c.append(tanh_c)
        h = torch.from_numpy(new_h)[None]
        return h, (h, torch.from_numpy(new_c)[None])

    def drop_last(self) -> None:
        """Drop the activations of the last `step`."""
        for kept in (self._xh, self._c, self._gates, self._tanh_c):
            kept.pop()

    def peek(self, x: Tensor, state: tuple[Tensor, Tensor]) -> Tensor:
        """New h (1, H) of x (1, I); nothing is kept."""
        return torch.from_numpy(self._forward(x, state)[-1])[None]

    def _forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[NDArray[Any], ...]:
        """[x, h], c before, gates i, f, o, g (4, H), c, tanh c and h; see `Lstm` for the equations."""
        h, c = state[0][0].numpy(), state[1][0].numpy()
        xh = np.concatenate([x[0].numpy(), h])
        gates = (self._weight @ xh + self._bias).reshape(4, -1)
        gates[:3] *= 0.5
        np.tanh(gates, out=gates)
        gates[:3] += 1
        gates[:3] *= 0.5  # sigmoid(z) = (tanh(z/2) + 1) / 2
        i, f, o, g = gates
        new_c = f * c + i * g
        tanh_c = np.tanh(new_c)
        return xh, c, gates, new_c, tanh_c, o * tanh_c

    def backward(self, d_h_TH: Tensor) -> Tensor:
        """Gradient of the inputs (T, I) from that of the outputs (T, H); adds the parameters' to `grad`."""
        inputs = self._lstm.inputs
        i, f, o, g = np.stack(self._gates, 1)
        c_TH, tanh_c = np.stack(self._c), np.stack(self._tanh_c)
        # d gates = dh * to_o for gate o, dc * to_c for i, f and g. These factors depend on no later step.
        to_c = np.stack([g * i * (1 - i), c_TH * f * (1 - f), i * (1 - g * g)], 1)
        to_o = tanh_c * o * (1 - o)
        c_from_h = o * (1 - tanh_c * tanh_c)
        T, H = d_h_TH.shape
        d_gates = np.empty((T, 4, H), to_o.dtype)
        recurrent = self._weight[:, inputs:]
        dh = dc = np.zeros(H, to_o.dtype)
        for t, d_h in reversed(list(enumerate(d_h_TH.numpy()))):
            dh = dh + d_h
            dc = dc + dh * c_from_h[t]
            np.multiply(dc, to_c[t, :2], out=d_gates[t, :2])
            np.multiply(dh, to_o[t], out=d_gates[t, 2])
            np.multiply(dc, to_c[t, 2], out=d_gates[t, 3])
            dc = dc * f[t]
            dh = d_gates[t].reshape(-1) @ recurrent
        d_gates_TG = torch.from_numpy(d_gates.reshape(T, -1))
        add_product_(self._lstm.weight, d_gates_TG.t(), torch.from_numpy(np.stack(self._xh)))
        add_gradient_(self._lstm.bias, d_gates_TG.sum(0))
        return d_gates_TG @ self._lstm.weight[:, :inputs]
