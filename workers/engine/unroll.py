"""An actor's pass through its network, decision by decision, and back through it in one go.

An actor sees one state at a time. Left to autograd, every decision would have a graph of its own, and going
back through t_max such graphs costs several times what one batch does; a second, batched forward pass over
the same states costs a fifth of an actor's time. So the activations of acting are kept, and the backward pass
takes them as a batch: the same gradient, with no second forward pass. theta must not change in between.

On a GPU each decision of an update is a CUDA graph, recorded in the second update, when the activations'
memory is where it stays.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from workers.engine.graphs import Graphs
from workers.engine.networks import Halve, Lstm, Standardise, as_input
from workers.engine.products import product

_FEW_ROWS = 16
"""With so few decisions a gradient is a matter of memory: added at once, with no place for it in between."""


class _Stage(NamedTuple):
    """A layer with parameters and what follows it."""

    layer: nn.Conv2d | nn.Linear
    activation: nn.Module | None
    flatten: bool


class _Kept:
    """What a layer's decisions leave, one after the other in memory that the next update uses again."""

    def __init__(self, dtype: torch.dtype, device: torch.device) -> None:
        self._all = torch.empty(0, dtype=dtype, device=device)
        self._rows: list[Tensor] = []

    def row(self, t: int, shape: torch.Size) -> Tensor:
        """Where that of decision t is to be written; the shape, batch first, is the same each time."""
        if t == len(self._rows):
            kept, B = self.first(t), shape[0]
            layout = torch.channels_last if len(shape) == 4 else torch.contiguous_format
            room = (max(4, 2 * t) * B, *shape[1:])
            self._all = torch.empty(room, dtype=kept.dtype, device=kept.device, memory_format=layout)
            if t:
                self._all[: len(kept)] = kept
            self._rows = list(torch.split(self._all, B))
        return self._rows[t]

    def first(self, t: int) -> Tensor:
        """Those of the first t decisions as one batch."""
        return self._all[: t * len(self._rows[0])] if t else self._all


class Unroll:
    """A body, and perhaps an LSTM behind it, over the decisions of one update.

    `state` is the LSTM's (h, c), each (1, H), before the next decision; None without an LSTM.
    """

    state: tuple[Tensor, Tensor] | None

    def __init__(self, body: nn.Sequential, lstm: Lstm | None, *, dtype: torch.dtype | None = None) -> None:
        """Keep activations of `body`: convolutions and linear layers, each with ReLU, ELU, Tanh or none.

        Args:
            body: the layers.
            lstm: what is behind them.
            dtype: in which the body is computed, where not in that of its parameters. Features, the LSTM and
                the sums of gradients stay in theirs.
        """
        self._before, self._stages = _stages(body)
        weight = self._stages[0].layer.weight
        self._own = weight.dtype
        self._dtype = dtype or self._own
        self._parameters = [
            (stage.layer.weight.detach().to(self._dtype), _bias(stage.layer).detach().to(self._dtype))
            for stage in self._stages
        ]
        self._kept = [_Kept(self._dtype, weight.device) for _ in range(len(self._stages) + 1)]
        self._lstm = None if lstm is None else _Lstm(lstm)
        self._graphs = Graphs(self._forward) if weight.is_cuda else None
        self._t = self._t_before = 0
        self.reset_state()
        self.begin()

    @torch.no_grad()
    def begin(self) -> None:
        """Forget the decisions of the last update, take the parameters as they are now; the state stays."""
        if self._graphs is not None and self._t != self._t_before:
            self._graphs.clear()
        self._t_before, self._t = self._t, 0
        self._out: list[Tensor] = []
        if self._dtype != self._own:
            for stage, (weight, bias) in zip(self._stages, self._parameters, strict=True):
                weight.copy_(stage.layer.weight)
                bias.copy_(_bias(stage.layer))
        if self._lstm is not None:
            self._lstm.begin()

    def reset_state(self) -> None:
        """Begin an episode."""
        self.state = None if self._lstm is None else self._lstm.zero_state()

    @torch.no_grad()
    def step(self, observation: Tensor) -> Tensor:
        """Take the next state in; what is needed for the way back is kept.

        Args:
            observation: (B, H, W, C) uint8 or (B, D) float32, with an LSTM of one state only; may be written
                again afterwards. B is the same each time.

        Returns:
            Features (B, F), until the next update.
        """
        memory_stays = self._t < self._t_before
        forward = self._graphs if self._graphs is not None and memory_stays else self._forward
        x = forward(self._t, observation)
        self._t += 1
        if self._lstm is not None:
            assert self.state is not None
            x, self.state = self._lstm.step(x, self.state)
            self._out.append(x)
        return x

    @torch.no_grad()
    def peek(self, observation: Tensor) -> Tensor:
        """Features (B, F) of states that are only looked at, such as those after the last decision."""
        x: Tensor = self._before(as_input(observation, dtype=self._own)).to(self._dtype)
        for k, stage in enumerate(self._stages):
            x = self._layer(k, x)
            _activate(stage.activation, x, out=x)
            if stage.flatten:
                x = x.flatten(1)
        x = x.to(self._own)
        if self._lstm is not None:
            assert self.state is not None
            x = self._lstm.peek(x, self.state)
        return x

    def features(self) -> Tensor:
        """Features (T B, F) of all decisions so far, a leaf whose gradient `backward` takes."""
        if self._lstm is not None:
            return torch.cat(self._out).requires_grad_()
        return self._kept[-1].first(self._t).to(self._own, copy=True).requires_grad_()

    @torch.no_grad()
    def backward(self, d_features_TF: Tensor) -> None:
        """Add the gradient of the parameters to their `grad`, given that of the features."""
        d = d_features_TF if self._lstm is None else self._lstm.backward(d_features_TF)
        d = d.to(self._dtype)
        outputs = self._kept[-1].first(self._t)
        for k in range(len(self._stages) - 1, -1, -1):
            layer, activation, flatten = self._stages[k]
            inputs = self._kept[k].first(self._t)
            if flatten:
                assert isinstance(layer, nn.Conv2d)
                d, outputs = (_unflatten(x, layer.out_channels, inputs, layer) for x in (d, outputs))
            d = _back_through_activation(activation, d, outputs)
            d = _back_through_layer(layer, self._parameters[k][0], d, inputs, need_input=k > 0)
            outputs = inputs

    def _forward(self, t: int, observation: Tensor) -> Tensor:
        """The body's features of the state of decision t."""
        if self._before or observation.dtype != torch.uint8:
            x = self._before(as_input(observation, dtype=self._own))
            x = self._kept[0].row(t, x.shape).copy_(x)
        else:
            B, height, width, channels = observation.shape
            into = self._kept[0].row(t, torch.Size((B, channels, height, width)))
            x = as_input(observation, out=into)
        for k, stage in enumerate(self._stages):
            y = self._layer(k, x)
            shape = torch.Size((len(y), y[0].numel())) if stage.flatten else y.shape
            row = self._kept[k + 1].row(t, shape)
            _activate(stage.activation, y, out=row.view(y.shape) if stage.flatten else row)
            x = row
        return x.to(self._own)

    def _layer(self, k: int, x: Tensor) -> Tensor:
        layer, (weight, bias) = self._stages[k].layer, self._parameters[k]
        if isinstance(layer, nn.Conv2d):
            assert isinstance(layer.padding, tuple)
            return torch.conv2d(x, weight, bias, layer.stride, layer.padding)
        return product(x, weight, bias)


class _Lstm:
    """An LSTM over the decisions of one update, with its own way back (backpropagation through time).

    In NumPy, on a CPU: for one state at a time its calls cost a third of PyTorch's.
    """

    def __init__(self, lstm: Lstm) -> None:
        self._lstm = lstm
        self.begin()

    def begin(self) -> None:
        self._weight = self._lstm.weight.detach().numpy()
        self._bias = self._lstm.bias.detach().numpy()
        self._xh: list[NDArray[Any]] = []
        self._c: list[NDArray[Any]] = []
        self._gates: list[NDArray[Any]] = []
        self._tanh_c: list[NDArray[Any]] = []

    def zero_state(self) -> tuple[Tensor, Tensor]:
        zero = self._lstm.weight.new_zeros(1, self._lstm.cells)
        return zero, zero

    def step(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        xh, c, gates, new_c, tanh_c, new_h = self._pass(x, state)
        self._xh.append(xh)
        self._c.append(c)
        self._gates.append(gates)
        self._tanh_c.append(tanh_c)
        h = torch.from_numpy(new_h)[None]
        return h, (h, torch.from_numpy(new_c)[None])

    def peek(self, x: Tensor, state: tuple[Tensor, Tensor]) -> Tensor:
        return torch.from_numpy(self._pass(x, state)[-1])[None]

    def _pass(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[NDArray[Any], ...]:
        """[x, h], c before, the gates i, f, o, g (4, H), c, tanh c and h, as `Lstm` has them."""
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
        """Gradient of the inputs (T, I) from that of the outputs (T, H); the parameters' is added."""
        inputs = self._lstm.inputs
        i, f, o, g = np.stack(self._gates, 1)
        c_TH, tanh_c = np.stack(self._c), np.stack(self._tanh_c)
        # d gates = dh to_o for o, dc to_c for the others: what depends on no later step, for all at once.
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
        _add_product_(self._lstm.weight, d_gates_TG.t(), torch.from_numpy(np.stack(self._xh)))
        _add_(self._lstm.bias, d_gates_TG.sum(0))
        return d_gates_TG @ self._lstm.weight[:, :inputs]


def _stages(body: nn.Sequential) -> tuple[nn.Sequential, list[_Stage]]:
    """What comes before the first parameters, and the stages."""
    before = nn.Sequential()
    stages: list[_Stage] = []
    for layer in body:
        match layer:
            case nn.Conv2d() | nn.Linear():
                stages.append(_Stage(layer, None, False))
            case nn.ReLU() | nn.ELU(alpha=1.0) | nn.Tanh() if stages:
                stages[-1] = stages[-1]._replace(activation=layer)
            case nn.Flatten() if stages:
                stages[-1] = stages[-1]._replace(flatten=True)
            case Halve() | Standardise() if not stages:
                before.append(layer)
            case _:
                raise TypeError(f"no way back through {layer}")
    return before, stages


def _unflatten(x: Tensor, channels: int, inputs: Tensor, layer: nn.Conv2d) -> Tensor:
    height, width = (
        (inputs.shape[2 + k] + 2 * int(layer.padding[k]) - layer.kernel_size[k]) // layer.stride[k] + 1
        for k in range(2)
    )
    return x.view(len(x), channels, height, width)


def _activate(activation: nn.Module | None, x: Tensor, *, out: Tensor) -> None:
    match activation:
        case nn.ReLU():
            torch.clamp_min(x, 0, out=out)
        case nn.ELU():
            torch.ops.aten.elu.out(x, out=out)
        case nn.Tanh():
            torch.tanh(x, out=out)
        case _:
            out.copy_(x)


def _back_through_activation(activation: nn.Module | None, d: Tensor, y: Tensor) -> Tensor:
    """Gradient before an activation from that after it and its output y."""
    before: Tensor = d
    match activation:
        case nn.ReLU():
            before = torch.ops.aten.threshold_backward(d, y, 0.0)
        case nn.ELU():
            before = torch.clamp_max(y, 0).add_(1).mul_(d)  # 1 above 0, else exp(x), which is y + 1
        case nn.Tanh():
            before = torch.ops.aten.tanh_backward(d, y)
    return before


def _back_through_layer(
    layer: nn.Conv2d | nn.Linear, weight: Tensor, d: Tensor, x: Tensor, *, need_input: bool
) -> Tensor:
    """Gradient of a layer's input x from that of its output; the parameters' is added to their `grad`."""
    d_x: Tensor
    if isinstance(layer, nn.Conv2d):
        d_x, d_weight, d_bias = torch.ops.aten.convolution_backward(
            d,
            x,
            weight,
            [layer.out_channels],
            layer.stride,
            layer.padding,
            layer.dilation,
            False,
            [0, 0],
            1,
            [need_input, True, True],
        )
        _add_(layer.weight, d_weight)
    else:
        d_x = product(d, weight.t()) if need_input else d
        _add_product_(layer.weight, d.t(), x)
        d_bias = d.sum(0)
    _add_(_bias(layer), d_bias)
    return d_x


def _add_(parameter: Tensor, gradient: Tensor) -> None:
    assert parameter.grad is not None
    parameter.grad.add_(gradient)


def _add_product_(parameter: Tensor, left: Tensor, right: Tensor) -> None:
    """Add left @ right, which is as large as theta."""
    assert parameter.grad is not None
    left, right = left.to(parameter.dtype), right.to(parameter.dtype)
    if left.is_cuda or len(right) <= _FEW_ROWS:
        parameter.grad.addmm_(left, right)
    else:
        parameter.grad.add_(product(left, right.t()))


def _bias(layer: nn.Conv2d | nn.Linear) -> Tensor:
    assert layer.bias is not None
    return layer.bias
